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


FORKS = """
import mmap, os, time
for _ in range(4):
    if os.fork() == 0:
        held = {held}
        for i in range(0, len(held), 4096): held[i] = 1
        time.sleep(9)
time.sleep(4)
def add(a, b): return a + b
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels have other limits")
@pytest.mark.parametrize("held", ["bytearray(170 << 20)", "mmap.mmap(-1, 170 << 20)"])
def test_memory_is_limited_for_all_processes_together(verify, held):
    """Each of four forks takes a third of the limit."""
    assert verify([FORKS.format(held=held)], [TESTS])[0].reason == "more than 512 MiB of memory"


def test_memory_that_forks_share_is_counted_once(verify):
    code = (
        "import os, time\nheld = bytearray(300 << 20)\nfor _ in range(3):\n    if os.fork() == 0:\n"
        "        time.sleep(9)\ntime.sleep(0.5)\ndef add(a, b): return a + b"
    )
    verdict = verify([code], [TESTS])[0]
    assert verdict.correct, verdict.reason


ESCAPES = """
import ctypes
call = ctypes.CDLL(None).syscall
assert [call(*x) for x in ({calls})] == [-1] * {number}
def add(a, b): return a + b
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls of x86-64")
def test_calls_that_get_around_the_limits_are_refused(verify):
    """unshare and clone of namespaces, clone3, memfd_create, shmget, ptrace."""
    calls = (
        "(272, 1 << 28), (56, 0x10000011, 0, 0, 0, 0), (435, 0, 0), (319, b'x', 0), (29, 0, 4096, 896), (101, 0, 0, 0)"
    )
    verdict = verify([ESCAPES.format(calls=calls, number=6)], [TESTS])[0]
    assert verdict.correct, verdict.reason


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root on Linux can make namespaces")
def test_files_are_limited_together(verify):
    code = "for n in range(99): open(f'{n}', 'wb').write(bytes(1 << 20))"
    assert "No space left on device" in verify([code], [TESTS])[0].reason


def test_threads_and_processes_of_honest_programs_run(verify):
    code = (
        "import subprocess, sys\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "subprocess.run([sys.executable, '-c', 'print(1)'], check=True)\n"
        "def add(a, b):\n    with ThreadPoolExecutor(2) as pool: return pool.submit(lambda: a + b).result()"
    )
    verdict = verify([code], [TESTS])[0]
    assert verdict.correct, verdict.reason


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


OWN = """
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum, IntEnum
from fractions import Fraction
from functools import wraps
from typing import NamedTuple
@dataclass
class Point:
    x: float
    y: float = 0
    def scale(self, k): return Point(self.x * k, self.y * k)
@dataclass(order=True, frozen=True)
class Card:
    rank: int
class Vector:
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
    def __mul__(self, k): return Vector(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __neg__(self): return self * -1
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __eq__(self, other): return tuple(self) == tuple(other)
    def __hash__(self): return hash(tuple(self))
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __iter__(self): return iter((self.x, self.y))
class Color(Enum):
    RED = 1
    BLUE = 2
Level = IntEnum("Level", "LOW HIGH")
class Node:
    def __init__(self, value): self.value, self.left, self.right = value, None, None
class Tree:
    root = None
    def insert(self, value):
        place, side = self, "root"
        while getattr(place, side):
            place = getattr(place, side)
            side = "left" if value < place.value else "right"
        setattr(place, side, Node(value))
    def find(self, value):
        node = self.root
        while node and node.value != value: node = node.left if value < node.value else node.right
        return node
    def __contains__(self, value): return self.find(value) is not None
class Stack(list):
    push = list.append
class Pair(NamedTuple):
    a: int
    b: int = 7
class BankError(Exception): pass
class Short(BankError):
    def __init__(self, amount):
        super().__init__(f"short {amount}")
        self.amount = amount
class Builder:
    def __init__(self): self.items = []
    def add(self, item):
        self.items.append(item)
        return self
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if not self.n: raise StopIteration
        self.n -= 1
        return self.n
def middle(p, q): return Point((p.x + q.x) / 2, (p.y + q.y) / 2)
def paint(n): return Color(n)
def level(): return Level.HIGH
def swap(p): return Pair(p.b, p.a)
def pay(n): raise Short(n)
def memo(f):
    known = {}
    @wraps(f)
    def inner(x):
        if x in known: inner.hits += 1
        else: known[x] = f(x)
        return known[x]
    inner.hits = 0
    return inner
def third(): return Fraction(1, 3)
def matrix():
    import numpy
    return numpy.array([[1.0, 2.0]])
def groups(text):
    found = defaultdict(int)
    for x in text: found[x] += 1
    return found
"""


@pytest.mark.parametrize(
    "tested",
    [
        "p = middle(Point(0), Point(2, 2))\nassert (p.x, p.y) == (1, 1) and p == Point(1, 1) and p != Point(0)\n"
        "assert isinstance(p, Point) and p.scale(3).x == 3 and repr(p) == 'Point(x=1.0, y=1.0)' and p != (1, 1)",
        "v = Vector(3, 4)\nassert abs(v) == 5 and v * 2 == Vector(6, 8) and 2 * v == v + v and (-v).x == -3\n"
        "assert v[0] == 3 and list(v) == [3, 4] and len({v, Vector(3, 4)}) == 1",
        "import unittest\nclass T(unittest.TestCase):\n    def setUp(self): self.v = Vector(3, 4)\n"
        "    def test(self):\n        self.assertEqual(self.v * 2, Vector(6, 8))\n"
        "        self.assertAlmostEqual(abs(self.v), 5.0)",
        "assert paint(1) is Color.RED and paint(2) == Color.BLUE != Color.RED and Color.RED.value == 1\n"
        "assert Color['BLUE'].name == 'BLUE' and len(list(Color)) == 2",
        "assert Level.HIGH == 2 and level() == Level.HIGH and Level.LOW < Level.HIGH and level() == 2",
        "assert level() == 2 and level() + 1 == 3",
        "t = Tree()\nfor x in (2, 1, 3): t.insert(x)\nassert t.root.left.value == 1 and t.find(3).value == 3\n"
        "assert t.find(9) is None and t.find(1) and 3 in t and 9 not in t",
        "s = Stack()\ns.push(1)\nassert s == [1] and len(s) == 1 and s.pop() == 1 and not s",
        "p = Pair(1)\nassert p == (1, 7) and p.a == 1 and swap(p) == Pair(7, 1) and isinstance(swap(p), Pair)",
        "import pytest\nfrom solution import BankError, pay\ndef test_a():\n"
        "    with pytest.raises(BankError, match='short 5') as caught: pay(5)\n    assert caught.value.amount == 5",
        "calls = []\n@memo\ndef g(x):\n    calls.append(x)\n    return x + 1\n"
        "assert g(1) == g(1) == 2 and calls == [1] and g.hits == 1 and g.__name__ == 'g'",
        "from fractions import Fraction\nassert third() == Fraction(1, 3) and abs(third() - 1 / 3) < 1e-9",
        "import numpy as np\nnp.testing.assert_allclose(matrix(), [[1.0, 2.0]])\n"
        "assert matrix().shape == (1, 2) and np.allclose(matrix() @ np.ones(2), 3)",
        "assert groups('aab') == {'a': 2, 'b': 1} and groups('')['x'] == 0",
        "assert sorted([Card(2), Card(1)]) == [Card(1), Card(2)] and max(Card(1), Card(3)).rank == 3\n"
        "assert {Card(1): 5}[Card(1)] == 5 and Card(1) in [Card(2), Card(1)]",
        "b = Builder()\nassert b.add(1) is b and b.add(2).items == [1, 2]",
        "assert list(Countdown(3)) == [2, 1, 0]\nc = Countdown(1)\nassert next(c) == 0 and next(c, None) is None",
    ],
)
def test_programs_with_classes_of_their_own(verify, tested):
    verdict = verify([OWN], [tested])[0]
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
    assert program("```python\na\n```\n```py\nb\n```\n```python\nc") == "b"
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
