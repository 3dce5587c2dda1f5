"""Programs judged by standard input and output, and by calls."""

import json

import pytest

from llmtrain.verifiers import get_verifier

STDIO = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7"]}
CALLS = {"inputs": [[1, 2], [3, 4]], "outputs": [3, [7]], "fn_name": "add"}
KODCODE = "from solution import add\n\ndef test_a():\n    assert add(1, 2) == 3\n\ndef test_b():\n    assert add(0, 2)"
READS = "a, b = map(int, input().split())\nprint(a + b)"
ADD = "def add(a, b):\n    return a + b"
SOLUTION = "class Solution:\n    def add(self, a, b):\n        return a + b"


@pytest.fixture(scope="module")
def python():
    with get_verifier("python", workers=1, timeout=20.0) as verifier:
        yield verifier


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
        ({"inputs": [1], "outputs": [2]}, "are texts, or lists of lines"),
        ({"inputs": [1], "outputs": [2], "fn_name": "f"}, "is a list of arguments"),
    ],
)
def test_cases_that_cannot_be(python, truth, message):
    with pytest.raises(ValueError, match=message):
        python([READS], [truth])
