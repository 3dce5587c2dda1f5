"""Advice for a run: the rules of rules.yaml that apply to its facts, with their evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import exp, floor, log10
from pathlib import Path
from typing import Any

from ...settings.plain_yaml import load_yaml
from ..laws import MOST
from . import evidence
from .evidence import Found
from .facts import CONDITIONS, TARGET, Facts, parts
from .pasted import pasted

PATH = Path(__file__).with_name("rules.yaml")
NATS, RELATIVE = " nats", " times the entropy at the start"
"""Units of a target."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Row of rules.yaml, which explains the fields."""

    name: str
    when: tuple[tuple[str, ...], ...]
    """Groups of conditions; one of each must hold."""
    advice: str
    evidence: Mapping[str, Any]
    source: str
    changes: str
    controller: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    moves: str = ""
    price: str = ""

    def applies(self, facts: Facts) -> bool:
        """Return True if the conditions hold and the run does not have the controller already."""
        has = bool(self.controller) and self.controller in parts(facts.controller)
        return not has and all(not facts.conditions.isdisjoint(group) for group in self.when)

    def found(self) -> Found:
        """Return the result that the rule refers to."""
        return evidence.find(**self.evidence)


@dataclass(frozen=True)
class Advice:
    """Rule that applies to a run, with its evidence and settings."""

    rule: Rule
    found: Found
    choice: str
    """Values that the evidence supports, and the one to start with; empty if there is nothing to choose."""
    price: str
    """Price that the run's own law predicts; empty without one."""
    settings: Mapping[str, str]
    """Text to paste, by trainer; empty if the evidence does not support the rule."""


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules. Raises ValueError if one asks for an unknown condition or kind of evidence."""
    found = []
    for row in load_yaml(PATH):
        when = tuple(tuple(name.strip() for name in group.split("|")) for group in row["when"])
        unknown = {name for group in when for name in group} - set(CONDITIONS)
        if unknown or row["evidence"]["kind"] not in evidence.FINDERS:
            kind = row["evidence"]["kind"]
            raise ValueError(
                f"rule {row['name']}: unknown {f'condition {min(unknown)}' if unknown else f'evidence {kind}'}"
            )
        found.append(Rule(**{**row, "when": when}))
    return tuple(found)


def advise(facts: Facts) -> list[Advice]:
    """Return the advice for a run, in the order of the rules."""
    return [_advice(rule, facts) for rule in rules() if rule.applies(facts)]


def _advice(rule: Rule, facts: Facts) -> Advice:
    found = rule.found()
    if not found.supports or not rule.controller:
        return Advice(rule, found, "", "", {})
    values, unit = _values(rule, found, facts)
    first = values[(len(values) - 1) // 2]
    several = f"{rule.moves} from {values[0]:g} to {values[-1]:g}{unit}; start with {first:g}"
    choice = several if len(values) > 1 else f"{rule.moves} {first:g}{unit}"
    setting = f"{first:g}x" if unit == RELATIVE else first
    price = of_law(facts, first) if unit == NATS else ""
    return Advice(rule, found, choice, price, pasted(rule.controller, {**rule.args, rule.moves: setting}))


def _values(rule: Rule, found: Found, facts: Facts) -> tuple[tuple[float, ...], str]:
    """Return the supported values of the hyperparameter that moves, and their unit.

    Targets are shares of the entropy at the start if the run has none, otherwise nats; the run's own if the evidence
    does not depend on the target.
    """
    if rule.moves != TARGET:
        return found.values, ""
    if not found.values:
        return () if facts.control.target is None else (facts.control.target,), NATS
    if facts.entropy is None:
        return found.values, RELATIVE
    return tuple(rounded(facts.entropy.start * share) for share in found.values), NATS


def of_law(facts: Facts, target: float) -> str:
    """Return the reward that the run's law takes for holding a target, with its interval; empty if it predicts none."""
    if facts.law is None or facts.entropy is None or not facts.law.predicts:
        return ""
    if not facts.entropy.late < target <= MOST:
        return ""
    more = exp(target) - exp(facts.entropy.late)
    low, high = sorted(a * more for a in facts.law.law.a_interval)
    return (
        f"By this run's own law, {target:g} nats instead of {facts.entropy.late:.3g} cost {facts.law.law.a * more:.3f} "
        f"of the reward (95% interval {low:.3f} to {high:.3f})"
    )


def rounded(x: float) -> float:
    """Return a number with two significant digits."""
    return round(x, 1 - floor(log10(abs(x)))) if x else x
