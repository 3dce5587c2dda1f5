"""Shared parts of all command lines: settings as key=value, flags from a dataclass, one-line errors."""

import argparse
import contextlib
import io
import os
import re
import select
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from errno import EDQUOT, EFBIG, EIO, ENOSPC, EROFS
from functools import partial
from pathlib import Path
from reprlib import repr as shortened
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from . import choosing
from .commandline_help import PROGRAMS, Folded, fold
from .field_types import fit_fields, keys, merge
from .installation import missing
from .plain_yaml import parse_yaml
from .schedules import is_schedule

if TYPE_CHECKING:
    from tyro.constructors import ConstructorRegistry

T = TypeVar("T")
NUMBERS = {name: float(name) for name in ("inf", "+inf", "-inf", "nan")}
"""Numbers that YAML writes with a leading dot, by their names without it."""
OF_THE_DISK = (ENOSPC, EDQUOT, EFBIG, EIO, EROFS)
"""Write errors without a file name: disk full, broken or read-only, quota exceeded, file too large."""
LONG = re.compile(r"\S{400,}")
"""Word that an error message cuts, such as a value of thousands of characters."""
NARROWEST = 40
"""Columns below which the layout of help does not end."""
UNREAD = 141
"""Exit code after the reader of the output has closed the pipe, as in shells."""
_usual_warning = warnings.formatwarning


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """Return the settings in `key=value` items; values are YAML scalars such as `0.5`, `true` and `exact`, or `inf`.

    Raises ValueError on an item without `=`, on a key given twice and on a value that is not YAML.
    """
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise ValueError(f"expected key=value, got {shortened(item)}")
        if key in settings:
            raise ValueError(f"{_named(key)} is set twice")
        try:
            settings[key] = value if is_schedule(value) else NUMBERS.get(value.lower(), parse_yaml(value))
        except ValueError:
            raise ValueError(
                f"{_named(key)}: {shortened(value)} cannot be read; give a number, true, false or a name"
            ) from None
    return settings


def _named(key: str) -> str:
    """Return a key for an error message of one line."""
    return key if key.isprintable() else shortened(key)


def parse_flags(
    cls: type[T],
    args: Sequence[str],
    *,
    prog: str,
    description: str,
    default: T | None = None,
    synonyms: Mapping[str, str] = MappingProxyType({}),
) -> T:
    """Return an instance of the dataclass `cls`: `default` with the command-line flags. `--help` prints and exits.

    default: needed if `cls` has sections. synonyms: our key by the last part of a name that others use.
    Raises a one-line ValueError on an unknown flag or a value of the wrong type.
    """
    import tyro

    told = Folded(fold(description))
    problems, read = io.StringIO(), partial(tyro.cli, prog=prog, description=told, registry=_as_written())
    base = tyro.MISSING_NONPROP if default is None else default
    try:
        with contextlib.redirect_stderr(problems):
            given, unknown = read(cls, args=args, default=base, return_unknown_args=True)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise ValueError(f"{prog}: {_unframed(problems.getvalue())}") from None
    try:
        parsed = merge(default, given, "--", False) if default else cls(**fit_fields(cls, given, "--", False))
    except ValueError as error:
        raise ValueError(f"{prog}: {error}") from None
    if unknown:
        flags = ["--" + key.replace("_", "-") for key in keys(cls)]
        given_flag = unknown[0].partition("=")[0]
        listed = f"{prog} --help lists what there is"
        if ours := synonyms.get(given_flag.lstrip("-").rpartition(".")[2].replace("-", "_")):
            raise ValueError(f"{prog}: unknown option {unknown[0]}; here it is --{ours}")
        raise ValueError(f"{prog}: {choosing.unknown('option', given_flag, flags, listed, unknown[0])}")
    return parsed


def _as_written() -> "ConstructorRegistry":
    """Return rules by which tyro reads a dataclass as a mapping, and leaves text that does not fit as it is.

    So flags are checked as the keys of a file are.
    """
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    rules = ConstructorRegistry()

    def usual(rule: Callable[[Any], Any], info: Any) -> Any:
        """Return what tyro does without these rules."""
        rules.__exit__()
        try:
            return rule(info)
        finally:
            rules.__enter__()

    @rules.primitive_rule
    def text(info: Any) -> Any:
        spec = usual(ConstructorRegistry.get_primitive_spec, info)
        if not isinstance(spec, PrimitiveConstructorSpec) or info.type is bool:
            return None

        def read(texts: list[str]) -> Any:
            try:
                return spec.instance_from_str(texts)
            except ValueError:
                return texts[0] if spec.nargs == 1 else texts

        return replace(spec, instance_from_str=read, choices=None, metavar=spec.metavar.replace("{,", "{'',"))

    @rules.struct_rule
    def mapping(info: Any) -> Any:
        if not is_dataclass(info.type):
            return None
        section = type("Section", (dict,), {"__doc__": info.type.__doc__})
        return replace(usual(ConstructorRegistry.get_struct_spec, info), instantiate=section)

    return rules


def _unframed(framed: str) -> str:
    """Return what tyro says in a frame, such as that a required flag is missing: one line without title and footer."""
    said = re.sub(r"\x1b\[[\d;]*m|[─│╭╮╰╯]|---+", " ", framed.partition("\n")[2])
    return " ".join(said.split()).partition(" For full helptext")[0]


class Arguments(argparse.ArgumentParser):
    """Argument parser that raises one-line ValueErrors, as `parse_flags` does.

    Its help fits the terminal; flags cannot be abbreviated.
    """

    def __init__(self, *, prog: str, description: str | None = None, **settings: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **settings,
        )

    def format_help(self) -> str:
        return f"{fold(super().format_help())}\n"

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
        _fit_terminal()
        warnings.formatwarning = _warning
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
        print(f"error: {LONG.sub(_cut, said)}", file=sys.stderr)
        return 2

    guarded.__doc__ = main.__doc__
    return guarded


def _fit_terminal() -> None:
    """Write signs that the terminal has not as others, and lay out help for at least NARROWEST columns."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="replace")
    if os.environ.get("COLUMNS", "").isdigit() and int(os.environ["COLUMNS"]) < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)


def _warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as it is printed: one of ours without the place in the source that it comes from."""
    if category.__module__.partition(".")[0] in PROGRAMS:
        return f"warning: {message}\n"
    return _usual_warning(message, category, filename, lineno, line)


def _cut(word: re.Match[str]) -> str:
    """Return the ends of a long word."""
    return f"{word[0][:60]}…{word[0][-20:]}"


def _unread() -> bool:
    """Return True if the reader of stdout has closed the pipe; then send the remaining output to /dev/null."""
    poll = select.poll()
    poll.register(1, 0)
    broken = any(event & select.POLLERR for _, event in poll.poll(0))
    if broken:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return broken
