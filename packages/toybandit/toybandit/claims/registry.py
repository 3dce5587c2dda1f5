r"""Claims of the bandit. One is a function with all that is known of it; the function measures and judges.

@claim(
    "thm2",
    paper=..., source="theorem 2", words=..., assumption=...,     what the paper says, and where
    statement=r"\Delta H = ...", theorem=Theorem(...),            the same in LaTeX, and its derivation
    threshold=..., null=..., expected=HOLDS,                      what we ask, and what must be beaten
    mutations=(Mutation("the step had the other sign", Swap(...)),),
    live=Live("first-order", turned={"rule": "policy gradient"}),  its experiment with sliders
)
def natural_policy_gradient(effort):
    "Meaning of the claim, in a sentence."
    ... return Finding(measured, numbers, verdict, null=...)
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from entrostat.about.claims import FAILS, HOLDS, Claims, Finding, Record
from entrostat.about.claims import Claim as AnyClaim

from ..workspace import one_thread
from .live_case import Live
from .theorems import Theorem

__all__ = ["CLAIMS", "FAILS", "HOLDS", "Claim", "Effort", "Finding", "Record", "claim", "holds_if", "judge"]


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


@dataclass(frozen=True, kw_only=True)
class Claim(AnyClaim):
    """Claim on the bandit, measured with an `Effort`."""

    statement: str | tuple[str, ...] = ""
    """The claim in LaTeX, in one line or several; H is the entropy in nats, p and π the policy, A the advantage."""
    theorem: Theorem | None = None
    """Theorem that it measures, with its derivation."""
    live: Live | None = None
    """Its experiment with sliders."""

    def __post_init__(self) -> None:
        if self.expected not in ("", HOLDS, FAILS) and not self.expected.startswith(holds_if("")):
            known = f"{HOLDS!r}, {FAILS!r}, {holds_if('…')!r} or ''"
            raise ValueError(f"claim {self.name!r}: expected must be {known}, not {self.expected!r}")
        if self.live is not None:
            object.__setattr__(self, "live", replace(self.live, claim=self.name))

    @property
    def latex(self) -> str:
        """The statement; its lines are stacked, so that it fits on a phone."""
        if isinstance(self.statement, str):
            return self.statement
        return r"\begin{gathered}" + r" \\ ".join(self.statement) + r"\end{gathered}"

    def __call__(self, subject: Effort, *, power: bool = False) -> Record:
        with one_thread():
            return super().__call__(subject, power=power)


CLAIMS = Claims(Claim, group="toybandit.claims", listed="docs/theory.md lists the names")


def claim(name: str, **given: Any) -> Callable[[Callable[[Effort], Finding]], Claim]:
    """Register the decorated function as the check of a claim; fields as in Claim."""
    return CLAIMS.claim(name, **given)


def run_claims(claims: Collection[Claim], effort: Effort, *, power: bool = False) -> Iterator[Record]:
    """Yield the record of each claim, one after another."""
    for entry in claims:
        yield entry(effort, power=power)
