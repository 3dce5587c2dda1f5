"""Words about the outcome of a claim's trial, without Markdown; the page Theorems and published pages show them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from toybandit.claims import Live
from toybandit.trials import Outcome


def sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def told(value: Any) -> str:
    """Return a parameter's value as text."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def badges(case: Live, values: Mapping[str, Any]) -> list[str]:
    """Return the conditions that these values of all parameters break, in words."""
    return [
        f"{'Assumption' if condition.stated else 'Unstated condition'} broken: {case.told(condition)}"
        for condition in case.broken(values)
    ]


def met(case: Live, values: Mapping[str, Any]) -> bool:
    """Return True if these values of all parameters meet every assumption that the paper states."""
    return not any(condition.stated for condition in case.broken(values))


def meaning(case: Live, values: Mapping[str, Any], outcome: Outcome) -> str:
    """Return the meaning of the verdict, given the assumptions."""
    if not met(case, values):
        if outcome.holds:
            return "An assumption is broken, and the claim still holds: the assumption is not needed here."
        return "The claim needs this assumption: without it, it says nothing about this setting."
    if outcome.holds:
        return "All assumptions are met, and the claim holds."
    if unstated := [case.told(condition) for condition in case.broken(values)]:
        return (
            "A counterexample to the claim as stated: all assumptions of the paper are met. The claim also needs: "
            f"{', '.join(unstated)}."
        )
    return "A counterexample: all assumptions are met, and the claim fails."


def difference(outcome: Outcome) -> str:
    """Return the largest difference between measured and predicted values, in words."""
    residual = outcome.residual[np.isfinite(outcome.residual)]
    if not residual.size:
        return "Nothing can be compared."
    return f"Measured and predicted differ by {np.abs(residual).max():.3g} at most."
