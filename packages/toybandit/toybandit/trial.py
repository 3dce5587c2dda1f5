"""Trials: a trial is a small experiment with sliders that compares a claim's prediction with a measurement.

    @trial("windup", Parameter(key="kp", label="Proportional gain", default=4.0, low=0.5, high=8.0, step=0.5, help=...))
    def windup(kp: float) -> Outcome:
        "Experiment, in a sentence."
        ... return Outcome(...)

The verdict of an outcome follows from its numbers alone. What a claim assumes of a trial is in its `Live`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

import numpy as np

from entrostat.settings.importing import is_made_again

from .trajectory import Array
from .workspace import one_thread


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Slider, choice or switch of a trial; the type of `default` determines the allowed values."""

    key: str
    """Name in the URL, in `Trial.run` and in the trial's function."""
    label: str
    default: float | int | bool | str
    help: str
    symbol: str = ""
    """Symbol in the papers, such as η."""
    unit: str = ""
    low: float | None = None
    """Smallest value of a number."""
    high: float | None = None
    """Largest value of a number."""
    step: float | None = None
    """Step of the slider."""
    options: tuple[str, ...] = ()
    """Options of a choice; other values are refused."""

    def checked(self, value: Any) -> Any:
        """Return the value, as float if floats are allowed. Raise ValueError on a wrong type or out of range."""
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
    """Result of one trial at one setting of its parameters."""

    x: Array
    """Values on the x axis, (n,), rising unless `points`."""
    x_title: str
    predicted: Array
    """Prediction of the claim, (n,)."""
    measured: Array
    """Measurement, (n,); NaN if nothing could be measured."""
    y_title: str
    """Title of `predicted` and `measured`, with the unit."""
    holds: bool
    because: str
    """Reason of the verdict: one sentence with the numbers behind it."""
    points: bool = False
    """True if x, predicted and measured are a cloud of points instead of curves."""
    log_x: bool = False
    """True if the x axis is logarithmic."""
    log_y: bool = False
    """True if the axis of predicted, measured and the residual's size is logarithmic."""
    names: tuple[str, ...] = ()
    """Names of x = 0, 1, …, if x numbers things."""

    @property
    def residual(self) -> Array:
        """Difference measured − predicted, (n,)."""
        return self.measured - self.predicted

    @property
    def verdict(self) -> str:
        """Sentence with the verdict at this setting and its reason."""
        return f"{'Holds' if self.holds else 'Fails'} here: {self.because}"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Live experiment."""

    name: str
    parameters: tuple[Parameter, ...]
    measure: Callable[..., Outcome]
    """Function that takes every parameter by its key."""

    @property
    def meaning(self) -> str:
        """Description of the experiment in a sentence."""
        return " ".join((getdoc(self.measure) or "").split())

    @property
    def defaults(self) -> dict[str, Any]:
        """Default of each parameter by its key."""
        return {parameter.key: parameter.default for parameter in self.parameters}

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter, given or default. Raise ValueError, one line, on unknown keys and invalid values."""
        unknown = set(given) - set(self.defaults)
        if unknown:
            raise ValueError(
                f"trial {self.name!r} has no {', '.join(sorted(unknown))}; it has {', '.join(self.defaults)}"
            )
        return {p.key: p.checked(given.get(p.key, p.default)) for p in self.parameters}

    def run(self, **given: Any) -> Outcome:
        """Run the experiment with these values, and defaults for the rest; the same values give the same numbers."""
        with one_thread():
            return self.measure(**self.values(given))


TRIALS: dict[str, Trial] = {}


def trial(name: str, *parameters: Parameter) -> Callable[[Callable[..., Outcome]], Trial]:
    """Register the decorated function as the experiment of a trial."""

    def add(measure: Callable[..., Outcome]) -> Trial:
        if name in TRIALS and not is_made_again(TRIALS[name].measure, measure):
            raise ValueError(f"trial {name!r} is registered twice")
        TRIALS[name] = Trial(name=name, parameters=parameters, measure=measure)
        return TRIALS[name]

    return add


def nearest_rising(values: Array) -> Array:
    """Return the non-decreasing numbers (n,) closest to `values` (n,) in least squares; `values` itself if it rises."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean, count = (before * more + mean * count) / (more + count), more + count
        blocks.append((mean, count))
    return np.concatenate([np.full(count, mean) for mean, count in blocks])
