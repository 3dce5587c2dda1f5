"""Run a program and its tests in two processes that exchange plain data: `python answer_link.py ROLE FILE FD`.

    tests ── name of a function, arguments ──► answer      ROLE tests: the statements of FILE, which ask for its names
          ◄── value or error, changed arguments ──         ROLE answer: the program in FILE, run once
                                                           ROLE program: the program in FILE, a process for each input

Copied into the sandbox by python_tests.py with the files that it imports, one copy for each process; uses the standard
library only. FD is a socket to the other process (link_messages.py).

Plain values are copied (plain_data.py), so tests compare values of their own, and no method of the program takes part.
Arguments that a call changes are changed in the caller. Any other object stays where it is, and the tests hold a
stand-in (remote_objects.py): a function can be called, an object of a class that the tests name can be used as far as
nothing that they expect is sent to it to be judged; any use of another object raises TypeError. Nothing of the tests
can be reached from the program but what they pass to it (tests_side.py).

What a program still decides:
- whether two objects of its own classes are equal, or in which order; the results of methods of such objects;
- in tests that use operators, `in` or methods such as `startswith` on objects that they construct: what these give (a
  name with a capital letter counts as that of a class);
- what names mean that the tests use without importing or defining them, such as `isclose`, except those of `OWN`;
- its arguments: emptying the list x makes `f(x) == sorted(x)` easier to pass, as in any Python program.
"""

import contextlib
import os
import sys
import types
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -P leaves it out
from link_messages import Link
from tests_side import Module, Names, TestsLink

sys.path.pop(0)


def run_tests(text: str, descriptor: int) -> None:
    """Run the tests; the process ends with an error unless they pass."""
    link = TestsLink(descriptor, text)
    link.start()
    names = Names(link)
    sys.modules["__main__"] = Module(names)
    exec(compile(text, "tests", "exec"), names)


def run_answer(text: str, descriptor: int) -> None:
    """Run a program as the module that the tests import, and answer for its names."""
    module = types.ModuleType("solution")
    sys.modules["__main__"] = sys.modules["solution"] = module
    link = Link(descriptor, vars(module))
    link.attempt(lambda: exec(compile(text, "answer", "exec"), vars(module)))
    link.serve()


def run_program(text: str, descriptor: int) -> None:
    """Answer for one name, `run_program`: a function of standard input that returns standard output.

    Each run is a process of its own, whose file descriptors 0 and 1 are files. It ends as a script does: what it
    registered is called, its threads are waited for, and what it printed is flushed.
    """
    import tempfile

    def run(given: str) -> str:
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as printed:
            asked.write(given.encode())
            asked.seek(0)
            child = os.fork()
            if not child:
                os.dup2(asked.fileno(), 0)
                os.dup2(printed.fileno(), 1)
                run_script()
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if ended:
                os._exit(ended if ended > 0 else 128 - ended)
            printed.seek(0)
            return printed.read().decode(errors="replace")

    def run_script() -> None:
        """End the process, or raise the error of the program, which the link sends to the tests."""
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        with contextlib.suppress(SystemExit):  # a script may end with any code
            exec(code[0], vars(module))
        sys.exit()

    code: list[Any] = []
    link = Link(descriptor, {"run_program": run})
    link.attempt(lambda: code.append(compile(text, "answer", "exec")))
    link.serve()


if __name__ == "__main__":
    role, file, channel = sys.argv[1:]
    del sys.argv[1:]  # a script that gets arguments may read files instead of standard input
    sys.set_int_max_str_digits(0)
    with open(file, encoding="utf-8") as source:
        content = source.read()
    {"tests": run_tests, "answer": run_answer, "program": run_program}[role](content, int(channel))
