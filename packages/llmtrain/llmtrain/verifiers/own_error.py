"""Errors of a user's function, told so that they can be mended: its error with the last frame, and its traceback.

TypeError: bad() takes 1 positional argument but 2 were given (rewards.py, line 3, in bad)
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import entrostat
import llmtrain

LONGEST = 4000
"""Upper limit for the characters of a traceback; its end is kept."""
_HERE = tuple(str(Path(package).parent) for package in (llmtrain.__file__, entrostat.__file__) if package)


class OwnError(NamedTuple):
    """An error in a line, and its traceback."""

    line: str
    trace: str


def told(error: Exception, function: Callable[..., Any]) -> OwnError:
    """Return the error that `function` raised, with the frames from its own code on."""
    own = _own_frames(error.__traceback__)
    said = " ".join(f"{type(error).__name__}: {error}".split())
    if own is None:  # the call itself failed: its parameters are not these
        code = getattr(function, "__code__", None)
        place = f" ({Path(code.co_filename).name}, line {code.co_firstlineno}, in {code.co_name})" if code else ""
        return OwnError(said + place, said + place)
    frames = traceback.extract_tb(own)
    last = next((frame for frame in reversed(frames) if "site-packages" not in frame.filename), frames[-1])
    trace = "".join(traceback.format_exception(type(error), error, own))
    return OwnError(f"{said} ({Path(last.filename).name}, line {last.lineno}, in {last.name})", trace[-LONGEST:])


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first frame on that is of none of our packages."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace
