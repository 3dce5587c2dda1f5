"""Messages between a program and its tests: each side asks, and answers while it waits.

Copied into the sandbox beside answer_link.py; uses the standard library only. A message is a line of JSON:

    {"do": what, "value": arguments, "heap": changes}      a request, answered by the method do_what
    {"value": result, "heap": changes}                     its answer, or
    {"error": [names of classes, arguments, attributes], "heap": changes}

`Link` is the side of the program, which trusts the tests; tests_side.py has the other one.
"""

import builtins
import json
import os
import signal
import types
from _thread import RLock
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from plain_data import KINDS, Heap, named_tuple
from remote_objects import OPERATORS, Opaque, Remote, stream

MODULES = ("__main__", "solution")
"""Names of the modules of tests and program."""


def wait_for_the_end() -> NoReturn:
    """Wait for the signal that ends this process."""
    while True:
        signal.pause()


class Link:
    """Connection to the other process."""

    def __init__(self, descriptor: int, names: dict[str, Any] | None = None) -> None:
        """names: what the tests may ask for by name."""
        self.reader, self.writer = os.fdopen(descriptor, "rb"), os.fdopen(os.dup(descriptor), "wb")
        self.names = {} if names is None else names
        self.named: dict[type, int] = {}
        """Classes that the tests name, with their numbers."""
        self.failure: Exception | None = None
        """Error that ended the program."""
        self.kept: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.remotes: dict[int, Any] = {}
        self.streams: dict[int, int] = {}
        """Numbers of iterators of the other side, by the id of the generator that stands for one here."""
        self.errors: dict[str, type[Exception]] = {}
        self.one_at_a_time = RLock()
        """Held by the thread that asks: a program may call a function of the tests from several."""

    # Objects ----------------------------------------------------------------------------------------------------------

    def keep(self, value: Any) -> int:
        """Keep an object that the other side uses, and return its number."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return self.numbers[id(value)]

    def stays(self, value: Any) -> bool:
        """Return True if an instance of a subclass of a plain type is an object of a class that the tests name."""
        return self.class_of(value) is not None

    def class_of(self, value: Any) -> int | None:
        """Return the number of the class of a value, if the tests name it."""
        return next((self.named[kind] for kind in type(value).__mro__ if kind in self.named), None)

    def describe(self, value: Any) -> Any:
        """Return as JSON an object of the other side, a class of errors or named tuples, or what stays here."""
        if isinstance(value, Opaque):
            return {"yours": object.__getattribute__(value, "_number")}
        if id(value) in self.streams:
            return {"yours": self.streams[id(value)]}
        if isinstance(value, type) and issubclass(value, Exception):
            return {"error": self.name_error(value)}
        if isinstance(value, type) and _is_record(value):
            return {"record": [value.__name__, list(value._fields), list(value._field_defaults.values())]}  # type: ignore[attr-defined]
        return {"mine": self.portrait(value)}

    def portrait(self, value: Any) -> list[Any]:
        """Return number and kind of an object that stays here, and the number of its class."""
        of = self.class_of(value)
        if isinstance(value, type):
            kind = "class"
        elif isinstance(value, types.ModuleType):
            kind = "module"
        elif of is None and hasattr(type(value), "__next__"):
            kind = "iterator"
        else:
            kind = "function" if of is None and callable(value) else "object"
        return [self.keep(value), kind, of]

    def find(self, kind: str, content: Any, how: str, name: str) -> Any:
        """Return the object that the other side described. how, name: see tests_side.py."""
        if kind == "yours":
            return self.kept[content]
        if kind == "error":
            return self.error(*content)
        if kind == "record":
            return named_tuple(*content)
        if kind == "mine":
            return self.remote(*content, how=how, name=name)
        raise TypeError(f"no kind {kind}")

    def remote(self, number: int, kind: str, of: int | None, *, how: str, name: str) -> Any:
        """Return what stands for an object of the other side: a generator for an iterator."""
        if number not in self.remotes:
            made: Any = Remote(self, number, True)
            self.remotes[number] = self.stream(made, number) if kind == "iterator" else made
        return self.remotes[number]

    def stream(self, remote: Opaque, number: int) -> Iterator[Any]:
        """Return a generator of the items of an iterator."""
        made = stream(self, remote)
        self.streams[id(made)] = number
        return made

    def name_error(self, kind: type[Exception]) -> list[str]:
        """Return the names of a class of errors and of those that it extends, up to a built-in one."""
        self.errors.setdefault(kind.__name__, kind)
        names = []
        for base in kind.__mro__:
            names.append(base.__name__)
            if getattr(builtins, base.__name__, None) is base:
                break
        return names

    def error(self, *names: str) -> type[Exception]:
        """Return the class of errors of this name."""
        if names[0] not in self.errors:
            known = getattr(builtins, names[0], Exception)
            known = known if isinstance(known, type) and issubclass(known, Exception) else Exception
            if len(names) > 1:
                known = type(names[0], (self.error(*names[1:]),), {"__module__": "builtins"})
            self.errors[names[0]] = known
        return self.errors[names[0]]

    def applies(self, what: str) -> bool:
        """Return True: a program may ask for anything; tests_side.py decides."""
        return True

    # Messages ---------------------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        try:
            self.writer.write(json.dumps(message).encode() + b"\n")
            self.writer.flush()
        except (BrokenPipeError, ConnectionResetError):
            wait_for_the_end()

    def receive(self) -> dict[str, Any]:
        """Return the next message; without another process, wait to be ended: its exit code is what is reported."""
        try:
            line = self.reader.readline()
        except ConnectionResetError:  # the other process ended before it had read everything
            line = b""
        if not line.endswith(b"\n"):
            wait_for_the_end()
        return dict(json.loads(line))

    def heap(self, do: str, args: tuple[Any, ...]) -> Heap:
        """Return the heap of a request."""
        return Heap(self)

    def read(self, heap: Heap, message: dict[str, Any], part: str) -> Any:
        """Return a part of a message."""
        heap.change(message["heap"])
        return heap.unpack(message[part])

    def ask(self, do: str, *args: Any, **named: Any) -> Any:
        """Return what the other side answers. Raises its error."""
        heap = self.heap(do, args)
        with self.one_at_a_time:
            value = heap.pack((args, tuple(named.items())))
            self.send({"do": do, "value": value, "heap": heap.changes()})
            while "do" in (message := self.receive()):
                self.answer(message)
        if "error" not in message:
            return self.read(heap, message, "value")
        names, given, attributes = self.read(heap, message, "error")
        kind = self.error(*names)
        try:
            error = kind(*given)
        except TypeError:  # a class with other arguments
            error = kind.__new__(kind, *given)
        for name, value in attributes:
            if name[0] != "_" and not hasattr(kind, name):
                setattr(error, name, value)
        raise error

    def answer(self, message: dict[str, Any]) -> None:
        """Do what the other side asks, and send value or error."""
        heap = Heap(self)
        try:
            args, named = self.read(heap, message, "value")
            found = {"value": heap.pack(getattr(self, f"do_{message['do']}")(*args, **dict(named)))}
        except Exception as error:
            found = {"error": heap.pack(self.tell(error))}
        self.send(found | {"heap": heap.changes()})

    def tell(self, error: Exception) -> tuple[Any, ...]:
        """Return names, arguments and public attributes of an error."""
        given = tuple(x if isinstance(x, int | float | str | None) else str(x) for x in error.args)
        if any("__str__" in vars(kind) for kind in type(error).__mro__ if kind.__module__ in MODULES):
            given = (str(error),)
        own = tuple((name, x) for name, x in vars(error).items() if not name.startswith("_"))
        return tuple(self.name_error(type(error))), given, own

    def serve(self) -> None:
        """Answer until this process is ended."""
        while True:
            self.answer(self.receive())

    def attempt(self, start: Callable[[], object]) -> None:
        """Run the program; its error is raised where the tests are."""
        try:
            start()
        except Exception as error:
            self.failure = error

    # Requests ---------------------------------------------------------------------------------------------------------

    def do_ready(self, wanted: tuple[str, ...] = ()) -> Any:
        """Return the numbers of the classes among the names that the tests use. Raises the error of the program."""
        if self.failure:
            raise self.failure
        found = [(name, self.names[name]) for name in wanted if name in self.names]
        own = [(name, kind) for name, kind in found if isinstance(kind, type) and kind.__module__ in MODULES]
        self.named = {kind: self.keep(kind) for _, kind in own if not _is_record(kind)}
        return tuple(self.named.values())

    def do_name(self, name: str) -> Any:
        return self.names[name]

    def do_call(self, function: Any, *args: Any, **named: Any) -> Any:
        return function(*args, **named)

    def do_get(self, value: Any, name: str) -> Any:
        return getattr(value, name)

    def do_set(self, value: Any, name: str, content: Any) -> None:
        setattr(value, name, content)

    def do_isinstance(self, value: Any, kind: Any) -> bool:
        return isinstance(value, kind)

    def do_issubclass(self, value: Any, kind: Any) -> bool:
        return issubclass(value, kind)

    def do_operator(self, name: str, *args: Any) -> Any:
        return OPERATORS[name](*args)

    def do_step(self, iterator: Any, given: Any) -> Any:
        """Return the next item of an iterator."""
        return next(iterator) if given is None else iterator.send(given)

    def do_plain(self, value: Any) -> Any:
        """Return the plain value of an instance of a subclass of a plain type."""
        kind = next((base for base in KINDS if issubclass(type(value), base)), None)
        if kind is None:
            raise TypeError("not a plain value")
        return str.__str__(value) if kind is str else dict(value) if issubclass(kind, dict) else kind(value)


def _is_record(kind: type) -> bool:
    """Return True for a class of named tuples that has nothing more than its fields."""
    fields = getattr(kind, "_fields", None)
    return issubclass(kind, tuple) and fields is not None and not {x for x in vars(kind) if x[0] != "_"} - {*fields}
