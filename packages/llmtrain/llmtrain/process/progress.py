"""Progress on a terminal: a bar with label, count, a few numbers and the time left. Elsewhere plain lines."""

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

SAY_EVERY = 30.0
"""Longest time between two lines of a process that has no terminal, if it gets on (seconds)."""


class Bar:
    """Progress bar. Use it as a context manager, or call `start` and `stop`."""

    transient = False
    """Remove the bar at the end."""

    def __init__(self, label: str, total: int, done: int = 0, console: Console | None = None) -> None:
        self.console = console or Console()
        self.progress = Progress(
            *self.columns(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=self.transient,
            refresh_per_second=4,
        )
        self.task = self.progress.add_task(label, total=total, completed=done, numbers="")
        self.first, self.done, self.total = done, done, total
        self.said = time.monotonic()
        self.times = [(done, self.said)]
        """Start, first count and last count, each with the time when it was reached (s)."""

    def columns(self) -> tuple[ProgressColumn, ...]:
        """Return what the bar shows."""
        label, numbers = TextColumn("[bold]{task.description}"), TextColumn("{task.fields[numbers]}")
        return label, BarColumn(bar_width=24), MofNCompleteColumn(), numbers, TimeRemainingColumn()

    def show(self, **now: Any) -> None:
        """Update the bar: `numbers`, `completed` or `advance`, `description`."""
        self.progress.update(self.task, **now)
        done = now.get("completed", self.done + now.get("advance", 0))
        if done > self.done:
            self.times = [*self.times[:2], (done, time.monotonic())]
            self.done = done

    def say(self, line: str) -> None:
        """Print a line if no bar is drawn."""
        if not self.console.is_terminal:
            self.print(line)

    def print(self, line: str, style: str | None = None) -> None:
        """Print a line, above the bar if one is drawn."""
        whole = not self.console.is_terminal
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=whole)
        self.said = time.monotonic()

    def is_silent(self) -> bool:
        """Return True if the last line is older than SAY_EVERY."""
        return time.monotonic() - self.said >= SAY_EVERY

    def left(self) -> str:
        """Return the time left, such as 5:40, at the mean pace after the first count, which takes much longer.

        … before the second count.
        """
        if len(self.times) < 3 and self.done < self.total:
            return "…"
        (first, began), (done, moved) = self.times[-2:]
        pace = (moved - began) / max(done - first, 1)
        return clock_time(max(0.0, pace * (self.total - done) - (time.monotonic() - moved)))

    def start(self) -> None:
        """Start drawing; no-op if already started."""
        self.progress.start()

    def stop(self) -> None:
        """Stop drawing; the bar stays as it is unless it is transient."""
        self.progress.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def clock_time(seconds: float) -> str:
    """Return a time as minutes and seconds, 5:40, with hours if there are any, 1:05:40."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
