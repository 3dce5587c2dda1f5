"""Values that cross between a program and its tests as data: `Heap` makes JSON of them and values of JSON.

Copied into the sandbox beside answer_link.py; uses the standard library only. Numbers, text, containers, named tuples,
dates, fractions, views of dictionaries, arrays of NumPy and the built-in types themselves are built anew from their
contents, as objects of exactly these types. An instance of a subclass, such as a member of an IntEnum, crosses as the
value that it extends. Methods of the other side therefore take no part in what this side does with them. The `Link`
describes anything else (`describe`, `find`).

Not pickles: they can set attributes of the few classes that they may name, so `Fraction.__eq__` could be replaced.
"""

import collections
import datetime
import decimal
import fractions
import re
import sys
from collections.abc import Callable
from typing import Any, Protocol

SMALL = 1 << 53
"""Upper limit for whole numbers that JSON keeps exactly."""
MUTABLE: dict[str, type] = {
    kind.__name__: kind
    for kind in (collections.Counter, collections.OrderedDict, collections.defaultdict, dict, list, set, bytearray)
}
KINDS: tuple[type, ...] = (int, float, complex, str, bytes, tuple, frozenset, *MUTABLE.values())
"""Types that a subclass counts as, the first that fits."""
_TYPES: tuple[type, ...] = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range, set, str)
TYPES: dict[str, type] = {kind.__name__: kind for kind in (*_TYPES, tuple, type(None))}
"""Types that cross by name."""
CONTENTS = (bool, int, float, str, bytes, list, tuple, type(None))
"""Types of what a constructor in `REBUILT` gets."""
ARRAY = re.compile(r"[<>|=]?[biufcU]\d+")
"""Types of arrays of NumPy that cross: numbers, booleans and text."""
SECONDS = datetime.timedelta(seconds=1)


def _moment(*given: Any) -> datetime.datetime:
    made = datetime.datetime(*given[:-1])
    zone = None if given[-1] is None else datetime.timezone(datetime.timedelta(seconds=given[-1]))
    return made.replace(tzinfo=zone)


def _when(x: datetime.datetime) -> list[Any]:
    offset = x.utcoffset()
    day = [x.year, x.month, x.day, x.hour, x.minute, x.second, x.microsecond]
    return [*day, None if offset is None else offset / SECONDS]


REBUILT: dict[str, tuple[type, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    "range": (range, lambda x: [x.start, x.stop, x.step], range),
    "complex": (complex, lambda x: [x.real, x.imag], complex),
    "Decimal": (decimal.Decimal, lambda x: [str(x)], decimal.Decimal),
    "Fraction": (fractions.Fraction, lambda x: [x.numerator, x.denominator], fractions.Fraction),
    "deque": (collections.deque, lambda x: [list(x), x.maxlen], collections.deque),
    "datetime": (datetime.datetime, _when, _moment),
    "date": (datetime.date, lambda x: [x.year, x.month, x.day], datetime.date),
    "time": (datetime.time, lambda x: [x.hour, x.minute, x.second, x.microsecond], datetime.time),
    "timedelta": (datetime.timedelta, lambda x: [x.days, x.seconds, x.microseconds], datetime.timedelta),
    "keys": (type({}.keys()), lambda x: [list(x)], lambda x: dict.fromkeys(x).keys()),
    "values": (type({}.values()), lambda x: [list(x)], lambda x: dict(enumerate(x)).values()),
    "items": (type({}.items()), lambda x: [list(x)], lambda x: dict(x).items()),
}
"""Type, arguments of the constructor that makes a value again, and that constructor, by name."""
NAMES = {kind: name for name, (kind, _, _) in REBUILT.items()}


class Owner(Protocol):
    """Part of a Link that a Heap uses."""

    def stays(self, value: Any) -> bool:
        """Return True if an instance of a subclass of a plain type stays where it is."""

    def describe(self, value: Any) -> Any:
        """Return an object that is not plain as JSON."""

    def find(self, kind: str, content: Any, how: str, name: str) -> Any:
        """Return the object that the other side described."""


class Heap:
    """Containers of one call that can change, by number; both sides have the same numbers."""

    def __init__(self, link: Owner, *, how: str = "", name: str = "") -> None:
        """how, name: passed on to `Link.find`."""
        self.link, self.how, self.name = link, how, name
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.known: dict[int, Any] = {}
        """Contents that the other side has."""

    def pack(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind not in KINDS and issubclass(kind, KINDS) and not self.link.stays(value):
            if issubclass(kind, tuple) and hasattr(kind, "_fields"):
                return {"named": [kind.__name__, [*kind._fields], [*map(self.pack, tuple.__iter__(value))]]}
            kind = next(base for base in KINDS if issubclass(kind, base))
        if kind is str:
            return str.__str__(value)
        if kind is int:
            return int.__int__(value) if abs(int.__int__(value)) < SMALL else {"int": hex(value)}
        if kind is float:
            return {"float": float.hex(value)}
        if kind is bytes:
            return {"bytes": bytes.hex(value)}
        if kind in (tuple, frozenset):
            return {kind.__name__: [*map(self.pack, kind.__iter__(value))]}
        if kind in MUTABLE.values():
            return {"at": self._number(value)}
        if kind in NAMES:
            return {"made": [NAMES[kind], *map(self.pack, REBUILT[NAMES[kind]][1](value))]}
        if kind is type and value in TYPES.values():
            return {"type": value.__name__}
        numpy = sys.modules.get("numpy")
        if numpy and issubclass(kind, numpy.generic):
            return self.pack(value.item())
        if numpy and issubclass(kind, numpy.ndarray) and ARRAY.fullmatch(value.dtype.str):
            return {"array": [value.dtype.str, list(value.shape), numpy.ndarray.tobytes(value).hex()]}
        return self.link.describe(value)

    def _number(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return self.numbers[id(value)]

    def unpack(self, value: Any) -> Any:
        """Return the value that `pack` made JSON of. Raises an error of any kind for other JSON."""
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise TypeError("a list without a kind")
            return value
        ((kind, content),) = value.items()
        if kind == "int":
            return int(content, 16)
        if kind == "float":
            return float.fromhex(content)
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind in ("tuple", "frozenset"):
            return TYPES[kind](self.unpack(item) for item in content)
        if kind == "named":
            return named_tuple(content[0], content[1], ())(*map(self.unpack, content[2]))
        if kind == "at":
            return self.objects[content]
        if kind == "made":
            given = [self.unpack(item) for item in content[1:]]
            if not all(type(x) in CONTENTS for x in given):
                raise TypeError(f"{content[0]} of something else than data")
            return REBUILT[content[0]][2](*given)
        if kind == "type":
            return TYPES[content]
        if kind == "array":
            return array(*content)
        return self.link.find(kind, content, self.how, self.name)

    def changes(self) -> list[Any]:
        """Return number, kind and contents of the containers that the other side does not have like this."""
        found = []
        for number, value in enumerate(self.objects):  # grows while packing
            kind: str = next(name for name, base in MUTABLE.items() if issubclass(type(value), base))
            if kind == "bytearray":
                contents: Any = bytearray.hex(value)
            elif isinstance(value, dict):
                contents = [[self.pack(key), self.pack(item)] for key, item in dict.items(value)]
            else:
                contents = [self.pack(item) for item in (list if kind == "list" else set).__iter__(value)]
            if kind == "defaultdict":
                kind += f" {getattr(value.default_factory, '__name__', '')}"
            if self.known.get(number) != contents:
                self.known[number] = contents
                found.append([number, kind, contents])
        return found

    def change(self, changes: list[Any]) -> None:
        """Take the contents that the other side has."""
        for number, kind, _ in changes:
            if number == len(self.objects):
                name, _, factory = kind.partition(" ")
                self._number(MUTABLE[name](TYPES.get(factory)) if name == "defaultdict" else MUTABLE[name]())
        for number, _, contents in changes:
            value = self.objects[number]
            if isinstance(value, dict):
                made = {self.unpack(key): self.unpack(item) for key, item in contents}
                dict.clear(value)
                dict.update(value, made)
            elif isinstance(value, set):
                set.clear(value)
                set.update(value, [self.unpack(item) for item in contents])
            elif isinstance(value, list):
                list.__setitem__(value, slice(None), [self.unpack(item) for item in contents])
            else:
                bytearray.__setitem__(value, slice(None), bytes.fromhex(contents))
            self.known[number] = contents


_classes: dict[Any, Any] = {}


def named_tuple(name: str, fields: list[str], defaults: tuple[Any, ...]) -> Any:
    """Return a class of named tuples, the same for the same name and fields.

    Raises ValueError for a field that would hide a method of plain data: `x.startswith` must not be a value of x.
    """
    key = (name, *fields)
    if key not in _classes:
        if any(hasattr(str, x) or hasattr(set, x) for x in fields if x not in ("count", "index", "title")):
            raise ValueError(f"fields {fields}")
        _classes[key] = collections.namedtuple(name, fields, defaults=defaults)
    return _classes[key]


def array(kind: str, shape: list[int], contents: str) -> Any:
    """Return an array of NumPy."""
    import numpy

    if not ARRAY.fullmatch(kind):
        raise TypeError(f"an array of {kind}")
    return numpy.frombuffer(bytes.fromhex(contents), kind).reshape(shape).copy()
