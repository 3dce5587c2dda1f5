"""What a trial is: one small experiment with sliders, that sets what a claim predicts beside what is measured.

    @trial("windup", Parameter(key="kp", label="Proportional gain", default=4.0, low=0.5, high=8.0, step=0.5, help=...))
    def windup(kp: float) -> Outcome:
        "What is tried, in a sentence."
        ... return Outcome(...)

The verdict of an outcome follows from its numbers alone. What a claim assumes is in `toybandit.trials.cases`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

import numpy as np

from ..trajectory import Array
from ..workspace import one_thread


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One slider, choice or switch of a trial; the type of `default` decides which values it takes."""

    key: str
    """Its name in the URL, in `Trial.run` and in the function of the trial."""
    label: str
    default: float | int | bool | str
    help: str
    symbol: str = ""
    """As in the papers, such as η."""
    unit: str = ""
    low: float | None = None
    """Least value of a number."""
    high: float | None = None
    """Largest value of a number."""
    step: float | None = None
    """Of its slider."""
    options: tuple[str, ...] = ()
    """Of a choice; no other value is taken."""

    def checked(self, value: Any) -> Any:
        """The value, a whole number as float where floats are taken. ValueError on another type or out of range."""
        if self.options:
            if value not in self.options:
                raise ValueError(f"{self.key} must be one of {', '.join(self.options)}, not {value!r}")
            return value
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise ValueError(f"{self.key} must be true or false, not {value!r}")
            return value
        kinds = int if isinstance(self.default, int) else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            kind = "a whole number" if isinstance(self.default, int) else "a number"
            raise ValueError(f"{self.key} must be {kind}, not {value!r}")
        assert self.low is not None
        assert self.high is not None
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.key} must be between {self.low:g} and {self.high:g}, not {value:g}")
        return value if isinstance(self.default, int) else float(value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """What one trial found at one setting of its parameters."""

    x: Array
    """(n,), rising unless `points`."""
    x_title: str
    predicted: Array
    """What the claim says, (n,)."""
    measured: Array
    """What was found, (n,). NaN where there was nothing to measure."""
    y_title: str
    """Of both, with the unit."""
    holds: bool
    because: str
    """The reason of the verdict: one sentence with the numbers that it was judged by."""
    points: bool = False
    """Whether x, predicted and measured are a cloud of points and not curves."""
    log_x: bool = False
    """Whether the axis of x is logarithmic."""
    log_y: bool = False
    """Whether that of predicted, measured and the size of the residual is."""
    names: tuple[str, ...] = ()
    """Names of x = 0, 1, …, where x counts things."""

    @property
    def residual(self) -> Array:
        """measured − predicted, (n,)."""
        return self.measured - self.predicted

    @property
    def verdict(self) -> str:
        """A sentence: whether the claim holds at this setting, and why."""
        return f"{'Holds' if self.holds else 'Fails'} here: {self.because}"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A live experiment."""

    name: str
    parameters: tuple[Parameter, ...]
    measure: Callable[..., Outcome]
    """Takes every parameter by its key."""

    @property
    def meaning(self) -> str:
        """What is tried, in a sentence."""
        return " ".join((getdoc(self.measure) or "").split())

    @property
    def defaults(self) -> dict[str, Any]:
        """Default of each parameter by its key."""
        return {parameter.key: parameter.default for parameter in self.parameters}

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter: as given, or its default. ValueError, one line, on unknown keys and values out of range."""
        unknown = set(given) - set(self.defaults)
        if unknown:
            raise ValueError(
                f"trial {self.name!r} has no {', '.join(sorted(unknown))}; it has {', '.join(self.defaults)}"
            )
        return {p.key: p.checked(given.get(p.key, p.default)) for p in self.parameters}

    def run(self, **given: Any) -> Outcome:
        """Make the experiment with these values, and defaults for the rest; the same values give the same numbers."""
        with one_thread():
            return self.measure(**self.values(given))


TRIALS: dict[str, Trial] = {}


def trial(name: str, *parameters: Parameter) -> Callable[[Callable[..., Outcome]], Trial]:
    """Register the decorated function as the experiment of a trial."""

    def add(measure: Callable[..., Outcome]) -> Trial:
        if name in TRIALS:
            raise ValueError(f"trial {name!r} is registered twice")
        TRIALS[name] = Trial(name=name, parameters=parameters, measure=measure)
        return TRIALS[name]

    return add


def nearest_rising(values: Array) -> Array:
    """The non-decreasing numbers (n,) that lie nearest to `values` (n,), in squares: equal to them where these rise."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean, count = (before * more + mean * count) / (more + count), more + count
        blocks.append((mean, count))
    return np.concatenate([np.full(count, mean) for mean, count in blocks])
