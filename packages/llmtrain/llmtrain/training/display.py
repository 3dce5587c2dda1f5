"""Terminal output of a run: three lines before it, then a line of the last step, and bars of the warm-up.

    step 120/300  H 0.31 → 0.26 (+0.05, bonus 0.012)  reward 0.31  pass@8 0.54  len 7.4  1.9 s  left 5:40

H is the entropy (nats), with an arrow to its target and what the controller moves to get there. On a terminal the line
is redrawn after every step and cut to fit; every PRINT_EVERY steps or 30 s it stays.
"""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Any, NamedTuple, Self

from rich.console import Console
from rich.progress import ProgressColumn, Task
from rich.text import Text

from entrostat import Chain
from entrostat.logs.runlog import HOLDS_WITHIN
from entrostat.registry import hyperparameters

from ..process.progress import Bar, clock_time
from ..settings.config import TrainConfig

PRINT_EVERY = 10
"""Steps between lines that stay; fewer if these take longer than 30 s."""
DROPPED = ("seconds", "len", "gap", "actuator", "pass", "reward")
"""Numbers that a narrow terminal does without, in this order."""
AT_BOUND = 5
"""Steps in a row at its bound after which an actuator is reported."""
NO_SIGNAL = 0.9
"""Mean share of tokens without an advantage, over half of WINDOW, from which on it is reported."""
WINDOW = 20
"""Steps over which a target is missed: in the later half the gap is wide, and not much smaller than in the first."""
NEARER = 0.9
"""Largest ratio of the later gap to the earlier one that counts as nearer."""
QUIET = 20
"""Steps without a finding after which it is reported again."""
_PASS = re.compile(r"eval/(pass@(?!1$)\d+)")
_QUADRANTS = tuple(f"quadrant/{name}" for name in ("exploitation", "exploration", "suppression", "correction"))


def opening(config: TrainConfig, done: int = 0) -> str:
    """Return three lines: what a run trains, where, and for how long. done: steps before a resume."""
    chosen = {} if config.target is None else {"target": config.target}
    args = ", ".join(f"{key} {value}" for key, value in {**chosen, **config.controller_args}.items())
    files = [Path(name).name for name in config.data.train_files]
    questions = ", ".join(files[:2]) + f" and {len(files) - 2} more" * (len(files) > 2) or config.task.name
    model = "a built model" if config.model.path is None else Path(config.model.path).name
    ranks = f" × {config.nproc}" * (config.nproc > 1)
    times = {"evaluated": config.eval.every, "saved": config.save_every}
    return "\n".join(
        (
            f"{'resume' if done else 'train':6} {model} on {questions}, {config.controller}{f' ({args})' * bool(args)}",
            f"where  {config.out} (settings in config.yaml); {config.device}{ranks}, rollouts by {config.rollout.name}",
            f"steps  {done + 1} to {config.steps} of {config.rollout.prompts} prompts × {config.rollout.n} responses"
            + "".join(f", {what} every {every}" for what, every in times.items() if every),
        )
    )


class Actuator(NamedTuple):
    """Number that a controller moves to reach its target."""

    name: str
    value: float
    bound: float
    """Largest absolute value."""
    key: str
    """Hyperparameter that is the bound."""

    @property
    def is_at_bound(self) -> bool:
        return abs(self.value) >= self.bound * (1 - 1e-6) > 0


class Moment(NamedTuple):
    """State of the entropy and its control in one step."""

    entropy: float
    """Mean entropy (nats)."""
    signal: float | None
    """Share of the tokens, or of the sampled groups, that have an advantage; None if it is not logged."""
    target: float | None = None
    """Target entropy (nats); None without one."""
    actuators: tuple[Actuator, ...] = ()

    @property
    def gap(self) -> float:
        """Entropy minus target (nats); NaN without a target."""
        return math.nan if self.target is None else self.entropy - self.target


def moment(controller: Chain | None, metrics: Mapping[str, float]) -> Moment:
    """Return the state of a step, with the first closed loop of the controller.

    An actuator is a metric that is named like one of the loop's upper limits: `thermostat/bonus` and `bonus_max`.
    Hyperparameters that move are in the metrics.
    """
    advantages = [metrics[name] for name in _QUADRANTS if name in metrics]
    seen = Moment(metrics["entropy"], metrics.get("groups/kept", sum(advantages) if advantages else None))
    for part in (controller.surrogate, *controller.parts) if controller else ():
        known = hyperparameters(type(part))
        if "target" not in known:
            continue
        own = {key.partition("/")[2]: value for key, value in metrics.items() if key.startswith(f"{part.name}/")}
        numbers: dict[str, Any] = {key: getattr(part, key) for key in known} | own
        limits = {key.removesuffix("_max"): key for key in known if key.endswith("_max")}
        moved = [(name, limits[word]) for name in own for word in name.split("_") if word in limits]
        actuators = tuple(Actuator(name, own[name], float(numbers[limit]), limit) for name, limit in moved)
        return seen._replace(target=float(numbers["target"]), actuators=actuators)
    return seen


def findings(recent: Sequence[Moment]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong in the last steps, at most WINDOW, each as its kind and a sentence."""
    now, half = recent[-1], WINDOW // 2
    pinned = [{one.name for one in each.actuators if one.is_at_bound} for each in recent[-AT_BOUND:]]
    for one in now.actuators:
        if len(pinned) == AT_BOUND and all(one.name in names for names in pinned):
            yield one.key, f"{one.name} is at its bound, {one.key} {one.bound:g}: --set {one.key}=… moves it"
    if now.target is not None and len(recent) == WINDOW:
        before, after = fmean(each.gap for each in recent[:half]), fmean(each.gap for each in recent[half:])
        if abs(after) > max(HOLDS_WITHIN * now.target, NEARER * abs(before)):
            side = "above" if after > 0 else "below"
            yield "target", f"the entropy misses its target: {abs(after):.2f} nats {side} it, and comes no nearer"
    signals = [each.signal for each in recent[-half:] if each.signal is not None]
    if len(signals) == half and 1 - fmean(signals) >= NO_SIGNAL:
        yield (
            "signal",
            f"no signal from {1 - fmean(signals):.0%} of the tokens: their groups are all right or all wrong",
        )


class TrainDisplay(Bar):
    """Line of the last step, redrawn on a terminal, and findings when they begin.

    Use as a context manager and pass it as the trainer's `report`.
    """

    transient = True

    def __init__(
        self,
        label: str,
        steps: int,
        done: int = 0,
        console: Console | None = None,
        controller: Chain | None = None,
    ) -> None:
        """label: name of the run until the first step is over. controller: has the target; None shows none."""
        super().__init__(label, steps, done, console)
        self.label, self.controller = label, controller
        self.seen: dict[str, float] = {}
        self.recent: list[Moment] = []
        self.found: dict[str, int] = {}
        """Last step of each finding."""
        self.printed = done

    def columns(self) -> tuple[ProgressColumn, ...]:
        return (_Line(self),)

    def __call__(self, step: int, metrics: dict[str, float]) -> None:
        self.seen = self.seen | metrics  # a new dict, as another thread may be drawing the old one
        self.recent = [*self.recent, moment(self.controller, self.seen)][-WINDOW:]
        self.show(completed=step + 1)
        if self.done % PRINT_EVERY == 0 or self.done in (self.first + 1, self.total) or self.is_silent():
            self.print(self.line())
            self.printed = self.done
        for kind, words in findings(self.recent):
            if step - self.found.get(kind, -QUIET) >= QUIET:
                self.print(f"step {self.done}: {words}", style="yellow")
            self.found[kind] = step

    def line(self) -> str:
        """Return the line of the last step, as wide as the terminal at most."""
        if not self.recent:
            waited = clock_time(time.monotonic() - self.times[0][1])
            return f"{self.label}: step {self.done + 1}/{self.total} under way, {waited}"
        now = self.recent[-1]
        numbers = {
            "step": f"step {self.done}/{self.total}",
            "H": f"H {_nats(now.entropy)}" + ("" if now.target is None else f" → {_nats(now.target)}"),
            "gap": "" if now.target is None else f"{round(now.gap, 2) + 0.0:+.2f}".replace("-", "−"),
            "actuator": next((f"{one.name} {one.value:.2g}".replace("-", "−") for one in now.actuators), ""),
            "reward": f"reward {self.seen['reward']:.2f}",
            "pass": next(
                (f"{k[1]} {value:.2f}" for key, value in self.seen.items() if (k := _PASS.fullmatch(key))), ""
            ),
            "len": f"len {self.seen['response_length']:.1f}" if "response_length" in self.seen else "",
            "seconds": f"{self.seen['time/step']:.1f} s" if "time/step" in self.seen else "",
            "left": f"left {self.left()}",
        }
        for name in DROPPED:
            if not self.console.is_terminal or len(_joined(numbers)) <= self.console.width:
                break
            numbers[name] = ""
        return _joined(numbers)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.printed < self.done:
            self.print(self.line())

    def say(self, line: str) -> None:
        """Print a line, above the line of the last step."""
        self.print(line)


class _Line(ProgressColumn):
    """Line of a display, drawn anew several times a second, so that its times run."""

    def __init__(self, display: TrainDisplay) -> None:
        super().__init__()
        self.display = display

    def render(self, task: Task) -> Text:
        return Text(self.display.line(), no_wrap=True, overflow="ellipsis")


def _joined(numbers: Mapping[str, str]) -> str:
    inner = ", ".join(filter(None, (numbers["gap"], numbers["actuator"])))
    parts = {**numbers, "H": f"{numbers['H']} ({inner})" if inner else numbers["H"], "gap": "", "actuator": ""}
    return "  ".join(filter(None, parts.values()))


def _nats(entropy: float) -> str:
    return f"{entropy:.2f}" if entropy >= 0.1 else f"{entropy:.3f}"


class WarmUpDisplay(Bar):
    """Progress bar of the supervised warm-up, used as its `progress` callback; the end of a `with` block closes it.

    It appears at the first step: there are no steps if the model was built before.
    """

    def __init__(self, steps: int, console: Console | None = None) -> None:
        super().__init__("warm-up", steps, console=console)

    def __call__(self, step: int, loss: float) -> None:
        self.start()
        self.show(completed=step + 1, numbers=f"loss {loss:.3f}")
        if self.done in (1, self.total) or self.is_silent():
            self.say(f"warm-up {self.done}/{self.total}  loss {loss:.3f}  left {self.left()}")

    def __enter__(self) -> Self:
        return self
