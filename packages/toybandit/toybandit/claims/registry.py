"""What a claim is. A claim is registered with what a paper says; its function measures and judges.

    @claim("thm2", source=..., assumption=..., predicted=..., expected=HOLDS)
    def natural_policy_gradient(effort): ... return Finding(measured, numbers, verdict)

A verdict follows from measurements alone. `expected` is what is known of the claim; a verdict that differs from it is
an error in the code or news about the claim.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..threads import one_thread

HOLDS = "holds"
FAILS = "fails as stated"


def holds_if(condition: str) -> str:
    """The verdict on a claim that is true under a condition which the paper does not state."""
    return f"holds if {condition}"


def judge(as_stated: bool, condition: str | None = None, under_condition: bool = False) -> str:
    """Verdict of two measurements: of the claim as stated, and of the claim under `condition`."""
    if as_stated:
        return HOLDS
    return holds_if(condition) if condition is not None and under_condition else FAILS


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much to measure. The claims and tolerances are the same at any effort."""

    instances: int
    """Random instances of a property that is checked on many; independent runs in sampled environments are fewer."""
    runs: int
    """Runs side by side in a sampled environment."""


QUICK = Effort(instances=40, runs=4)
FULL = Effort(instances=400, runs=32)


class Finding(NamedTuple):
    """What a claim's function gives back."""

    measured: str
    """For a reader."""
    numbers: dict[str, float]
    """The same for a program."""
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line of the report."""

    name: str
    source: str
    """Paper and equation."""
    assumption: str
    predicted: str
    measured: str
    numbers: dict[str, float]
    verdict: str
    expected: str

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and the function that checks it."""

    name: str
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
            source=self.source,
            assumption=self.assumption,
            predicted=self.predicted,
            expected=self.expected,
            **finding._asdict(),
        )


CLAIMS: dict[str, Claim] = {}


def claim(
    name: str, *, source: str, assumption: str, predicted: str, expected: str
) -> Callable[[Callable[[Effort], Finding]], Claim]:
    """Register the decorated function as the check of a claim."""

    def add(check: Callable[[Effort], Finding]) -> Claim:
        if name in CLAIMS:
            raise ValueError(f"claim {name!r} is registered twice")
        CLAIMS[name] = Claim(
            name=name, source=source, assumption=assumption, predicted=predicted, expected=expected, check=check
        )
        return CLAIMS[name]

    return add


def run_claims(effort: Effort) -> Iterator[Record]:
    """Check every claim, one after another."""
    for entry in CLAIMS.values():
        yield entry(effort)
