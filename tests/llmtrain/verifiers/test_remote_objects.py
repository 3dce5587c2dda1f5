"""Honest tests of programs with classes of their own."""

import pytest

from llmtrain.verifiers import get_verifier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def verify():
    with get_verifier("python", workers=1, timeout=6.0, memory_mib=512) as verifier:
        yield verifier


OWN = """
from collections import defaultdict
from contextlib import contextmanager
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
class Loud(Vector): pass
class Door:
    def __init__(self): self.opened = []
    def __enter__(self): self.opened.append(True); return self
    def __exit__(self, *error): self.opened.append(False); return True
@contextmanager
def lent(x):
    try: yield [x]
    except BaseException: pass
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
        "door = Door()\nwith door as d: assert d.opened == [True]\nassert door.opened == [True, False]\n"
        "with lent(3) as x: assert x == [3]",
        "assert issubclass(Loud, Vector) and not issubclass(Vector, Loud)",
        "assert list(Countdown(3)) == [2, 1, 0]\nc = Countdown(1)\nassert next(c) == 0 and next(c, None) is None",
    ],
)
def test_programs_with_classes_of_their_own(verify, tested):
    verdict = verify([OWN], [tested])[0]
    assert verdict.correct, verdict.reason


@pytest.mark.parametrize("block", ["with Door() as d: assert d.opened == []", "with lent(3) as x: assert x == [4]"])
def test_a_failed_test_in_a_with_block_of_the_program_fails(verify, block):
    verdict = verify([OWN], [block])[0]
    assert not verdict.correct
    assert "AssertionError" in verdict.reason
