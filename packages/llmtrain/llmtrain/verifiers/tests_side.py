"""Side of the tests of the link to a program: it gives nothing away, and takes nothing but what it can judge itself.

Copied into the sandbox beside answer_link.py; uses the standard library only. The program may send any line, so:

- What it sends becomes plain data (plain_data.py) or one of the stand-ins of remote_objects.py. A line that is neither
  ends the tests as failed.
- It can call, read and change only objects that a test passed to it: of these, functions that are no tests, and public
  data and methods of instances of classes that the tests define. No module, frame or test case crosses.
- An AssertionError in a function that a test passed ends the tests as failed, so that no program can try values until
  one is right. Its text stays here.
- StopIteration ends an iterator only: raised by a function, it would end `all(map(...))` of the tests early.
"""

import ast
import builtins
import importlib
import os
import re
import sys
import types
from typing import Any, NoReturn

from link_messages import Link
from plain_data import Heap
from remote_objects import Class, Function, Instance, Opaque

OWN = {"math": "math", "cmath": "cmath", "re": "re", "collections": "collections", "np": "numpy", "numpy": "numpy"}
"""Modules that tests use without importing them, by name; other names are the program's."""
HIDDEN = (types.ModuleType, types.FrameType, types.TracebackType, types.CodeType, Link, Heap)
"""Types whose instances never cross, beside test cases."""
REQUESTS = ("call", "get", "set", "operator", "plain", "step", "isinstance", "issubclass")
"""Requests that a program may make."""


class TestsLink(Link):
    """The tests' end of the link."""

    def __init__(self, descriptor: int, text: str) -> None:
        """text: of the tests."""
        super().__init__(descriptor)
        self.text = text
        self.classes: set[int] = set()
        """Numbers of classes of the program that the tests name."""
        self.applied: set[str] | None = None
        """Operations that the tests apply to objects that they construct, see `applied_to`."""

    def start(self) -> None:
        """Raise the error of the program if it had one; learn which of the names of the tests are its classes."""
        wanted = dict.fromkeys(re.findall(r"\b_*[A-Z]\w*", self.text))
        self.classes = {number for number in self.ask("ready", tuple(wanted)) if type(number) is int}

    def fail(self, reason: str) -> NoReturn:
        """End the tests as failed; no handler of theirs can prevent it."""
        print(reason, file=sys.stderr, flush=True)
        os._exit(1)

    # What crosses to the program --------------------------------------------------------------------------------------

    def stays(self, value: Any) -> bool:
        return type(value).__module__ == "__main__"

    def describe(self, value: Any) -> Any:
        """Return an object as JSON. Raises TypeError for one that the program must not have."""
        if not isinstance(value, Opaque):
            owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
            cases = sys.modules["unittest"].TestCase if "unittest" in sys.modules else Link
            of_case = isinstance(owner, cases) and (name[:4] == "test" or hasattr(cases, name))
            test = isinstance(value, types.FunctionType) and name[:4] == "test" and value.__qualname__ == name
            if of_case or test or issubclass(type(value), (*HIDDEN, cases)) or isinstance(owner, HIDDEN[-2:]):
                raise TypeError(f"{name or type(value).__name__} of the tests does not cross to the program")
        return super().describe(value)

    def class_of(self, value: Any) -> int | None:
        return None

    # What crosses from it ---------------------------------------------------------------------------------------------

    def heap(self, do: str, args: tuple[Any, ...]) -> Heap:
        """Return the heap of a request, which knows how objects in the answer are come by, see `remote`."""
        if do == "name":
            return Heap(self, how="named", name=args[0])
        asked = next((x for x in args if isinstance(x, Opaque)), None)
        reached = asked is not None and object.__getattribute__(asked, "_reached")
        return Heap(self, how="reached" if reached else "", name=args[1] if do == "get" and reached else "")

    def remote(self, number: int, kind: str, of: int | None, *, how: str, name: str) -> Any:
        """Return what stands for an object of the program: the same each time, though it may come to do more.

        how: "named" if the tests ask for it by `name`; "reached" if it comes from an object of a class that they name,
        as its attribute `name` or otherwise; "" from a function.
        """
        if type(number) is not int:
            raise TypeError("no number")
        if kind == "module":
            return importlib.import_module(name) if how == "named" and name in sys.stdlib_module_names else None
        wanted: type[Opaque] = Opaque
        if kind == "class" and name.lstrip("_")[:1].isupper():
            wanted = Class
            self.classes.add(number)
        elif kind in ("class", "function", "iterator"):
            wanted = Function
        elif how or (of is not None and of in self.classes):
            wanted = Instance
        reached = how == "reached" or wanted in (Class, Instance)
        if number not in self.remotes:
            made = wanted(self, number, reached)
            self.remotes[number] = self.stream(made, number) if kind == "iterator" else made
        found = self.remotes[number]
        if isinstance(found, Opaque) and reached:
            object.__setattr__(found, "_reached", True)
        if type(found) is Opaque or (type(found) is Function and wanted is Class):
            object.__setattr__(found, "__class__", wanted)
        return found

    def applies(self, what: str) -> bool:
        """Return True if the tests apply this to an object that they construct."""
        if self.applied is None:
            self.applied = applied_to(self.text)
        return what in self.applied

    # Messages ---------------------------------------------------------------------------------------------------------

    def receive(self) -> dict[str, Any]:
        try:
            return super().receive()
        except Exception as error:
            return self.fail(f"the program sent no message: {type(error).__name__}")

    def read(self, heap: Heap, message: dict[str, Any], part: str) -> Any:
        try:
            found = super().read(heap, message, part)
            if part == "error":
                names, _, attributes = found
                if not names or {str} != {type(x) for x in (*names, *(name for name, _ in attributes))}:
                    raise TypeError("no names")
            return found
        except Exception as error:
            return self.fail(f"the program sent something else than data: {type(error).__name__}: {error}")

    def ask(self, do: str, *args: Any, **named: Any) -> Any:
        try:
            found = super().ask(do, *args, **named)
            errors = found if isinstance(found, tuple) else (found,)
            if any(isinstance(kind, type) and issubclass(AssertionError, kind) for kind in errors):
                self.fail("the program gives a class of errors that catches failures of the tests")
            return found
        except StopIteration:
            if do == "step" or (do == "operator" and args[0] == "next"):
                raise
        raise RuntimeError("the program raised StopIteration")

    def answer(self, message: dict[str, Any]) -> None:
        """Do what the program asks with an object that the tests passed to it, and send value or error."""
        heap = Heap(self)
        args, named = self.read(heap, message, "value")
        do = message["do"]
        objects = args[1:] if do == "operator" else args[:1]
        if do not in REQUESTS or not any(self.numbers.get(id(x)) is not None for x in objects):
            self.fail("the program asked for what the tests did not pass to it")
        try:
            found = {"value": heap.pack(getattr(self, f"do_{do}")(*args, **dict(named)))}
        except Exception as error:
            found = {"error": heap.pack(self.tell(error))}
        self.send(found | {"heap": heap.changes()})

    def tell(self, error: Exception) -> tuple[Any, ...]:
        """Return names and arguments of an error."""
        if isinstance(error, AssertionError):
            self.fail("AssertionError in a function that the tests passed to the program")
        given = tuple(x for x in error.args if type(x) in (bool, int, float, str))
        return tuple(self.name_error(type(error))), given, ()

    def do_get(self, value: Any, name: str) -> Any:
        if not (callable(value) and name in ("__name__", "__qualname__", "__doc__")):  # functools.wraps asks for them
            self._check(value, name)
        return getattr(value, name)

    def do_set(self, value: Any, name: str, content: Any) -> None:
        self._check(value, name)
        if callable(getattr(type(value), name, None)):
            raise AttributeError(name)
        setattr(value, name, content)

    def _check(self, value: Any, name: str) -> None:
        """Raise AttributeError unless this is a public attribute of an instance of a class of the tests."""
        if type(name) is not str or name.startswith("_") or type(value).__module__ != "__main__":
            raise AttributeError(name)


def applied_to(text: str) -> set[str]:
    """Return what the tests apply to objects that they construct: "operator", "in", and names of attributes.

    Construct: call a name with a capital letter that they do not import from elsewhere than `solution`.
    """
    nodes = list(ast.walk(ast.parse(text)))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != "solution"]
    foreign = {alias.asname or alias.name for node in imports for alias in node.names}
    bound: set[str] = set()

    def constructed(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            return name.lstrip("_")[:1].isupper() and name not in foreign
        return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in bound

    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts, strict=False) if several else [(target, node.value)]  # type: ignore[attr-defined]
                bound |= {ast.unparse(name) for name, value in pairs if constructed(value)}
        elif isinstance(node, ast.FunctionDef):  # such as a fixture, whose name is then an argument
            returned = [x.value for x in ast.walk(node) if isinstance(x, ast.Return | ast.Yield) and x.value]
            bound |= {node.name} if any(map(constructed, returned)) else set()
    found = {node.attr for node in nodes if isinstance(node, ast.Attribute) and constructed(node.value)}
    for node in nodes:
        if isinstance(node, ast.BinOp) and (constructed(node.left) or constructed(node.right)):
            found.add("operator")
        if isinstance(node, ast.AugAssign) and constructed(node.target):
            found.add("operator")
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            found |= {"in"} if constructed(node.comparators[0]) else set()
    return found


class Names(dict[str, Any]):
    """Names of the tests; those that they do not define are the answer's, and `of_answer` returns those alone."""

    def __init__(self, link: TestsLink) -> None:
        super().__init__(__name__="__main__", of_answer=lambda name: link.ask("name", name))
        self.link = link
        self.about_builtins: bool | None = None

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) and not self._about_builtins():
            raise KeyError(name)
        found = importlib.import_module(OWN[name]) if name in OWN else self.link.ask("name", name)
        if isinstance(found, Opaque | types.ModuleType):  # asked for once
            self[name] = found
        return found

    def _about_builtins(self) -> bool:
        """Return True if the tests need no name but built-in ones, so that the answer is one of these, such as sum."""
        if self.about_builtins is None:
            nodes = list(ast.walk(ast.parse(self.link.text)))
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
