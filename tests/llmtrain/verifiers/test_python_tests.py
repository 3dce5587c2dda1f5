"""Unit tests in a subprocess, and programs that would do harm."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.python_tests import OPEN, PythonVerifier, program
from llmtrain.verifiers.verdict import Verdict

pytestmark = pytest.mark.slow

TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]


@pytest.fixture(scope="module")
def verify():
    with get_verifier("python", workers=1, timeout=6.0, memory_mib=512) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def hasty():
    """A verifier for programs that never end."""
    with get_verifier("python", workers=1, timeout=1.5, memory_mib=512) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("code", "correct", "reason"),
    [
        ("def add(a, b): return a + b", True, "all tests passed"),
        ("import os; os.write(1, b'\\xff'); add = int.__add__", True, "all tests passed"),
        ("import os; os.write(2, b'\\xff')", False, "name 'add' is not defined"),
        ("def add(a, b): return a - b", False, "AssertionError"),
        ("def add(a, b) return", False, "SyntaxError"),
        ("import sys; sys.exit(0)", False, "exit code 0 before its tests"),
        ("import os; os._exit(0)", False, "exit code 0 before its tests"),
        ("import sys; sys.exit(-1)", False, "exit code 255 before its tests"),
        ("import os; os.abort()", False, "SIGABRT"),
        ("held = bytearray(1 << 32)", False, "MemoryError"),
        ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", False, "File too large"),
        ("while True: print('x' * 1000)", False, "more than 16 MiB of output"),
    ],
)
def test_programs(verify, code, correct, reason):
    verdict = verify([f"Here it is:\n```python\n{code}\n```\nDone."], [TESTS])[0]
    assert verdict.correct is correct
    assert reason in verdict.reason
    assert verdict.extracted == code


def test_a_program_that_does_not_end_is_stopped(hasty):
    assert hasty(["while True: pass"], [TESTS])[0].reason == "timed out after 1.5 s"


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.path.exists('stdout') and os.unlink('stdout')\nos.mkfifo('stdout')",
        "import os, shutil\nshutil.rmtree(os.getcwd())",
        "import os\nos.path.exists('stdout') and os.unlink('stdout')\nos.mkdir('stdout')",
        "import os\nos.path.exists('stdout') and os.unlink('stdout')\nos.symlink('/dev/zero', 'stdout')",
        "import os\nos.path.exists('stderr') and os.unlink('stderr')\nos.symlink('/etc/passwd', 'stderr')\nos._exit(1)",
    ],
)
def test_a_program_that_puts_files_in_the_place_of_its_output(verify, code):
    """The rest of the batch is judged, and nothing of the machine comes back as the reason."""
    bad, good = verify([code, "def add(a, b): return a + b"], [TESTS] * 2)
    assert not bad.correct
    assert "root:" not in bad.reason
    assert good.correct


def test_a_problem_of_the_machine_costs_its_own_item_only(verify, monkeypatch):
    def fails(self, code, plan):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PythonVerifier, "_judge", fails)
        verdict = verify(["x = 1"], [TESTS])[0]
    assert verdict.reason == "the program could not be run: No space left on device"
    assert verify.failures["crash"] == 1


def test_a_process_that_keeps_the_output_open_is_not_waited_for(verify):
    code = "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(99)\ndef add(a, b): return a + b"
    assert verify([code], [TESTS])[0].correct


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels have other limits")
def test_a_fork_bomb_is_stopped_and_leaves_nothing(hasty):
    name = f"bomb-{os.getpid()}"
    bomb = (
        f"import ctypes, os, time\nctypes.CDLL(None).prctl(15, b{name!r})\nwhile True:\n    try: os.fork()\n"
        "    except OSError: time.sleep(0.05)"
    )
    assert "timed out" in hasty([bomb], [TESTS])[0].reason
    time.sleep(0.3)
    assert name not in subprocess.run(["ps", "axo", "comm"], capture_output=True, text=True).stdout


def test_the_environment_is_empty(verify, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    code = (
        "import os, sys\nassert not set(os.environ) - {'LC_CTYPE', 'PYTHONHASHSEED'}, set(os.environ)\n"
        "assert not {'', os.getcwd()} & set(sys.path), sys.path\ndef add(a, b): return a + b"
    )
    assert verify([code], [TESTS])[0].correct


EQUAL = """
class Equal(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    __hash__ = None
"""


@pytest.mark.parametrize(
    "code",
    [
        EQUAL + "def add(a, b): return Equal(a * 7 + 1)",
        EQUAL.replace("(int)", "") + "def add(a, b): return Equal()",
        EQUAL + "add = Equal(1)",
        "import builtins\nbuiltins.AssertionError = ValueError\ndef add(a, b): raise AssertionError",
        "from unittest.mock import ANY\ndef add(a, b): return ANY",
        "from unittest.mock import ANY\nadd = type(ANY).__new__",
        "import sys\ndef add(a, b):\n    print(sys._getframe(1).f_globals)\n    sys.exit(0)",
        "import os\nprint(*(open(name).read() for name in os.listdir('.')))\nos._exit(0)",
        "import os\ndef add(a, b):\n    for n in range(3, 9): os.write(n, b'{}\\n')",
    ],
)
def test_an_answer_that_meddles_with_the_comparison(verify, code):
    assert not verify([code], [TESTS])[0].correct


def test_a_test_gives_nothing_away_but_what_it_hands_over(verify):
    """A callback can be called, but leads to no name of the tests."""
    code = "def each(f, items):\n    assert f(2) == 4\n    return f.__globals__"
    verdict = verify([code], ["double = lambda x: 2 * x\nassert each(double, [1]) == [2]"])[0]
    assert verdict.reason == "AttributeError: __globals__"


SORTS = """
import math
from collections import Counter, defaultdict, deque, namedtuple
from typing import List
class NotFound(ValueError): pass
class Stack:
    def __init__(self, items=()): self.items = list(items)
    def push(self, item): self.items.append(item)
    def __len__(self): return len(self.items)
    def __add__(self, other): return Stack(self.items + other.items)
    def __eq__(self, other): return self.items == other.items
    def __iter__(self): return iter(self.items)
def sort(items: List[int]): items.sort()
def same(items): return items
def find(items, item):
    if item not in items: raise NotFound(f"no {item}")
    return items.index(item)
def count(text): return Counter(text)
def point(): return namedtuple("P", "x y")(1, 2)
def apply(f, x): return f(f(x))
def reverse(node):
    before = None
    while node: node.next, before, node = before, node, node.next
    return before
def numbers(n): yield from range(n)
def half(x): return x / 2
def sum(a, b): return a + b + 1
def array(x):
    import numpy
    return numpy.array(x) * 2
"""


@pytest.mark.parametrize(
    "tested",
    [
        "a = [3, 1]\nsort(a)\nassert a == [1, 3]",
        "a = [[3, 1], {1: [2]}]\nb = same(a)\nassert b is a\nsort(a[0])\nassert b == [[1, 3], {1: [2]}]",
        "try:\n    find([1], 2)\nexcept NotFound as error:\n    assert str(error) == 'no 2'\nelse:\n    assert False",
        "try:\n    find([1], 2)\nexcept ValueError:\n    pass\nelse:\n    assert False",
        "assert count('aab') == {'a': 2, 'b': 1}\nassert count('aab').most_common(1) == [('a', 2)]",
        "assert point() == (1, 2) and point().x == 1\nx, y = point()\nassert y == 2",
        "assert apply(lambda x: 2 * x, 3) == 12\nassert apply(str, 3) == '3'",
        "s = Stack([1])\ns.push(2)\nassert len(s) == 2 and list(s) == [1, 2] and isinstance(s, Stack)\n"
        "assert s + Stack([3]) == Stack([1, 2, 3]) and s != Stack()\ns.items.append(9)",
        "class Node:\n    def __init__(self, v, n=None): self.v, self.next = v, n\n"
        "n = reverse(Node(1, Node(2)))\nassert (n.v, n.next.v, n.next.next) == (2, 1, None)",
        "assert list(numbers(3)) == [0, 1, 2]\nassert sorted(numbers(2)) == [0, 1]",
        "assert math.isclose(half(3), 1.5)\nassert half(float('inf')) == float('inf')",
        "assert sum(1, 2) == 4",
        "assert half(6) == sum([1, 2])",
        "import numpy as np\nassert (array([1, 2]) == np.array([2, 4])).all() and array(np.ones(2)).shape == (2,)",
        "def check(candidate):\n    assert candidate(4) == 2\n    assert isinstance(candidate(4), float)\ncheck(half)",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(half(2), 1)\n"
        "if __name__ == '__main__': assert unittest.main(exit=False, argv=['']).result.testsRun == 1",
        "assert same(2**200) == 2**200 and same({1, (2, 3)}) == {1, (2, 3)} and same(b'x') == b'x'",
        "from decimal import Decimal\nassert same(Decimal('1.5')) == Decimal('1.5') and same(1j) == 1j",
    ],
)
def test_tests_of_many_kinds(verify, tested):
    verdict = verify([SORTS], [tested])[0]
    assert verdict.correct, verdict.reason


SECRET = "a secret of the machine"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root on Linux can make namespaces")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ValueError(open({file!r}).read())", "No such file or directory"),
        ("import os; raise ValueError(os.listdir('/etc'))", "ValueError: ["),
        ("open({file!r}, 'w').write('x')", "No such file or directory"),
        ("open('/etc/passwd', 'w')", "Read-only file system"),
        ("import sys; open(sys.base_prefix + '/x', 'w')", "Read-only file system"),
        ("import os; raise ValueError(os.listdir('/home'))", "No such file or directory"),
        ("import os; raise ValueError(os.listdir('/proc'))", "No such file or directory"),
    ],
)
def test_the_file_system_holds_the_interpreter_and_one_folder(verify, tmp_path, code, reason):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    verdict = verify([code.format(file=str(file))], [TESTS])[0]
    assert not verdict.correct
    assert reason in verdict.reason
    assert file.read_text() == SECRET


def test_temporary_files_and_installed_packages_can_be_used(verify):
    code = "import tempfile, numpy\ntempfile.TemporaryFile().write(b'x')\nadd = lambda a, b: int(numpy.add(a, b))"
    assert verify([code], [TESTS])[0].correct


def test_a_machine_without_namespaces_is_said(monkeypatch, capsys):
    monkeypatch.setattr(PythonVerifier, "_judge", lambda self, *asked: Verdict(False, "AssertionError"))
    PythonVerifier(workers=1).close()
    assert capsys.readouterr().err == f"{OPEN}\n"


def test_an_environment_behind_a_link_can_run_programs(tmp_path, monkeypatch):
    link = tmp_path / "environment"
    link.symlink_to(sys.prefix)
    monkeypatch.setattr(sys, "prefix", str(link))
    monkeypatch.setattr(
        sys, "executable", str(link / Path(sys.executable).relative_to(Path(sys.executable).parents[1]))
    )
    with get_verifier("python", workers=1, timeout=6.0) as verifier:
        (verdict,) = verifier(["import numpy\nadd = lambda a, b: a + b"], [TESTS])
        assert verdict.correct, verdict.reason


def test_an_interpreter_that_cannot_run_is_an_error_at_the_start(monkeypatch):
    monkeypatch.setattr(PythonVerifier, "_judge", lambda self, *asked: Verdict(False, "FileNotFoundError: python"))
    with pytest.raises(ValueError, match=r"the sandbox cannot run .*: FileNotFoundError: python"):
        PythonVerifier(workers=1)


def test_a_set_has_the_same_order_in_each_run(verify):
    code = "raise ValueError(' '.join(set('abcdefghij')))"
    assert len({verdict.reason for verdict in verify([code] * 3, [TESTS] * 3)}) == 1


def test_the_folder_is_removed(verify, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os\nopen('here', 'w').write('x')\nraise ValueError(os.getcwd())"
    assert "llmtrain-check" in verify([code], [TESTS])[0].reason
    assert not list(tmp_path.iterdir())


def test_the_last_closed_block_counts():
    assert program("```python\na\n```\n```py\nb\n```\n```python\nc = (") == "b"
    assert program("x = 1") == "x = 1"


CODE = "```python\ndef f(): return 2\n```"


@pytest.mark.parametrize(
    "response",
    [
        f"Install:\n```bash\npip install x\n```\nThen:\n{CODE}",
        f"Input:\n```json\n{{}}\n```\n{CODE}\nDone.",
        f"{CODE}\nOutput:\n```\n2\n```\n",
        f"{CODE}\nRun:\n```bash\npython a.py\n```\nIt prints\n```text\n2\n```\n",
        f"```bash\npip install x\n{CODE}",
        f"```\n2\n```\nis what this says:\n{CODE}",
        "```python3\ndef f(): return 2\n```",
        "``` Python title=f\ndef f(): return 2\n```",
        "```{.python}\ndef f(): return 2\n```",
        "```python\r\ndef f(): return 2\r\n```\r\nDone.",
        "```\nnot this\n```\n```\ndef f(): return 2\n```\n```sh\npython a.py\n```",
    ],
)
def test_other_blocks_are_not_the_program(response):
    assert program(response) == "def f(): return 2"


@pytest.mark.parametrize("truth", ["", [], [1], None, {"a": 1}])
def test_a_ground_truth_without_tests(verify, truth):
    with pytest.raises(ValueError, match="unit tests"):
        verify(["x = 1"], [truth])


def test_what_a_program_does_as_a_script_is_left_out(verify):
    code = "def f(x): return x * x\nif __name__ == '__main__':\n    print(f(int(input())))"
    truths = ["from solution import f\ndef test_f(): assert f(3) == 9", "assert f(3) == 9"]
    assert [verdict.correct for verdict in verify([code] * 2, truths)] == [True, True]


@pytest.mark.parametrize("errors", ["AssertionError", "Exception", "(AssertionError, TypeError)"])
def test_a_class_of_errors_that_catches_failures_of_the_tests_ends_them(verify, errors):
    truth = "try:\n    f(1)\n    assert False\nexcept Bad:\n    pass"
    (verdict,) = verify([f"Bad = {errors}\ndef f(x): pass"], [truth])
    assert not verdict.correct
    assert "catches failures of the tests" in verdict.reason
