"""Terminal output of an evaluation: a progress bar while it samples, and a table at the end."""

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ..process.progress import Bar
from .benchmark import Unit
from .records import Record
from .report import table


class SamplingDisplay(Bar):
    """Progress bar, or one line per benchmark without a terminal; a context manager, and the `report` of `sample`."""

    def __init__(self, responses: int, console: Console | None = None) -> None:
        super().__init__("responses", responses, console=console or Console(stderr=True))
        self.correct = self.sampled = 0

    def __call__(self, unit: Unit, correct: int, resumed: bool) -> None:
        source = unit.benchmark.source
        if unit.start == 0:
            self.correct = self.sampled = 0
        if not resumed:
            self.correct += correct
            self.sampled += unit.lines
        share = f"{self.correct / self.sampled:.1%} correct" if self.sampled else "from an earlier evaluation"
        self.show(advance=unit.lines, description=source, numbers=share)
        if unit.stop == len(unit.benchmark.questions):
            self.say(f"{source}: {unit.stop} questions, {share}")


def show(records: Sequence[Record], ks: Sequence[int] = (), console: Console | None = None) -> None:
    """Print the transposed table of the records: one column per benchmark, one line per number."""
    headings, rows = table(records, ks)
    out = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    out.add_column(style="bold", no_wrap=True)
    for _ in rows:
        out.add_column(justify="right", no_wrap=True)
    for name, *cells in zip(headings, *rows, strict=True):
        out.add_row(name, *cells)
    (console or Console()).print(out)
