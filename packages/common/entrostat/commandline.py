"""What the command lines of all packages share: settings as key=value, flags from a dataclass, errors of one line."""

import contextlib
import io
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from .plain_yaml import parse_yaml

T = TypeVar("T")


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` items; values are YAML scalars, so `0.5`, `true` and `exact` are what they look like.

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
            settings[key] = parse_yaml(value)
        except ValueError:
            raise ValueError(f"{key}: {value!r} cannot be read; give a number, true, false or a name") from None
    return settings


def parse_flags(cls: type[T], args: Sequence[str], *, prog: str, description: str, default: T | None = None) -> T:
    """An instance of the dataclass `cls` from command-line flags, over `default`. `--help` prints and exits.

    Raises ValueError of one line on an unknown flag or a value that does not fit.
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
        words = re.sub(r"[─│╭╮╰╯]+", " ", problems.getvalue()).split()
        raise ValueError(f"{prog}: {' '.join(words)}") from None
    if unknown:
        raise ValueError(f"{prog}: unknown option {unknown[0]}; {prog} --help lists what there is")
    return parsed


class Main(Protocol):
    """The entry point of a command line: exit code from arguments, those of the process when None."""

    def __call__(self, args: Sequence[str] | None = None) -> int: ...


def one_line_errors(main: Callable[[list[str]], int]) -> Main:
    """Make `main(args)` end with a line on stderr, not a traceback.

    Exit code 2 after a ValueError or a file that cannot be used, 130 after Ctrl-C.
    """

    def guarded(args: Sequence[str] | None = None) -> int:
        try:
            return main(list(sys.argv[1:] if args is None else args))
        except ValueError as error:
            said = str(error)
        except OSError as error:
            if error.filename is None:
                raise
            said = f"{error.filename}: {error.strerror}"
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130
        print(f"error: {said}", file=sys.stderr)
        return 2

    guarded.__doc__ = main.__doc__
    return guarded
