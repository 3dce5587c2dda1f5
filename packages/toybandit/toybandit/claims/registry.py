"""Registry of claims. A claim is registered with the paper's words and our threshold; its function measures and judges.

    @claim(
        "thm2",
        paper=..., source="theorem 2", words=..., assumption=...,     what the paper says, and where
        threshold=..., null=..., expected=HOLDS,                      what we ask, and what must be beaten
        mutations=(Mutation("the step had the other sign", Swap(...)),),
    )
    def natural_policy_gradient(effort):
        "Meaning of the claim, in a sentence."
        ... return Finding(measured, numbers, verdict, null=...)

A verdict follows from measurements alone. `expected` is the known verdict; a different one means an error in the code
or a new result about the claim. Each mutation is a fault that must turn the verdict: a claim that none can turn says
nothing.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from inspect import getdoc
from typing import NamedTuple

from entrostat import choosing

from ..workspace import one_thread
from .mutations import Mutation

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
    null: str = ""
    """Measurements of the null, as text."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Entry of the report."""

    name: str
    paper: str
    source: str
    """Place in the paper."""
    words: str
    """Statement of the paper, in our words."""
    meaning: str
    """Explanation in a sentence or a few."""
    assumption: str
    setting: str
    """Setting of the paper, if ours differs from it."""
    threshold: str
    """Criterion of ours for the verdict, and the reason for it."""
    null: str
    """Simpler explanation that the claim must beat or be told apart from."""
    measured: str
    measured_null: str
    numbers: dict[str, float]
    verdict: str
    false_failure: float
    expected: str
    mutations: tuple[str, ...]
    """Names of the faults that must turn the verdict."""
    mutated: dict[str, str] | None = None
    """Verdict under each of the mutations; None if they were not measured."""

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected

    @property
    def unnoticed(self) -> tuple[str, ...]:
        """Mutations that left the verdict as it was."""
        return tuple(name for name, verdict in (self.mutated or {}).items() if verdict == self.verdict)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim and the function that checks it. Fields as in Record."""

    name: str
    paper: str
    source: str
    words: str
    assumption: str
    setting: str
    threshold: str
    null: str
    expected: str
    mutations: tuple[Mutation, ...]
    check: Callable[[Effort], Finding]

    def __call__(self, effort: Effort, *, power: bool = False) -> Record:
        """Measure the claim; `power`: also under each of its mutations."""
        with one_thread():
            finding = self.check(effort)
            mutated = {mutation.name: self.verdict_under(mutation, effort) for mutation in self.mutations if power}
        return Record(
            name=self.name,
            paper=self.paper,
            source=self.source,
            words=self.words,
            meaning=getdoc(self.check) or "",
            assumption=self.assumption,
            setting=self.setting,
            threshold=self.threshold,
            null=self.null,
            measured=finding.measured,
            measured_null=finding.null,
            numbers=finding.numbers,
            verdict=finding.verdict,
            false_failure=finding.false_failure,
            expected=self.expected,
            mutations=tuple(mutation.name for mutation in self.mutations),
            mutated=mutated if power else None,
        )

    def verdict_under(self, mutation: Mutation, effort: Effort) -> str:
        """Return the verdict that the claim gets with a fault in what it tests."""
        with mutation():
            return self.check(effort).verdict


CLAIMS: dict[str, Claim] = {}
LISTED = "docs/theory.md lists the names"


def claim(
    name: str,
    *,
    paper: str,
    source: str,
    words: str,
    assumption: str,
    threshold: str,
    null: str,
    expected: str,
    mutations: tuple[Mutation, ...],
    setting: str = "",
) -> Callable[[Callable[[Effort], Finding]], Claim]:
    """Register the decorated function as the check of a claim."""

    def add(check: Callable[[Effort], Finding]) -> Claim:
        if name in CLAIMS:
            raise ValueError(f"claim {name!r} is registered twice")
        CLAIMS[name] = Claim(
            name=name,
            paper=paper,
            source=source,
            words=words,
            assumption=assumption,
            setting=setting,
            threshold=threshold,
            null=null,
            expected=expected,
            mutations=mutations,
            check=check,
        )
        return CLAIMS[name]

    return add


def choose(names: Collection[str] = (), pattern: str = "") -> list[Claim]:
    """Return the claims with these names or with `pattern` in their name: see `entrostat.choosing.choose`."""
    return choosing.choose(CLAIMS, names, pattern, kind="claim", listed=LISTED)


def run_claims(claims: Collection[Claim], effort: Effort, *, power: bool = False) -> Iterator[Record]:
    """Yield the record of each claim, one after another."""
    for entry in claims:
        yield entry(effort, power=power)
