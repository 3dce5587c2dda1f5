"""Stand-ins for objects of the other process: by class, what the process that holds them may do.

Copied into the sandbox beside answer_link.py; uses the standard library only. The tests hold one of

    Opaque      an object of a class that the tests do not name: any use raises TypeError
    Function    a function: can be called; an attribute that plain values have too must be data
    Class       a class that the tests name: can be called, asked for attributes and items
    Instance    an object of such a class, or reached from one: attributes, methods, items, conversions

and a program holds a `Remote`, which forwards everything, for each object that the tests pass to it.

The rule behind `Instance`: nothing that a test expects is sent to the program in order to be judged there. `abs(x)`,
`len(x)` or `x.size` send nothing; `x - 4.0`, `x < 4`, `x == 4` or `x.startswith("a")` would. Equality with a plain
value is therefore decided here, order raises TypeError, and arithmetic, `in` and the methods in `PREDICATES` are
forwarded only if the text of the tests applies them to an object that the tests construct.
"""

import builtins
import collections
import operator
from collections.abc import Callable, Iterator
from typing import Any

BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift")
UNARY = (
    *("neg", "pos", "abs", "invert", "len", "str", "repr", "bool", "iter", "next", "int", "float", "round", "reversed"),
    "hash",
)
ITEMS = ("getitem", "setitem", "delitem")
ORDER = ("lt", "le", "gt", "ge")
OPERATORS: dict[str, Any] = {
    name: getattr(operator, name, None) or getattr(builtins, name)
    for name in (*BINARY, *UNARY, *ITEMS, *ORDER, "eq", "contains")
} | {"enter": lambda x: type(x).__enter__(x), "exit": lambda x: type(x).__exit__(x, None, None, None)}
SHOWN = ("__name__", "__qualname__", "__doc__", "__wrapped__", "__annotations__", "__dict__", "__members__")
"""Attributes with underscores on both sides that are forwarded. Libraries ask for others, such as `__array__`."""
PLAIN_NAMES = {
    name
    for kind in (int, float, complex, str, bytes, list, tuple, dict, set, frozenset, collections.deque)
    for name in dir(kind)
} | {"all", "any", "dtype", "shape", "sum", "T", "tolist", "total_seconds"}
"""Attributes of plain values."""
PREDICATES = {"startswith", "endswith", "issubset", "issuperset", "isdisjoint"} | {
    name for kind in (str, float) for name in dir(kind) if name.startswith("is")
}
"""Methods of plain values that tell whether an argument is right."""


class Opaque:
    """Object of a class that the tests do not name."""

    _link: Any
    _number: int
    _reached: bool

    def __init__(self, link: Any, number: int, reached: bool) -> None:
        """reached: objects that this one gives are `Instance`s too."""
        for name, value in (("_link", link), ("_number", number), ("_reached", reached)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return "<object of the program>"

    def _refuse(self, *args: Any) -> Any:
        raise TypeError("the program returned an object of a class that the tests do not name")

    __eq__ = __ne__ = __bool__ = __hash__ = __str__ = __format__ = __setattr__ = __delattr__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

    def __enter__(self) -> Any:
        return self._link.ask("operator", "enter", self)

    def __exit__(self, *error: object) -> None:
        """Leave the block; an error in it stays one, whatever the object says: it may be that of a failed test."""
        self._link.ask("operator", "exit", self)


class Function(Opaque):
    """Function of the program."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._link.ask("call", self, *args, **named)

    def __getattr__(self, name: str) -> Any:
        return self._get(name, PLAIN_NAMES)

    def _get(self, name: str, data: set[str]) -> Any:
        """Return an attribute. data: names that must be those of data."""
        if name.startswith("__") and name not in SHOWN:
            raise AttributeError(name)
        found = self._link.ask("get", self, name)
        if name in data and isinstance(found, Opaque) and not self._link.applies(name):
            raise TypeError(f"{name} of an object of the program: only that of plain data is used")
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.ask("set", self, name, value)

    def __eq__(self, other: Any) -> bool:
        return self is other if isinstance(other, Opaque) else self._refuse()

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._number


class Remote(Function):
    """Object whose use is forwarded."""

    def __getattr__(self, name: str) -> Any:
        return self._link.ask("get", self, name)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, Opaque):
            return self is other or self._link.ask("operator", "eq", self, other) is True
        try:
            return bool(self._link.ask("plain", self) == other)
        except TypeError:
            return NotImplemented

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._link.ask("isinstance", value, self) is True

    def __subclasscheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._link.ask("issubclass", value, self) is True

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __contains__(self, item: Any) -> bool:
        """Return True if the object has an item: it is asked if the tests ask it, otherwise its items are compared."""
        if self._link.applies("in"):
            return self._link.ask("operator", "contains", self, item) is True
        return any(item is found or item == found for found in iter(self))

    __array_ufunc__ = None  # NumPy leaves operators to this class


class Class(Remote):
    """Class that the tests name."""

    __eq__ = Function.__eq__
    __hash__ = Function.__hash__

    def __getattr__(self, name: str) -> Any:
        return self._get(name, PREDICATES)


class Instance(Remote):
    """Object of a class that the tests name, or reached from one."""

    def __getattr__(self, name: str) -> Any:
        return self._get(name, PREDICATES)


def _forward(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    """Return a method that applies an operator where the object is."""

    def method(self: Remote, *args: Any) -> Any:
        if name in BINARY and not isinstance(args[0], Opaque) and not self._link.applies("operator"):
            return NotImplemented
        if name in ORDER and not isinstance(args[0], Opaque):
            return NotImplemented
        given = (*args, self) if swapped else (self, *args)
        return self._link.ask("operator", name, *given)

    return method


for _name in (*BINARY, *UNARY, *ITEMS, *ORDER):
    setattr(Remote, f"__{_name.rstrip('_')}__", _forward(_name))
for _name in BINARY:
    setattr(Remote, f"__r{_name.rstrip('_')}__", _forward(_name, swapped=True))


for _kind in (Function, Remote, Class, Instance):
    setattr(_kind, "__doc__", property(lambda self: self._link.ask("get", self, "__doc__")))  # noqa: B010


def stream(link: Any, remote: Opaque) -> Iterator[Any]:
    """Yield the items of an iterator of the other process."""
    given = None
    while True:
        try:
            item = link.ask("step", remote, given)
        except StopIteration as end:
            return end.value
        given = yield item
