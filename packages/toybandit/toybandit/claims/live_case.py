"""Live case of a claim: its experiment with sliders, where it is shown, what turns the verdict, and what it assumes.

    live=Live("windup", turned={"anti_windup": False}, conditions=(equals("anti_windup", True, stated=False),))

At `values` the trial holds, or fails if the claim fails as stated; with `turned` it does the opposite. A condition that
is not `stated` is one that the claim needs and the paper does not name: because of it, the claim only "holds if".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from ..trial import TRIALS, Outcome, Parameter, Trial

ROUNDING = 1e-9
"""Tolerance for rounding of the sliders' numbers."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Values of one parameter that a claim assumes."""

    key: str
    low: float = -inf
    high: float = inf
    allowed: tuple[Any, ...] = ()
    """Allowed values, if they are not a range."""
    stated: bool = True
    """True if the paper names this assumption."""

    def met(self, value: Any) -> bool:
        """Return True if `value` meets the condition."""
        return value in self.allowed if self.allowed else self.low - ROUNDING <= value <= self.high + ROUNDING

    def told(self, parameter: Parameter) -> str:
        """Return the condition as text, such as "Kp ≥ 1"."""
        name = parameter.symbol or parameter.label
        if isinstance(parameter.default, bool):
            return f"{name}: {'on' if self.allowed[0] else 'off'}"
        if self.allowed:
            return f"{name}: {' or '.join(map(str, self.allowed))}"
        if self.low == self.high:
            return f"{name} = {self.low:g}"
        if self.high == inf:
            return f"{name} ≥ {self.low:g}"
        return f"{name} ≤ {self.high:g}" if self.low == -inf else f"{self.low:g} ≤ {name} ≤ {self.high:g}"


def within(key: str, low: float = -inf, high: float = inf, *, stated: bool = True) -> Condition:
    """Return the condition that a number is in [low, high]."""
    return Condition(key=key, low=low, high=high, stated=stated)


def equals(key: str, *allowed: Any, stated: bool = True) -> Condition:
    """Return the condition that a parameter has one of these values."""
    if len(allowed) == 1 and isinstance(allowed[0], int | float) and not isinstance(allowed[0], bool):
        return Condition(key=key, low=allowed[0], high=allowed[0], stated=stated)
    return Condition(key=key, allowed=allowed, stated=stated)


SMALL_STEP = within("eta", high=1)
TINY_STEP = within("log_eta", high=-2)
REUSED = within("passes", low=2)
OFTEN_REUSED = within("passes", low=8)
ON_POLICY = equals("passes", 1)
NOISY = equals("env", "noisy")
UNBOUNDED = within("alpha_max", low=1)


@dataclass(frozen=True)
class Live:
    """Claim on trial. `@claim` fills in its name."""

    experiment: str | Trial
    """Trial, or the name of one in toybandit/trials."""
    values: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """First setting of the claim, as differences from the trial's defaults."""
    turned: Mapping[str, Any] = field(kw_only=True)
    """Changes to the first setting that turn the verdict."""
    conditions: tuple[Condition, ...] = field(default=(), kw_only=True)
    claim: str = field(default="", kw_only=True)

    @property
    def trial(self) -> Trial:
        """The experiment. Raises ValueError if there is none of its name."""
        if isinstance(self.experiment, Trial):
            return self.experiment
        if self.experiment not in TRIALS:
            raise ValueError(
                f"claim {self.claim!r}: there is no trial {self.experiment!r}; those of toybandit are there once "
                f"toybandit.trials is imported: {', '.join(TRIALS) or 'none yet'}"
            )
        return TRIALS[self.experiment]

    @property
    def start(self) -> dict[str, Any]:
        """Every parameter at the first setting."""
        return self.trial.values(self.values)

    def check(self) -> None:
        """Raise ValueError, one line, if the trial, its values, what turns it or a condition does not exist."""
        try:
            self.trial.values({**self.values, **self.turned})
            known = [parameter.key for parameter in self.trial.parameters]
            if unknown := [one.key for one in self.conditions if one.key not in known]:
                raise ValueError(f"trial {self.trial.name!r} has no {unknown[0]}; it has {', '.join(known)}")
        except ValueError as error:
            raise ValueError(f"live case of the claim {self.claim!r}: {error}") from None

    def run(self, **given: Any) -> Outcome:
        """Run the trial at `start`, changed to these values. Raise ValueError, one line, on unknown keys and values."""
        return self.trial.run(**{**self.values, **given})

    def broken(self, values: Mapping[str, Any]) -> list[Condition]:
        """Return the conditions that these values of all parameters do not meet."""
        return [condition for condition in self.conditions if not condition.met(values[condition.key])]

    def told(self, condition: Condition) -> str:
        """Return a condition as text."""
        return condition.told(next(p for p in self.trial.parameters if p.key == condition.key))

    def note(self, key: str) -> str:
        """Return a sentence with the assumptions on a parameter; empty if there are none."""
        found = [self.told(condition) for condition in self.conditions if condition.key == key]
        return f"Assumed: {', '.join(found)}." if found else ""
