"""Shared parts of all command lines: settings as key=value, flags from a dataclass, one-line errors."""

import argparse
import contextlib
import io
import os
import re
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from errno import EDQUOT, EFBIG, EIO, ENOSPC, EROFS
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar, get_origin, get_type_hints

from .field_types import words
from .installation import missing
from .plain_yaml import parse_yaml

T = TypeVar("T")
NUMBERS = {name: float(name) for name in ("inf", "+inf", "-inf", "nan")}
"""Numbers that YAML writes with a leading dot, by their names without it."""
OF_THE_DISK = (ENOSPC, EDQUOT, EFBIG, EIO, EROFS)
"""Write errors without a file name: disk full, broken or read-only, quota exceeded, file too large."""
UNREAD = 141
"""Exit code after the reader of the output has closed the pipe, as in shells."""


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """Return the settings in `key=value` items; values are YAML scalars such as `0.5`, `true` and `exact`, or `inf`.

    Raises ValueError on an item without `=`, on a key given twice and on a value that is not YAML.
    """
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise ValueError(f"expected key=value, got {item!r}")
        if key in settings:
            raise ValueError(f"{key} is set twice")
        try:
            settings[key] = NUMBERS.get(value.lower(), parse_yaml(value))
        except ValueError:
            raise ValueError(f"{key}: {value!r} cannot be read; give a number, true, false or a name") from None
    return settings


def parse_flags(cls: type[T], args: Sequence[str], *, prog: str, description: str, default: T | None = None) -> T:
    """Return an instance of the dataclass `cls`: `default` with the command-line flags. `--help` prints and exits.

    Raises a one-line ValueError on an unknown flag or a value of the wrong type.
    """
    import tyro

    problems = io.StringIO()
    try:
        with contextlib.redirect_stderr(problems):
            settings: dict[str, Any] = {} if default is None else {"default": default}
            parsed, unknown = tyro.cli(
                cls, args=args, prog=prog, description=description, return_unknown_args=True, **settings
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise ValueError(f"{prog}: {_problem(problems.getvalue(), cls, args)}") from None
    if unknown:
        raise ValueError(f"{prog}: unknown option {unknown[0]}; {prog} --help lists what there is")
    return parsed


def _problem(framed: str, cls: type, args: Sequence[str]) -> str:
    """Return tyro's framed error message as one line without its title, reworded if the mistake is a common one."""
    plain = re.sub(r"\x1b\[[\d;]*m|[─│╭╮╰╯]|^ *-+ *$", "", framed, flags=re.MULTILINE)  # colours, frame, rules
    below = plain.strip().partition("\n")[2]
    said = " ".join(re.split(r"\n\s*\n", below.strip())[0].split())
    if missing := re.match(r"Missing value for argument '(--\S+)'\. Expected (\d+) values", said):
        return f"{missing[1]} needs {'a value' if missing[2] == '1' else f'{missing[2]} values'}"
    if unknown := re.search(r"Unrecognized options: (\S+)", below):
        return f"unknown option {unknown[1]}; --help lists what there is"
    if required := re.match(r"Missing from [^:]+: (--\S+)", said):
        return f"{required[1]} is required"
    if unfit := re.match(r"Error parsing (--[\w.-]+):", said):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # no field of that name, or a type without a name
            hint = _hint(cls, unfit[1])
            kind = words(hint).removesuffix(" or null")
            return f"{unfit[1]} must be of type {kind}; got {_given(args, unfit[1], hint)!r}"
    return re.sub(r"^Error parsing [\w.]+: ", "", said)  # message of the dataclass itself or of a section's


def _hint(cls: Any, flag: str) -> Any:
    """Return the annotation of the field that `--part.some-name` sets. Raises KeyError if there is none."""
    for name in flag.removeprefix("--").replace("-", "_").split("."):
        cls = get_type_hints(cls)[name]
    return cls


def _given(args: Sequence[str], flag: str, hint: Any) -> str:
    """Return the value of the flag's last occurrence on the command line."""
    last = max(i for i, item in enumerate(args) if item.partition("=")[0].replace("_", "-") == flag)
    _, equals, value = args[last].partition("=")
    values = [value] if equals else list(takewhile(lambda item: not item.startswith("--"), args[last + 1 :]))
    return " ".join(values if get_origin(hint) is tuple else values[:1])


class Arguments(argparse.ArgumentParser):
    """Argument parser that raises one-line ValueErrors, as `parse_flags` does.

    Its help keeps the line breaks of the description; flags cannot be abbreviated.
    """

    def __init__(self, *, prog: str, description: str | None = None, **settings: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **settings,
        )

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{self.prog}: {message.removeprefix('argument ')}; {self.prog} --help lists what there is")


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Run a write to `path`, and add `path` to a disk error without a file name; see OF_THE_DISK."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in OF_THE_DISK:
            error.filename = str(path)
        raise


class Main(Protocol):
    """Entry point of a command line: returns the exit code; arguments are the process's own if None."""

    def __call__(self, args: Sequence[str] | None = None) -> int: ...


def one_line_errors(main: Callable[[list[str]], int]) -> Main:
    """Return `main` changed to report errors as one line on stderr, without a traceback.

    Exit code 2 after a ValueError, a file that cannot be used, a full disk or a missing package, 130 after Ctrl-C. If
    the reader has closed the pipe, as in `… | head`, it ends silently.
    """

    def guarded(args: Sequence[str] | None = None) -> int:
        try:
            try:
                return main(list(sys.argv[1:] if args is None else args))
            finally:
                print(end="", flush=True)
        except ValueError as error:
            said = str(error)
        except ModuleNotFoundError as error:
            if not (said := missing(error.name or "")):
                raise
        except BrokenPipeError:
            if not _unread():
                raise
            return UNREAD
        except OSError as error:
            if error.filename is None and error.errno not in OF_THE_DISK:
                raise
            said = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130
        print(f"error: {said}", file=sys.stderr)
        return 2

    guarded.__doc__ = main.__doc__
    return guarded


def _unread() -> bool:
    """Return True if the reader of stdout has closed the pipe; then send the remaining output to /dev/null."""
    poll = select.poll()
    poll.register(1, 0)
    broken = any(event & select.POLLERR for _, event in poll.poll(0))
    if broken:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return broken
