"""Progress bar with label, count, a few numbers and remaining time on a terminal; plain lines elsewhere."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """Progress bar. Use it as a context manager, or call `start` and `stop`."""

    def __init__(self, label: str, total: int, done: int = 0, console: Console | None = None) -> None:
        self.console = console or Console()
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task(label, total=total, completed=done, numbers="")

    def show(self, **now: Any) -> None:
        """Update the bar: `numbers`, `completed` or `advance`, `description`."""
        self.progress.update(self.task, **now)

    def say(self, line: str) -> None:
        """Print a line if no bar is drawn."""
        if not self.console.is_terminal:
            self.console.print(line, highlight=False, soft_wrap=True)

    def start(self) -> None:
        """Start drawing; no-op if already started."""
        self.progress.start()

    def stop(self) -> None:
        """Stop drawing and leave the bar as it is."""
        self.progress.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
