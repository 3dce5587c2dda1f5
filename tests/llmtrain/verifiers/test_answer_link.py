"""The link between a program and its tests, in one process: what the side of the tests takes and gives."""

import collections
import datetime
import decimal
import enum
import fractions
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from socket import socketpair

import numpy
import pytest

from llmtrain.verifiers import answer_link  # noqa: F401  makes the files of the sandbox importable

import link_messages  # isort: skip
import plain_data  # isort: skip
import remote_objects  # isort: skip
import tests_side  # isort: skip


class Failed(BaseException):
    """End of the tests."""


class Judge(tests_side.TestsLink):
    """Tests' side that raises where the real one ends its process."""

    def fail(self, reason):
        raise Failed(reason)


class Pair:
    """Tests' side of a link, and the program's in a thread."""

    def __init__(self, text="", **names):
        one, other = socketpair()
        self.tests = Judge(one.detach(), text)
        self.program = link_messages.Link(other.detach(), names)
        threading.Thread(target=self.program.serve, daemon=True).start()

    def __getattr__(self, name):
        return self.tests.ask("name", name)


def sent(line):
    """Return the tests' side of a link on which the program has sent a line."""
    one, other = socketpair()
    os.write(other.fileno(), (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")
    other.detach()  # stays open
    return Judge(one.detach(), "")


Point = collections.namedtuple("Point", "x y")
Level = enum.IntEnum("Level", "LOW HIGH")
PLAIN = [
    *(None, True, 0, -3, 2**70, 0.1, float("inf"), "", "ä\ud800", b"x", (), (1, (2,)), [1, [2]], {1: {2: 3}}, {1, 2}),
    *(frozenset({1}), bytearray(b"x"), range(1, 9, 2), 1j, decimal.Decimal("1.50"), fractions.Fraction(1, 3)),
    *(collections.deque([1], 3), collections.Counter("aab"), collections.OrderedDict(a=1), {}.keys(), {1: 2}.items()),
    *(datetime.date(2020, 1, 2), datetime.timedelta(1, 2, 3), datetime.time(1, 2), int, type(None)),
    *(datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), Point(1, [2])),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_crosses_as_it_is(value):
    back = Pair(same=lambda x: x).same(value)
    assert back == value
    assert type(back) is type(value) or isinstance(value, Point)


@pytest.mark.parametrize("value", [numpy.arange(6).reshape(2, 3).T, numpy.array(["a", "bc"]), numpy.zeros((0, 2))])
def test_arrays_keep_shape_and_type(value):
    back = Pair(same=lambda: value).same()
    assert back.dtype == value.dtype
    numpy.testing.assert_array_equal(back, value)


class Text(str):
    __slots__ = ()
    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = str.__hash__


class Array(numpy.ndarray):
    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = None


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Text("a"), "a"),
        (Level.HIGH, 2),
        (numpy.float64(0), 0.0),
        (numpy.int64(0), 0),
        (numpy.zeros(2).view(Array), numpy.zeros(2)),
        (type("Own", (list,), {"__iter__": lambda self: iter([4])})([7]), [7]),
        (type("Own", (dict,), {"__getitem__": lambda self, key: 4})(a=7), {"a": 7}),
    ],
)
def test_instances_of_subclasses_cross_as_the_plain_value(value, wanted):
    back = Pair(give=lambda: value).give()
    assert type(back) is type(wanted)
    assert numpy.array_equal(back, wanted)


def test_a_default_dictionary_keeps_its_default():
    back = Pair(give=lambda: collections.defaultdict(int, a=1)).give()
    assert (back["a"], back["b"]) == (1, 0)


class Number:
    __sub__ = __rsub__ = __lt__ = __getitem__ = __iter__ = lambda self, *args: 0.0
    __eq__ = __bool__ = __contains__ = lambda self, *args: True
    __hash__ = lambda self: 4  # noqa: E731
    __float__ = __abs__ = __round__ = lambda self, *args: 4.0
    startswith = lambda self, text: True  # noqa: E731


USES = [
    *(lambda x: x - 4, lambda x: 4 - x, lambda x: x == 4, lambda x: x == 4, lambda x: x != 4, lambda x: x < 4),
    *(bool, float, abs, round, iter, list, len, hash, str, lambda x: x(), lambda x: f"{x:.2f}", lambda x: x.value),
    *(
        lambda x: x.startswith("a"),
        lambda x: x[0],
        lambda x: 4 in x,
        lambda x: x in [4],
        lambda x: numpy.array([4]) - x,
    ),
    lambda x: numpy.allclose(x, 4.0),
]


@pytest.mark.parametrize("number", range(len(USES)))
def test_any_use_of_an_object_of_an_unnamed_class_raises_type_error(number):
    with pytest.raises(TypeError):
        USES[number](Pair(f=lambda x: Number()).f(2))


TEXT = "a = Account(5)\nassert a.balance == 5"


def account(text=TEXT):
    """Return an object of a class that the tests name, whose objects lie."""
    kind = type("Account", (Number,), {"__init__": lambda self, balance: None, "__module__": "__main__"})
    kind.balance, kind.name, kind.deposit = property(lambda self: self), "x", lambda self, n: self
    pair = Pair(text, Account=kind)
    pair.tests.start()
    return pair.Account(5)


def test_an_object_of_a_named_class_is_not_asked_to_judge():
    made = account()
    assert made.balance is made
    assert made.name == "x"
    assert made != 5
    for use in (lambda x: x - 4, lambda x: 4 - x, lambda x: x < 4, lambda x: x.startswith("a"), lambda x: 4 in x):
        with pytest.raises(TypeError):
            use(made)


def test_operators_are_forwarded_if_the_tests_apply_them_to_what_they_construct():
    made = account("a = Account(5)\nassert a - 4 == 0.0 and 4 in a and a.startswith('a')")
    assert made - 4 == 0.0
    assert 4 in made
    assert made.startswith("a")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Vector(1) * 2", "operator"),
        ("import solution\n2 * solution.Vector(1)", "operator"),
        ("a, b = Vector(1), 2\na * b", "operator"),
        ("def v():\n    return Vector(1)\ndef test(v):\n    v + 1", "operator"),
        ("self.v = Vector(1)\nself.v += 1", "operator"),
        ("t = Trie()\n'a' in t", "in"),
        ("t = Trie()\nt.startswith('a')", "startswith"),
        ("Account(5).balance - 5", ""),
        ("from fractions import Fraction\nFraction(1) - f(2)", ""),
        ("Solution().f(2) - 4", ""),
    ],
)
def test_what_tests_apply_to_what_they_construct(text, found):
    assert tests_side.applied_to(text) & {"operator", "in", "startswith"} == ({found} if found else set())


def test_generators_functions_and_errors_can_be_used():
    class AppError(ValueError):
        def __init__(self, code):
            super().__init__(f"code {code}")
            self.code = code

    def fails(code):
        raise AppError(code)

    def count(n):
        for x in range(n):
            got = yield x
            if got:
                yield got

    pair = Pair(count=count, adder=lambda a: lambda b: a + b, fails=fails, AppError=AppError, Number=Number)
    assert list(pair.count(3)) == [0, 1, 2]
    items = pair.count(3)
    assert (next(items), items.send(7), next(items)) == (0, 7, 1)
    assert pair.adder(3)(4) == 7
    with pytest.raises(pair.AppError, match="code 3") as caught:
        pair.fails(3)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == 3
    with pytest.raises(TypeError):
        pair.adder(3) - 4


def test_stop_iteration_of_a_function_ends_no_loop():
    def stops(x):
        raise StopIteration

    pair = Pair(stops=stops)
    stops = pair.stops
    with pytest.raises(RuntimeError):
        all(map(stops, [1, 2]))


@pytest.mark.parametrize(
    "line",
    [
        *("no JSON", "[" * 10**5, "[1]", "1", {}, {"value": 1}, {"value": [1], "heap": []}, {"value": {}, "heap": []}),
        *(
            {"value": {"module": "os"}, "heap": []},
            {"value": {"at": 5}, "heap": []},
            {"value": {"yours": 5}, "heap": []},
        ),
        {"value": {"made": ["Fraction", {"mine": [1, "object", None]}, 1]}, "heap": []},
        {"value": {"array": ["|O", [1], "0" * 16]}, "heap": []},
        {"value": {"type": "open"}, "heap": []},
        {"value": {"named": ["P", ["startswith"], [True]]}, "heap": []},
        {"error": {"tuple": [{"tuple": []}, {"tuple": []}, {"tuple": []}]}, "heap": []},
        {"do": "name", "value": {"tuple": [{"tuple": ["wanted"]}, {"tuple": []}]}, "heap": []},
        {"do": "get", "value": {"tuple": [{"tuple": [1, "real"]}, {"tuple": []}]}, "heap": []},
        {"do": "operator", "value": {"tuple": [{"tuple": ["add", 1, 2]}, {"tuple": []}]}, "heap": []},
        {"do": "call", "value": {"tuple": [{"tuple": [{"type": "int"}]}, {"tuple": []}]}, "heap": []},
    ],
    ids=lambda line: json.dumps(line)[:60],
)
def test_any_other_line_ends_the_tests(line):
    with pytest.raises(Failed):
        sent(line).ask("call", 1)


@pytest.mark.parametrize("names", [["SkipTest", "Exception"], ["SystemExit"], ["KeyboardInterrupt", "BaseException"]])
def test_an_error_of_any_name_is_an_ordinary_one(names):
    line = {"error": {"tuple": [{"tuple": names}, {"tuple": []}, {"tuple": []}]}, "heap": []}
    with pytest.raises(Exception) as caught:  # noqa: PT011  any, but one of Exception
        sent(line).ask("call", 1)
    assert type(caught.value).__name__ not in dir(threading)
    assert not isinstance(caught.value, pytest.skip.Exception)


class Node:
    """Class of tests."""

    def __init__(self, value):
        self.value, self._secret = value, 7

    def total(self):
        return self.value


Node.__module__ = "__main__"


def test_a_program_uses_what_the_tests_pass_to_it_and_nothing_else():
    def tries(node, name):
        try:
            return getattr(node, name)
        except AttributeError as error:
            return f"no {error}"

    def change(node, name, value):
        setattr(node, name, value)

    pair, node = Pair(tries=tries, change=change, call=lambda f: f(2)), Node(1)
    assert pair.tries(node, "value") == 1
    assert pair.tries(node, "_secret") == "no _secret"
    assert pair.tries(node, "__class__") is not Node
    assert pair.tries(lambda: 1, "__globals__") == "no __globals__"
    pair.change(node, "value", 5)
    assert node.total() == 5
    with pytest.raises(AttributeError):
        pair.change(node, "total", lambda: 4)
    assert pair.call(lambda x: x + 1) == 3
    for sent in (json, test_stop_iteration_of_a_function_ends_no_loop):
        with pytest.raises(TypeError, match="does not cross"):
            pair.call(sent)


def test_a_program_may_call_a_function_of_the_tests_from_threads():
    def each(f, items):
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(f, items))

    assert Pair(each=each).each(lambda x: x + 1, list(range(50))) == list(range(1, 51))


def test_a_program_may_ask_for_the_class_of_what_it_got():
    pair = Pair(check=lambda x, kind: isinstance(x, kind))
    assert pair.check(Node(1), Node)
    assert not pair.check(Node(1), Number)


def test_an_assertion_in_a_callback_ends_the_tests():
    def guesses(check):
        for x in range(9):
            try:
                check(x)
                return x
            except AssertionError:
                pass

    def check(x):
        assert x == 4

    with pytest.raises(Failed):
        Pair(guesses=guesses).guesses(check)


def test_arguments_that_a_call_changes_are_changed():
    def sort(items):
        items.sort()
        return items

    given = [3, 1]
    assert Pair(sort=sort).sort(given) is given
    assert given == [1, 3]


def test_stand_ins_say_nothing_of_the_program():
    assert repr(Pair(f=lambda x: Number()).f(2)) == "<object of the program>"
    assert issubclass(remote_objects.Instance, remote_objects.Opaque)
    assert plain_data.TYPES["int"] is int
