"""A progress bar: what, how far, a few numbers, time left. Drawn on a terminal only; lines are for elsewhere."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """A bar; a context manager, or `start` and `stop` it."""

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
        """Draw it anew: `numbers`, `completed` or `advance`, `description`."""
        self.progress.update(self.task, **now)

    def say(self, line: str) -> None:
        """Print a line where nothing is drawn."""
        if not self.console.is_terminal:
            self.console.print(line, highlight=False, soft_wrap=True)

    def start(self) -> None:
        """Begin to draw; drawing already, nothing happens."""
        self.progress.start()

    def stop(self) -> None:
        """Leave it as it is."""
        self.progress.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
