"""A claim's trial at each value of one control, as data of a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import parse_settings
from toybandit.claims import CLAIMS, Live
from toybandit.trials import Outcome, Parameter

from ..shared.trial_words import badges, difference, meaning, told

LARGEST = 61
"""Largest number of slider positions; a control with more of them is thinned out."""
DIGITS = 6
"""Significant digits of the numbers in a page."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Claim, the control that the page's slider moves, and where it starts."""

    case: Live
    parameter: Parameter
    start: Any

    @property
    def name(self) -> str:
        """Name of claim and control."""
        return f"{self.case.claim}.{self.parameter.key}"

    @property
    def values(self) -> list[Any]:
        """Positions of the slider, in order: those of the explorer's control, both limits and `start` among them."""
        if self.parameter.options:
            return list(self.parameter.options)
        if isinstance(self.parameter.default, bool):
            return [False, True]
        low, high, step = self.parameter.low, self.parameter.high, self.parameter.step
        assert low is not None
        assert high is not None
        assert step is not None
        count = round((high - low) / step)
        stride = -(-count // (LARGEST - 2))
        kind = type(self.parameter.default)
        inner = {kind(round(low + i * step, 9)) for i in range(0, count, stride)}
        return sorted({*inner, kind(high), self.start})

    def settings(self, value: Any) -> dict[str, Any]:
        """Return every parameter of the trial, with the control at `value`."""
        return {**self.case.start, self.parameter.key: value}

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield what the page shows at each position, measured one after the other."""
        for value in self.values:
            yield {"value": told(value), **_shown(self.case, self.settings(value))}


def _shown(case: Live, settings: dict[str, Any]) -> dict[str, Any]:
    """Return verdict, words and curves at these values of all parameters."""
    try:
        outcome = case.trial.run(**settings)
    except ValueError as error:
        return {"error": str(error)}
    return {
        "holds": outcome.holds,
        "because": outcome.because,
        "meaning": meaning(case, settings, outcome),
        "broken": badges(case, settings),
        "difference": difference(outcome),
        **_curves(outcome),
    }


def _curves(outcome: Outcome) -> dict[str, Any]:
    """Return the numbers of the picture and the kinds of its axes."""
    return {
        **{name: rounded(getattr(outcome, name)) for name in ("x", "predicted", "measured")},
        **{name: getattr(outcome, name) for name in ("x_title", "y_title", "points", "log_x", "log_y")},
        "names": list(outcome.names),
    }


def rounded(values: np.ndarray, digits: int = DIGITS) -> list[float | None]:
    """Return numbers of any shape as a list with few digits; None for those that are not finite."""
    return [float(f"{value:.{digits}g}") + 0.0 if np.isfinite(value) else None for value in np.ravel(values)]


def parse(text: str) -> Grid:
    """Return the grid that CLAIM.CONTROL=VALUE names; without VALUE it starts where the claim does.

    Raises ValueError, one line, on an unknown claim or control and on a value out of its range.
    """
    try:
        return _parsed(*text.partition("="))
    except ValueError as error:
        raise ValueError(f"--claim {text}: {error}") from None


def _parsed(named: str, equals: str, value: str) -> Grid:
    claim, _, key = (named, "", "") if named in CLAIMS else named.rpartition(".")
    claim = claim if claim in CLAIMS else CLAIMS.loaded(claim)
    case = CLAIMS[claim].live if claim in CLAIMS else None
    if case is None:
        known = [name for name, one in CLAIMS.items() if one.live]
        raise ValueError(unknown("claim", claim or named, known, CLAIMS.where))
    found = {parameter.key: parameter for parameter in case.trial.parameters}
    if not key:
        raise ValueError(f"name one of its controls, as in {claim}.{next(iter(found))}: {', '.join(found)}")
    if key not in found:
        raise ValueError(unknown("control", key, found))
    parameter, given = found[key], case.start[key]
    if equals:
        given = value if parameter.options else parse_settings([f"{key}={value}"])[key]
    return Grid(case=case, parameter=parameter, start=parameter.checked(given))
