"""Schedules: numbers that move with the rollout step. Any numeric hyperparameter takes one instead of a number.

linear(0.65, 0.15, steps=400)        on a straight line from 0.65 at step 0 to 0.15 at step 400, then constant
cosine(0.65, 0.15, steps=400)        the same along half a period of a cosine
piecewise({0: 0.45, 200: 0.30})      0.45, and 0.30 from step 200 on
"0.4x"                               0.4 times the entropy of the first rollout, for targets: linear("1x", "0.4x", 400)

Without `steps`, linear and cosine end at the last rollout step of the training. The text of a schedule, such as
"linear(0.65, 0.15, 400)" or "piecewise(0: 0.45, 200: 0.3)", stands for it in settings. This module does not import
torch.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RELATIVE = re.compile(rf"({NUMBER})\s*x")
CALL = re.compile(r"(linear|cosine|piecewise)\s*\((.*)\)", re.DOTALL)
FORMS = "linear(0.65, 0.15, 400), cosine(0.65, 0.15, 400), piecewise(0: 0.45, 200: 0.3) or 0.4x"
TRIALS = 64
"""Number of equal parts of a schedule between which its values are tried."""


class Knot(NamedTuple):
    """Value of a schedule at one position: number + share · (entropy of the first rollout)."""

    position: float
    number: Any
    share: float = 0.0


@dataclass(frozen=True)
class Schedule:
    """Number that moves with the rollout step, by its values at some positions. Made by `linear` and the others."""

    shape: str
    """Curve between two knots: linear, cosine, or piecewise, which keeps the value of the earlier knot."""
    knots: tuple[Knot, ...]
    """Values in order of their positions; the first and the last hold before and after them."""
    whole: bool = False
    """True if positions are shares of the training, 0 at its first rollout step and 1 at its last."""

    def __str__(self) -> str:
        if len(self.knots) == 1:
            return _text(self.knots[0])
        if self.shape == "piecewise":
            return f"piecewise({', '.join(f'{_short(knot.position)}: {_text(knot)}' for knot in self.knots)})"
        values = [_text(knot) for knot in self.knots]
        return f"{self.shape}({', '.join(values if self.whole else [*values, _short(self.knots[-1].position)])})"

    @property
    def relative(self) -> bool:
        """True if a value depends on the entropy of the first rollout."""
        return any(knot.share for knot in self.knots)

    @property
    def single(self) -> tuple["Schedule", ...]:
        """Schedules of all runs: this one."""
        return (self,)

    def at(self, step: float, total_steps: int | None = None) -> tuple[Any, Any]:
        """Return number and share at a rollout step; the value is number + share · (entropy of the first rollout).

        total_steps: rollout steps of the training. Raises ValueError if it is needed and None.
        """
        if not self.whole:
            return self._at(step)
        if total_steps is None:
            raise ValueError(f"{self} without steps needs StepStats.total_steps: give it steps")
        return self._at(step / max(total_steps - 1, 1))

    def _at(self, position: float) -> tuple[Any, Any]:
        before = [knot for knot in self.knots if knot.position <= position] or [self.knots[0]]
        after = [knot for knot in self.knots if knot.position > position]
        start = before[-1]
        if not after or position <= start.position or self.shape == "piecewise":
            return start.number, start.share
        end = after[0]
        done = (position - start.position) / (end.position - start.position)
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return start.number + done * (end.number - start.number), start.share + done * (end.share - start.share)


@dataclass(frozen=True)
class PerRun:
    """One schedule for each leading run."""

    schedules: tuple[Schedule, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.schedules))}]"

    @property
    def relative(self) -> bool:
        return any(schedule.relative for schedule in self.schedules)

    @property
    def single(self) -> tuple[Schedule, ...]:
        return self.schedules

    def at(self, step: float, total_steps: int | None = None) -> tuple[Any, Any]:
        """Return numbers and shares of the runs, a list each, as `Schedule.at` does."""
        numbers, shares = zip(*(schedule.at(step, total_steps) for schedule in self.schedules), strict=True)
        return list(numbers), list(shares)


Moving = Schedule | PerRun


def linear(start: float | str, end: float | str, steps: int | None = None) -> Schedule:
    """Return the schedule on a straight line from `start` at rollout step 0 to `end` at `steps`, then constant.

    steps: None for the last rollout step of the training. Raises ValueError if it is not positive.
    """
    return _between("linear", start, end, steps)


def cosine(start: float | str, end: float | str, steps: int | None = None) -> Schedule:
    """Return the schedule end + (start − end)·(1 + cos(π·step/steps))/2 up to `steps`, then constant; see `linear`."""
    return _between("cosine", start, end, steps)


def piecewise(values: Mapping[int, float | str]) -> Schedule:
    """Return the schedule with these values, each from its rollout step on. Raises ValueError without step 0."""
    if 0 not in values or any(not _is_number(step) or step < 0 for step in values):
        raise ValueError(f"piecewise takes rollout steps from 0 on, and 0 among them; got {list(values)}")
    return Schedule("piecewise", tuple(_knot(step, values[step]) for step in sorted(values)))


def _between(shape: str, start: float | str, end: float | str, steps: int | None) -> Schedule:
    if steps is not None and not (_is_number(steps) and steps > 0):
        raise ValueError(f"{shape} takes a positive number of steps, not {steps!r}")
    last = 1 if steps is None else steps
    return Schedule(shape, (_knot(0, start), _knot(last, end)), whole=steps is None)


def schedule(value: Any) -> Moving:
    """Return a schedule, its text, or a number as a schedule. Raises ValueError in one line on anything else."""
    if isinstance(value, Schedule | PerRun):
        return value
    if not isinstance(value, str) or RELATIVE.fullmatch(value.strip()):
        return Schedule("piecewise", (_knot(0, value),))
    call = CALL.fullmatch(value.strip())
    if call is None:
        raise ValueError(f"{value!r} is no schedule; write {FORMS}")
    name, given = call.groups()
    try:
        if name == "piecewise":
            pairs = [item.split(":") for item in given.strip().removeprefix("{").removesuffix("}").split(",")]
            steps = [int(step) for step, _ in pairs]
            if len(set(steps)) < len(steps):
                raise ValueError
            return piecewise(dict(zip(steps, (_value(text) for _, text in pairs), strict=True)))
        start, end, *rest = given.split(",")
        steps = [int(item.strip().removeprefix("steps").lstrip(" =")) for item in rest]
        return (linear if name == "linear" else cosine)(_value(start), _value(end), *steps)
    except (ValueError, TypeError) as error:
        said = str(error) if str(error).startswith(name) else f"write {FORMS}"
        raise ValueError(f"{value!r} is no schedule: {said}") from None


def is_schedule(value: Any) -> bool:
    """Return True if a value is a schedule or is written like one, valid or not."""
    if isinstance(value, str):
        return bool(re.match(r"(linear|cosine|piecewise)\b", value.strip()) or RELATIVE.fullmatch(value.strip()))
    return isinstance(value, Schedule | PerRun)


def plain(value: Any) -> Any:
    """Return settings with the text of each schedule in them, so that they can be written to files."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return str(value) if isinstance(value, Schedule) else value


def per_run(values: Sequence[Any]) -> PerRun:
    """Return the schedule of runs side by side, from a number or schedule for each."""
    found = [schedule(value) for value in values]
    return PerRun(tuple(one for one in found if isinstance(one, Schedule)))


def split(text: str, separator: str = r"\s+") -> list[str]:
    """Return the parts of a text between separators, a pattern, that are not within round brackets."""
    return re.split(rf"(?:{separator})(?![^(]*\))", text.strip())


def trial_steps(schedules: Iterable[Moving]) -> tuple[list[float], int]:
    """Return rollout steps to try schedules at, all their knots among them, and the length of the training then."""
    knots = [(one.whole, knot.position) for moving in schedules for one in moving.single for knot in one.knots]
    total = int(max([TRIALS, *(position for whole, position in knots if not whole)])) + 1
    between = [i * (total - 1) / TRIALS for i in range(TRIALS + 1)]
    return sorted({*between, *(position * (total - 1) if whole else position for whole, position in knots)}), total


def plain_target(target: Any) -> Any:
    """Return the target of a configuration as a number, text or None; text of a number becomes the number."""
    if not isinstance(target, str):
        return plain(target)
    return float(target) if re.fullmatch(NUMBER, target.strip()) else target


def check_target(target: Any) -> None:
    """Raise ValueError in one line unless a target of a configuration is None, a number or a valid schedule."""
    if isinstance(target, str) and not is_schedule(target):
        raise ValueError(f"target must be a number or a schedule; got {target!r}: write {FORMS}")
    if target is not None:
        try:
            schedule(target)
        except ValueError as error:
            raise ValueError(f"target: {error}") from None


def check_temperature(value: Any) -> None:
    """Raise ValueError in one line unless a sampling temperature is None, or a positive number at every step."""
    if value is None:
        return
    if isinstance(value, str) and not is_schedule(value):
        raise ValueError(f"temperature must be a positive number or a schedule; got {value!r}: write {FORMS}")
    try:
        found = schedule(value)
    except ValueError as error:
        raise ValueError(f"temperature: {error}") from None
    if found.relative or any(not knot.number > 0 for one in found.single for knot in one.knots):
        raise ValueError(f"temperature must be positive at every step, and not relative; got {value}")


def _value(text: str) -> float | str:
    return text.strip() if RELATIVE.fullmatch(text.strip()) else float(text)


def _knot(position: float, value: Any) -> Knot:
    """Return a knot from a number, or from text such as 0.4x. Raises ValueError on another value."""
    if isinstance(value, str):
        relative = RELATIVE.fullmatch(value.strip())
        if relative is None:
            raise ValueError(f"a value of a schedule is a number, or such as 0.4x; got {value!r}")
        return Knot(position, 0.0, float(relative[1]))
    if isinstance(value, bool) or (isinstance(value, Real) and not math.isfinite(value)):
        raise ValueError(f"a value of a schedule is a finite number, or such as 0.4x; got {value!r}")
    return Knot(position, value)


def in_nats(moving: "Schedule | PerRun", first: float) -> str:
    """Return a schedule as text whose relative values are numbers (nats), where the first entropy is `first`."""
    return re.sub(r"(?<![\w.])([\d.]+(?:e[+-]?\d+)?)x", lambda found: f"{float(found[1]) * first:.2g}", str(moving))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _text(knot: Knot) -> str:
    if knot.share:
        return f"{_short(knot.share)}x"
    return _short(knot.number) if isinstance(knot.number, Real) else "…"


def _short(number: Any) -> str:
    return repr(float(number)).removesuffix(".0")
