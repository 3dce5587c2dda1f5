"""What a person sees while an evaluation samples: a bar, or a line a benchmark where there is no terminal."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .benchmark import Unit


class SamplingDisplay:
    """Use as a context manager and call it as `sample`'s report."""

    def __init__(self, responses: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.correct = self.sampled = 0
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[share]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task("responses", total=responses, share="")

    def __call__(self, unit: Unit, correct: int, resumed: bool) -> None:
        source = unit.benchmark.source
        if unit.start == 0:
            self.correct = self.sampled = 0
        if not resumed:
            self.correct += correct
            self.sampled += unit.lines
        share = f"{self.correct / self.sampled:.1%} correct" if self.sampled else "from an earlier evaluation"
        self.progress.update(self.task, advance=unit.lines, description=source, share=share)
        questions = len(unit.benchmark.questions)
        if not self.console.is_terminal and unit.stop == questions:
            self.console.print(f"{source}: {questions} questions, {share}", highlight=False, soft_wrap=True)

    def __enter__(self) -> "SamplingDisplay":
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.__exit__(kind, error, trace)
