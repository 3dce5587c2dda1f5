"""Errors of a user's function, told so that they can be mended: its error with the last frame, and its traceback.

TypeError: bad() takes 1 positional argument but 2 were given (rewards.py, line 3, in bad)
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

LONGEST = 4000
"""Upper limit for the characters of a traceback; its end is kept."""
_HERE = str(Path(__file__).parent)


class OwnError(NamedTuple):
    """An error in a line, and its traceback."""

    line: str
    trace: str


def told(error: Exception, function: Callable[..., Any]) -> OwnError:
    """Return the error that `function` raised, with the frames of its own code alone."""
    own = _own_frames(error.__traceback__)
    said = " ".join(f"{type(error).__name__}: {error}".split())
    if own is None:  # the call itself failed: its parameters are not these
        code = getattr(function, "__code__", None)
        place = f" ({Path(code.co_filename).name}, line {code.co_firstlineno}, in {code.co_name})" if code else ""
        return OwnError(said + place, said + place)
    last = traceback.extract_tb(own)[-1]
    trace = "".join(traceback.format_exception(type(error), error, own))
    return OwnError(f"{said} ({Path(last.filename).name}, line {last.lineno}, in {last.name})", trace[-LONGEST:])


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first frame on that is not of this package."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace
