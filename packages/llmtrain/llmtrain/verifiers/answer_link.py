"""Run a program and its tests in two processes that exchange plain values: `python answer_link.py ROLE FILE FD`.

    tests ── name of a function, arguments ──► answer      ROLE tests: the statements of FILE, which ask for its names
          ◄── value or error, changed arguments ──         ROLE answer: the program in FILE, run once
                                                           ROLE program: the program in FILE, run anew for each input

Copied into the sandbox by python_tests.py, one copy for each process; uses the standard library only. FD is a socket to
the other process; messages are lines of JSON.

Numbers, text, containers, dates, fractions and arrays of NumPy are copied, so tests compare values of their own, and no
method of the answer takes part. Arguments that a call changes are changed in the caller. Any other object stays where
it is; the other side has a `Remote` that forwards calls, attributes and operators, but is equal to a plain value only
if it is a subclass whose plain value is. Objects of the tests that the answer is given, such as a callback, can be
called, and their public attributes read and set if their class is one of the tests: nothing else of the tests is seen.
"""

import builtins
import importlib
import json
import operator
import os
import signal
import sys
import types
from collections.abc import Callable
from typing import Any

TUPLES: dict[str, type] = {"tuple": tuple, "frozenset": frozenset}
MUTABLE: dict[str, type] = {"list": list, "dict": dict, "set": set, "bytearray": bytearray}
PLAIN: tuple[Any, ...] = (bool, int, float, str, bytes, tuple, frozenset, list, dict, set, bytearray)
REBUILT: dict[str, Callable[[Any], list[Any]]] = {
    "builtins.range": lambda x: [x.start, x.stop, x.step],
    "builtins.complex": lambda x: [x.real, x.imag],
    "decimal.Decimal": lambda x: [str(x)],
    "fractions.Fraction": lambda x: [x.numerator, x.denominator],
    "collections.deque": lambda x: [list(x), x.maxlen],
    "datetime.date": lambda x: [x.year, x.month, x.day],
    "datetime.time": lambda x: [x.hour, x.minute, x.second, x.microsecond],
    "datetime.datetime": lambda x: [x.year, x.month, x.day, x.hour, x.minute, x.second, x.microsecond],
    "datetime.timedelta": lambda x: [x.days, x.seconds, x.microseconds],
    "numpy.ndarray": lambda x: [x.tolist(), x.dtype.str],
}
"""Arguments of the constructor that makes a value again, by type."""
BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift")
UNARY = ("neg", "pos", "abs", "invert", "len", "str", "repr", "bool", "iter", "next", "int", "float")
ITEMS = ("getitem", "setitem", "delitem")
COMPARISONS = ("lt", "le", "gt", "ge", "eq")
OPERATORS: dict[str, Any] = {
    name: getattr(operator, name, None) or getattr(builtins, name) for name in (*BINARY, *UNARY, *ITEMS, *COMPARISONS)
}


class Heap:
    """Containers of one call that can change, by number; both sides have the same numbers."""

    def __init__(self, link: "Link") -> None:
        self.link = link
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.known: dict[int, Any] = {}
        """Contents that the other side has."""

    def pack(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if abs(value) < 1 << 53 else {"int": hex(value)}
        if kind is float:
            return {"float": value.hex()}
        if kind is bytes:
            return {"bytes": value.hex()}
        if kind in (tuple, frozenset):
            return {kind.__name__: [self.pack(item) for item in value]}
        if kind in (list, dict, set, bytearray):
            return {"at": self._number(value)}
        if kind.__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__len__"):
            return self.pack(value.item())
        if name in REBUILT:
            return {"made": [name, *(self.pack(item) for item in REBUILT[name](value))]}
        if isinstance(value, types.ModuleType):
            return {"module": value.__name__}
        if isinstance(value, type) and issubclass(value, Exception):
            return {"error": self.link.name_error(value)}
        if isinstance(value, Remote):
            return {"yours": object.__getattribute__(value, "_number")}
        return {"mine": self.link.keep(value)}

    def _number(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return self.numbers[id(value)]

    def unpack(self, value: Any) -> Any:
        """Return the value that `pack` made JSON of."""
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "int":
            return int(content, 16)
        if kind == "float":
            return float.fromhex(content)
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind in TUPLES:
            return TUPLES[kind](self.unpack(item) for item in content)
        if kind == "at":
            return self.objects[content]
        if kind == "made" and content[0] in REBUILT:
            module, name = content[0].split(".")
            make = getattr(importlib.import_module(module), "array" if name == "ndarray" else name)
            return make(*(self.unpack(item) for item in content[1:]))
        if kind == "module":
            return self.link.module(content)
        if kind == "error":
            return self.link.error(*content)
        if kind == "yours":
            return self.link.kept[content]
        return self.link.remote(int(content))

    def changes(self) -> list[Any]:
        """Return number, kind and contents of the containers that the other side does not have like this."""
        found = []
        for number, value in enumerate(self.objects):  # grows while packing
            kind = next(name for name, base in MUTABLE.items() if isinstance(value, base))
            if kind == "bytearray":
                contents: Any = value.hex()
            elif kind == "dict":
                contents = [[self.pack(key), self.pack(item)] for key, item in value.items()]
            else:
                contents = [self.pack(item) for item in value]
            if self.known.get(number) != contents:
                self.known[number] = contents
                found.append([number, kind, contents])
        return found

    def change(self, changes: list[Any]) -> None:
        """Take the contents that the other side has."""
        for number, kind, _ in changes:
            if number == len(self.objects):
                self._number(MUTABLE[kind]())
        for number, kind, contents in changes:
            value = self.objects[number]
            if kind == "dict":
                made = {self.unpack(key): self.unpack(item) for key, item in contents}
                value.clear()
                value.update(made)
            elif kind == "set":
                value.clear()
                value.update([self.unpack(item) for item in contents])
            else:
                value[:] = bytes.fromhex(contents) if kind == "bytearray" else [self.unpack(item) for item in contents]
            self.known[number] = contents


class Remote:
    """Object of the other process."""

    def __init__(self, link: "Link", number: int) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)

    def __getattr__(self, name: str) -> Any:
        return self._link.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.ask("set", self, name, value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._link.ask("call", self, *args, **named)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._link.ask("isinstance", value, self) is True

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, Remote):
            return self is other or self._link.ask("operator", "eq", self, other) is True
        try:
            return bool(self._link.ask("plain", self) == other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._number)


def _forward(name: str, *, swapped: bool = False, only_remote: bool = False) -> Callable[..., Any]:
    """Return a method that applies an operator where the object is."""

    def method(self: Remote, *args: Any) -> Any:
        if only_remote and not isinstance(args[0], Remote):
            return NotImplemented
        given = (*args, self) if swapped else (self, *args)
        return self._link.ask("operator", name, *given)

    return method


for _name in (*BINARY, *UNARY, *ITEMS):
    setattr(Remote, f"__{_name.rstrip('_')}__", _forward(_name))
for _name in BINARY:
    setattr(Remote, f"__r{_name.rstrip('_')}__", _forward(_name, swapped=True))
for _name in COMPARISONS[:-1]:
    setattr(Remote, f"__{_name}__", _forward(_name, only_remote=True))


class Link:
    """Connection to the other process; each side asks, and answers while it waits."""

    def __init__(self, descriptor: int, names: dict[str, Any], *, guarded: bool) -> None:
        """names: what the other side may ask for by name. guarded: the other side is not trusted."""
        self.reader, self.writer = os.fdopen(descriptor, "rb"), os.fdopen(os.dup(descriptor), "wb")
        self.names, self.guarded = names, guarded
        self.kept: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.failure: Exception | None = None
        """Error that ended the program."""
        self.remotes: dict[int, Remote] = {}
        self.errors: dict[str, type[Exception]] = {}

    def keep(self, value: Any) -> int:
        """Keep an object that the other side uses, and return its number."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return self.numbers[id(value)]

    def remote(self, number: int) -> Remote:
        return self.remotes.setdefault(number, Remote(self, number))

    def name_error(self, kind: type[Exception]) -> list[str]:
        """Return the names of a class of errors and of the built-in class that it extends."""
        base = next(x.__name__ for x in kind.__mro__ if getattr(builtins, x.__name__, None) is x)
        self.errors.setdefault(kind.__name__, kind)
        return [kind.__name__, base]

    def error(self, name: str, base: str) -> type[Exception]:
        """Return the class of errors of this name."""
        if name not in self.errors:
            known = getattr(builtins, base, Exception)
            known = known if isinstance(known, type) and issubclass(known, Exception) else Exception
            self.errors[name] = known if name == base else type(name, (known,), {"__module__": "builtins"})
        return self.errors[name]

    def module(self, name: str) -> Any:
        """Return a module; if the other side is not trusted, only one of the interpreter's own, or an imported one."""
        own = name.partition(".")[0] in (*sys.stdlib_module_names, "numpy")
        return importlib.import_module(name) if own or not self.guarded else sys.modules[name]

    # Messages ---------------------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")
        self.writer.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message; without another process, wait to be ended: its exit code is what is reported."""
        line = self.reader.readline()
        if not line.endswith(b"\n"):
            while True:
                signal.pause()
        return dict(json.loads(line))

    def ask(self, do: str, *args: Any, **named: Any) -> Any:
        """Return what the other side answers. Raises its error."""
        heap = Heap(self)
        value = heap.pack((args, tuple(named.items())))
        self.send({"do": do, "value": value, "heap": heap.changes()})
        while "do" in (message := self.receive()):
            self.answer(message)
        heap.change(message["heap"])
        if "error" in message:
            kind, given = message["error"]
            raise self.error(*kind)(*heap.unpack(given))
        return heap.unpack(message["value"])

    def answer(self, message: dict[str, Any]) -> None:
        """Do what the other side asks, and send value or error."""
        heap = Heap(self)
        try:
            heap.change(message["heap"])
            args, named = heap.unpack(message["value"])
            found = {"value": heap.pack(getattr(self, f"do_{message['do']}")(*args, **dict(named)))}
        except Exception as error:
            found = {"error": [self.name_error(type(error)), heap.pack(tuple(map(self._argument, error.args)))]}
        self.send(found | {"heap": heap.changes()})

    @staticmethod
    def _argument(value: Any) -> Any:
        """Return an argument of an error, as text if it is not plain."""
        return value if value is None or type(value) in PLAIN else str(value)

    def attempt(self, start: Callable[[], object]) -> None:
        """Run the program; its error is raised where the tests are."""
        try:
            start()
        except Exception as error:
            self.failure = error

    def serve(self) -> None:
        """Answer until this process is ended."""
        while True:
            self.answer(self.receive())

    # Requests ---------------------------------------------------------------------------------------------------------

    def do_ready(self) -> None:
        """Raise the error of the program if it had one."""
        if self.failure:
            raise self.failure

    def do_name(self, name: str) -> Any:
        return self.names[name]

    def do_call(self, function: Any, *args: Any, **named: Any) -> Any:
        return function(*args, **named)

    def do_get(self, value: Any, name: str) -> Any:
        self._check(value, name)
        return getattr(value, name)

    def do_set(self, value: Any, name: str, content: Any) -> None:
        self._check(value, name)
        setattr(value, name, content)

    def do_isinstance(self, value: Any, kind: Any) -> bool:
        return isinstance(value, kind)

    def do_operator(self, name: str, *args: Any) -> Any:
        return OPERATORS[name](*args)

    def do_plain(self, value: Any) -> Any:
        """Return the plain value of a subclass of a plain type."""
        for kind in PLAIN:
            if isinstance(value, kind):
                return kind(value)
        raise TypeError("not a plain value")

    def _check(self, value: Any, name: str) -> None:
        """Raise AttributeError if the other side must not see this attribute."""
        if self.guarded and (name.startswith("_") or type(value).__module__ != "__main__"):
            raise AttributeError(name)


for _kind in (Heap, Remote, Link):
    _kind.__module__ = "link"  # classes of the tests are those of __main__


class Names(dict[str, Any]):
    """Names of the tests; those that they do not define are the answer's, and `of_answer` returns those alone."""

    def __init__(self, link: Link, text: str) -> None:
        super().__init__(__name__="__main__", of_answer=lambda name: link.ask("name", name))
        self.link, self.text = link, text
        self.about_builtins: bool | None = None

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) and not self._about_builtins():
            raise KeyError(name)
        found = self.link.ask("name", name)
        if isinstance(found, Remote):  # asked for once
            self[name] = found
        return found

    def _about_builtins(self) -> bool:
        """Return True if the tests need no name but built-in ones, so that the answer is one of these, such as sum."""
        if self.about_builtins is None:
            import ast

            nodes = list(ast.walk(ast.parse(self.text)))
            made = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
            made |= {x.name for x in nodes if isinstance(x, ast.FunctionDef | ast.ClassDef)}
            made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            made |= {(node.asname or node.name).split(".")[0] for node in nodes if isinstance(node, ast.alias)}
            used = {node.id for node in nodes if isinstance(node, ast.Name)}
            self.about_builtins = all(hasattr(builtins, name) for name in used - made)
        return self.about_builtins


class Module:
    """Module `__main__` of the tests, in which unittest looks for them."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __dir__(self) -> list[str]:
        return list(self._names)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(name) from None


def run_tests(text: str, descriptor: int) -> None:
    """Run the tests; the process ends with an error unless they pass."""
    link = Link(descriptor, {}, guarded=True)
    link.ask("ready")
    names = Names(link, text)
    sys.modules["__main__"] = Module(names)  # type: ignore[assignment]
    exec(compile(text, "tests", "exec"), names)


def run_answer(text: str, descriptor: int) -> None:
    """Run a program, and answer for its names."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    link = Link(descriptor, vars(module), guarded=False)
    link.attempt(lambda: exec(compile(text, "answer", "exec"), vars(module)))
    link.serve()


def run_program(text: str, descriptor: int) -> None:
    """Answer for one name, `run_program`: a function of standard input that returns standard output."""
    import io

    def run(given: str) -> str:
        sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(given.encode())), io.StringIO()
        try:
            exec(code[0], {"__name__": "__main__"})
        except SystemExit:
            pass
        finally:
            found, sys.stdout = sys.stdout.getvalue(), sys.__stdout__
        return found

    code: list[Any] = []
    link = Link(descriptor, {"run_program": run}, guarded=False)
    link.attempt(lambda: code.append(compile(text, "answer", "exec")))
    link.serve()


if __name__ == "__main__":
    role, file, channel = sys.argv[1:]
    with open(file, encoding="utf-8") as source:
        content = source.read()
    {"tests": run_tests, "answer": run_answer, "program": run_program}[role](content, int(channel))
