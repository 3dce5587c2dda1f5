"""Programs judged by standard input and output, and by calls."""

import json
import re

import pytest

from llmtrain.verifiers.math.truths import math_truth
from llmtrain.verifiers.program_cases import MAX_FILE_MIB, cases_of
from llmtrain.verifiers.python_tests import plan_of

STDIO = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7"]}
CALLS = {"inputs": [[1, 2], [3, 4]], "outputs": [3, [7]], "fn_name": "add"}
KODCODE = "from solution import add\n\ndef test_a():\n    assert add(1, 2) == 3\n\ndef test_b():\n    assert add(0, 2)"
READS = "a, b = map(int, input().split())\nprint(a + b)"
ADD = "def add(a, b):\n    return a + b"
NEXT = {"inputs": ["1\n", "5\n"], "outputs": ["2\n", "6\n"]}
SCRIPTS = {
    "os.read": "import os\nprint(int(os.read(0, 99)) + 1)",
    "size of descriptor 0": "import os\nprint(int(os.read(0, os.fstat(0).st_size)) + 1)",
    "open(0)": "print(int(open(0).read()) + 1)",
    "io.open(0)": "import io\nprint(int(io.open(0, 'rb').readline()) + 1)",
    "stdin.buffer": "import sys\nprint(int(sys.stdin.buffer.read()) + 1)",
    "fileinput": "import fileinput\nfor line in fileinput.input():\n    print(int(line) + 1)\n    break",
    "a child": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(int(input()) + 1)'])",
    "os.write": "import os\nos.write(1, b'%d' % (int(input()) + 1))",
    "open(1)": "with open(1, 'w') as out:\n    out.write(str(int(input()) + 1))",
    "__stdout__": "import sys\nsys.__stdout__.write(str(int(input()) + 1))",
    "a thread": "import threading, time\ndef main():\n    n = int(input())\n    time.sleep(.02)\n    print(n + 1)\n"
    "threading.Thread(target=main).start()",
    "atexit": "import atexit, io, sys\nsys.stdout = kept = io.StringIO()\n"
    "atexit.register(lambda: sys.__stdout__.write(kept.getvalue()))\nprint(int(input()) + 1)",
    "sys.argv": "import sys\nif len(sys.argv) > 1:\n    sys.stdin = open(sys.argv[1])\nprint(int(input()) + 1)",
    "__main__": "import __main__\nn = int(input())\nprint(__main__.n + 1)",
    "os._exit": "import os\nprint(int(input()) + 1, flush=True)\nos._exit(0)",
    "closes descriptors": "import os\nos.write(1, b'%d' % (int(os.read(0, 9)) + 1))\nos.close(0)\nos.close(1)",
}
"""Right programs for NEXT, which use what a script has."""
SOLUTION = "class Solution:\n    def add(self, a, b):\n        return a + b"


@pytest.mark.parametrize(
    ("code", "truth", "correct"),
    [
        (READS, STDIO, True),
        (READS, json.dumps(STDIO), True),
        ("import sys\na, b = map(int, sys.stdin.buffer.read().split())\nsys.stdout.write(f'{a + b} ')", STDIO, True),
        (READS + "\nexit()", STDIO, True),
        (
            "import sys\nx = sys.stdin.buffer.read().split()\nsys.stdout.buffer.write(b'%d' % sum(map(int, x)))",
            STDIO,
            True,
        ),
        ("print(3)", STDIO, False),
        ("print(0.50, 'a')", {"inputs": [""], "outputs": ["0.5 a\n"]}, True),
        ("print(0.51)", {"inputs": [""], "outputs": ["0.5"]}, False),
        (
            "def f(x: List[int]):\n    return Counter(x)[1]",
            {"inputs": [[[1, 1]]], "outputs": [2], "fn_name": "f"},
            True,
        ),
        (ADD, KODCODE, True),
        (ADD.replace("+", "-"), KODCODE, False),
        ("import os\nos._exit(0)", STDIO, False),
        ("print(", STDIO, False),
        (READS, {"inputs": [["1 2"]], "outputs": [["3"]]}, True),
        (ADD, CALLS, True),
        (SOLUTION, CALLS, True),
        (SOLUTION.replace("+", "-"), CALLS, False),
        (ADD, {"inputs": [[1, 2]], "outputs": [[3, 4]], "fn_name": "add"}, False),
        ("def other(): pass", CALLS, False),
    ],
)
def test_verdicts(python, code, truth, correct):
    (verdict,) = python([f"```python\n{code}\n```"], [truth])
    assert verdict.correct is correct, verdict.reason


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({"inputs": ["1"], "outputs": []}, "as many outputs as inputs"),
        ({"inputs": ["1", "2"], "outputs": ["", " \n"]}, "outputs are all empty"),
        ({"inputs": ["1" * (MAX_FILE_MIB * 2**20 + 1)], "outputs": ["1"]}, "more than 16 MiB"),
        ({"inputs": [[1]], "outputs": [1], "fn_name": "f(x)"}, "the name of one function"),
        ({"inputs": ["x y"], "outputs": ["1"], "fn_name": "f"}, "is JSON, one argument a line"),
        ([{"input": "1", "output": "2", "testtype": "functional"}], "need fn_name"),
        ([{"input": "1", "output": "2", "fn_name": x} for x in "fg"], "the name of one function"),
        ({"inputs": [1], "outputs": [2]}, "are texts, or lists of lines"),
        ({"inputs": [1], "outputs": [2], "fn_name": "f"}, "is a list of arguments"),
    ],
)
def test_cases_that_cannot_be(python, truth, message):
    with pytest.raises(ValueError, match=message):
        python([READS], [truth])


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_program_runs_as_a_script_does(python, script):
    (verdict,) = python([f"```python\n{SCRIPTS[script]}\n```"], [NEXT])
    assert verdict.correct, verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print(int(input()) + 1)\nraise ValueError('late')", "ValueError: late"),
        ("import os\nprint(int(input()) + 1, flush=True)\nos._exit(3)", "exit code 3"),
        ("import os\nprint(int(input()) + 1, flush=True)\nos.abort()", "SIGABRT"),
        ("print('x' * (17 << 20))", "File too large|exit code 120"),
    ],
)
def test_a_program_that_ends_badly_is_wrong(python, code, reason):
    (verdict,) = python([code], [NEXT])
    assert not verdict.correct
    assert re.search(reason, verdict.reason), verdict.reason


@pytest.mark.slow
def test_one_run_leaves_nothing_to_the_next(python):
    code = "import math, sys\nn = int(input())\nprint(getattr(math, 'kept', n + 1))\nmath.kept = 'kept'"
    (verdict,) = python([code], [NEXT])
    assert verdict.correct, verdict.reason


CASE = {"input": "1\n", "output": "2\n"}
READ = {"inputs": ["1\n"], "outputs": ["2\n"]}
CALL = {"input": "1\n[2]\n", "output": "3", "metadata": {"func_name": "f"}}


@pytest.mark.parametrize(
    ("truth", "cases"),
    [
        ([CASE], READ),
        ([CASE | {"type": "stdin_stdout", "fn_name": None}], READ),
        (json.dumps([CASE]), READ),
        (repr([CASE]), READ),
        (repr(READ), READ),
        ({"language": "python", "test_cases": [CASE]}, READ),
        ({"test_cases": json.dumps(READ)}, READ),
        ({"input": "1\n", "output": "2\n"}, READ),
        ({"input": ["1\n"], "output": ["2\n"]}, READ),
        ([CALL], {"inputs": [[1, [2]]], "outputs": [[3]], "fn_name": "f"}),
        (
            {"test_cases": [{"input": [1], "output": [2]}], "fn_name": "f"},
            {"inputs": [[1]], "outputs": [[2]]} | {"fn_name": "f"},
        ),
    ],
)
def test_forms_of_the_same_cases(truth, cases):
    assert plan_of(truth) == plan_of(cases)


@pytest.mark.parametrize(
    "truth", ["[1, 2]", "{1, 2}", [{"a": 1}], [1], "x = {'a': 1}", '{"a": 1} == f(1)', "[[1, 2], [3"]
)
def test_other_truths_are_no_cases(truth):
    assert cases_of(truth) is None


def test_cases_are_no_truth_of_math():
    with pytest.raises(ValueError, match="name the verifier"):
        math_truth(json.dumps([CASE]))
