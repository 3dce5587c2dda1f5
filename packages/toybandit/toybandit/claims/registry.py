"""Registry of claims. A claim is registered with the paper's statement; its function measures and judges.

    @claim("thm2", paper=..., source=..., assumption=..., predicted=..., expected=HOLDS)
    def natural_policy_gradient(effort):
        "Meaning of the claim, in a sentence."
        ... return Finding(measured, numbers, verdict)

A verdict follows from measurements alone. `expected` is the known verdict; a different one means an error in the code
or a new result about the claim.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from inspect import getdoc
from typing import NamedTuple

from ..workspace import one_thread

HOLDS = "holds"
FAILS = "fails as stated"


def holds_if(condition: str) -> str:
    """Return the verdict on a claim that is true under a condition that the paper does not state."""
    return f"holds if {condition}"


def judge(as_stated: bool, condition: str | None = None, under_condition: bool = False) -> str:
    """Return the verdict from two measurements: of the claim as stated, and of the claim under `condition`."""
    if as_stated:
        return HOLDS
    return holds_if(condition) if condition is not None and under_condition else FAILS


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Amount of measurement. The claims and tolerances are the same at any effort."""

    instances: int
    """Random instances of a property that is checked on many; sampled environments have fewer independent runs."""
    runs: int
    """Runs side by side in a sampled environment."""
    states: int
    """States of a sampled environment."""
    rollouts: int
    """Rollouts of a run in a sampled environment."""

    def times(self, factor: float) -> "Effort":
        """Return this effort with more runs for a small difference, or fewer for a large one; at least 3."""
        return replace(self, runs=max(round(factor * self.runs), 3))


QUICK = Effort(instances=40, runs=16, states=48, rollouts=150)
FULL = Effort(instances=400, runs=16, states=64, rollouts=300)


class Finding(NamedTuple):
    """Result of a claim's function."""

    measured: str
    """Measurements as text."""
    numbers: dict[str, float]
    """Measurements as numbers."""
    verdict: str
    false_failure: float = 0.0
    """Probability that fresh seeds give another verdict, or an upper bound; 0 if the verdict uses no random numbers."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Entry of the report."""

    name: str
    paper: str
    source: str
    """Place in the paper."""
    meaning: str
    """Explanation in a sentence or a few."""
    assumption: str
    predicted: str
    measured: str
    numbers: dict[str, float]
    verdict: str
    false_failure: float
    expected: str

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim and the function that checks it."""

    name: str
    paper: str
    source: str
    assumption: str
    predicted: str
    expected: str
    check: Callable[[Effort], Finding]

    def __call__(self, effort: Effort) -> Record:
        with one_thread():
            finding = self.check(effort)
        return Record(
            name=self.name,
            paper=self.paper,
            source=self.source,
            meaning=getdoc(self.check) or "",
            assumption=self.assumption,
            predicted=self.predicted,
            expected=self.expected,
            **finding._asdict(),
        )


CLAIMS: dict[str, Claim] = {}


def claim(
    name: str, *, paper: str, source: str, assumption: str, predicted: str, expected: str
) -> Callable[[Callable[[Effort], Finding]], Claim]:
    """Register the decorated function as the check of a claim."""

    def add(check: Callable[[Effort], Finding]) -> Claim:
        if name in CLAIMS:
            raise ValueError(f"claim {name!r} is registered twice")
        CLAIMS[name] = Claim(
            name=name,
            paper=paper,
            source=source,
            assumption=assumption,
            predicted=predicted,
            expected=expected,
            check=check,
        )
        return CLAIMS[name]

    return add


def run_claims(effort: Effort) -> Iterator[Record]:
    """Yield the record of every claim, one after another."""
    for entry in CLAIMS.values():
        yield entry(effort)
