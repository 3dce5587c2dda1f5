"""What a person sees while a run goes on."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PRINT_EVERY = 10
"""Steps between lines where there is no terminal to draw on."""


class TrainDisplay:
    """A progress bar with entropy, reward, pass@k, tokens/s and time left; plain lines where there is no terminal.

    Use as a context manager and call it as the trainer's `report`.
    """

    def __init__(self, label: str, steps: int, done: int = 0, console: Console | None = None) -> None:
        self.console = console or Console()
        self.label = label
        self.steps = steps
        self.seen: dict[str, float] = {}
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task(label, total=steps, completed=done, numbers="")

    def __call__(self, step: int, metrics: dict[str, float]) -> None:
        self.seen |= metrics
        numbers = self._numbers()
        self.progress.update(self.task, completed=step + 1, numbers=numbers)
        if not self.console.is_terminal and (step % PRINT_EVERY == 0 or step + 1 == self.steps):
            self.console.print(f"{self.label} {step + 1}/{self.steps} {numbers}", highlight=False, soft_wrap=True)

    def _numbers(self) -> str:
        shown = [f"entropy {self.seen['entropy']:.3f}", f"reward {self.seen['reward']:.3f}"]
        shown += [
            f"{key.removeprefix('eval/')} {v:.3f}" for key, v in self.seen.items() if key.startswith("eval/pass@8")
        ]
        return "  ".join([*shown, f"{self.seen['tokens_per_second']:,.0f} tokens/s"])

    def __enter__(self) -> "TrainDisplay":
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.__exit__(kind, error, trace)


class WarmUpDisplay:
    """A progress bar of the supervised warm-up, as its `progress` callback."""

    def __init__(self, steps: int, console: Console | None = None) -> None:
        self.console = console or Console()
        self.steps = steps
        self.progress = Progress(
            TextColumn("[bold]warm-up"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3f}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task("warm-up", total=steps, loss=float("nan"))

    def __call__(self, step: int, loss: float) -> None:
        if not self.progress.live.is_started:
            self.progress.start()
        self.progress.update(self.task, completed=step + 1, loss=loss)
        if not self.console.is_terminal and (step % 200 == 0 or step + 1 == self.steps):
            self.console.print(f"warm-up {step + 1}/{self.steps} loss {loss:.3f}", highlight=False)
        if step + 1 == self.steps:
            self.progress.stop()
