"""Progress displays of a run and of the warm-up."""

import re
from typing import Self

from rich.console import Console

from ..process.progress import Bar

PRINT_EVERY = 10
"""Steps between printed lines when there is no terminal."""
_PASS = re.compile(r"eval/(pass@(?!1$)\d+)")


class TrainDisplay(Bar):
    """Progress bar with entropy, reward, pass@k, tokens/s and time left; plain lines when there is no terminal.

    Use as a context manager and pass it as the trainer's `report`.
    """

    def __init__(self, label: str, steps: int, done: int = 0, console: Console | None = None) -> None:
        super().__init__(label, steps, done, console)
        self.label = label
        self.steps = steps
        self.seen: dict[str, float] = {}

    def __call__(self, step: int, metrics: dict[str, float]) -> None:
        self.seen |= metrics
        numbers = self._numbers()
        self.show(completed=step + 1, numbers=numbers)
        if step % PRINT_EVERY == 0 or step + 1 == self.steps:
            self.say(f"{self.label} {step + 1}/{self.steps} {numbers}")

    def _numbers(self) -> str:
        shown = [f"entropy {self.seen['entropy']:.3f}", f"reward {self.seen['reward']:.3f}"]
        shown += [f"{name[1]} {value:.3f}" for key, value in self.seen.items() if (name := _PASS.fullmatch(key))]
        return "  ".join([*shown, f"{self.seen['tokens_per_second']:,.0f} tokens/s"])


class WarmUpDisplay(Bar):
    """Progress bar of the supervised warm-up, used as its `progress` callback; the end of a `with` block closes it.

    It appears at the first step: there are no steps if the model was built before.
    """

    def __init__(self, steps: int, console: Console | None = None) -> None:
        super().__init__("warm-up", steps, console=console)
        self.steps = steps

    def __call__(self, step: int, loss: float) -> None:
        self.start()
        self.show(completed=step + 1, numbers=f"loss {loss:.3f}")
        if step % 200 == 0 or step + 1 == self.steps:
            self.say(f"warm-up {step + 1}/{self.steps} loss {loss:.3f}")

    def __enter__(self) -> Self:
        return self
