"""Registry of claims that can be asked in a language model, each with its threshold, its null and its faults.

    @claim("clip-free", needs=("grpo", "clip_free"), threshold=..., null=..., faults={"...": change of Measured})
    def clip_free(measured): ... return Finding(text, null, margins)

The names are those of toybandit's claims, whose records have the papers' words. A margin is a difference, one value for
each seed, that is positive if the claim is true; the verdict follows from the margins' intervals alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrostat import choosing

Array = NDArray[np.float64]
HOLDS, FAILS, OPEN = "holds", "fails as stated", "open"
TOKENS = "tokens"
"""Entry of `Claim.needs` for updates by one token; other entries are names of runs."""


class TokenSteps(NamedTuple):
    """Tokens of one mini-batch, each updated alone by a small step of gradient descent; (n,) each, in nats."""

    p: Array
    """Probability of the token."""
    weight: Array
    """Factor of ∇ log π, which has the sign of the advantage."""
    change: Array
    """Measured change of the entropy at the token's place."""
    exact: Array
    """Exact flow of a tabular policy, per unit of step size."""
    own: Array
    """Part of the flow by the token's own logit, per unit of step size."""
    total: Array
    """Measured change of the entropies of all tokens of the mini-batch together."""
    first_order: Array
    """First-order estimate of `total`, with shared weights."""


class Measured(NamedTuple):
    """Measurements that claims are judged by; runs of one seed have the same problems and the same start."""

    entropy: Mapping[str, Array]
    """Mean entropy of each rollout by name of the run, (seeds, steps)."""
    reward: Mapping[str, Array]
    """Mean reward of each rollout by name of the run, (seeds, steps)."""
    tokens: Sequence[TokenSteps]
    """Updates by one token, by seed."""


Fault = Callable[[Measured], Measured]
"""Change of the measurements that a fault in what the claim tests would make."""


def errors_of_interval(seeds: int) -> float:
    """Return half the width of a 95% interval in standard errors: the 97.5% quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(seeds - 1, 0.975))


@dataclass(frozen=True, eq=False)
class Margin:
    """Difference that is positive if a part of the claim is true."""

    name: str
    values: Array
    """One value for each seed, (seeds,)."""

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the mean over seeds, by Student's t."""
        n = len(self.values)
        half = errors_of_interval(n) * float(self.values.std(ddof=1)) / sqrt(n)
        return self.mean - half, self.mean + half


class Finding(NamedTuple):
    """Result of a claim's function."""

    measured: str
    null: str
    """Measurements of the null."""
    margins: tuple[Margin, ...]

    @property
    def verdict(self) -> str:
        """HOLDS if all intervals are above 0, FAILS if one is below 0, else OPEN."""
        intervals = [margin.interval for margin in self.margins]
        if all(low > 0 for low, _ in intervals):
            return HOLDS
        return FAILS if any(high < 0 for _, high in intervals) else OPEN


@dataclass(frozen=True, kw_only=True)
class Record:
    """Claim with its result."""

    name: str
    meaning: str
    threshold: str
    null: str
    finding: Finding
    mutated: Mapping[str, str]
    """Verdict with each fault."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim and the function that checks it."""

    name: str
    needs: tuple[str, ...]
    """Names of the runs it is judged by, or TOKENS."""
    threshold: str
    """Criterion of ours, set before the measurement, and the reason for it."""
    null: str
    """Simpler explanation that the claim must beat."""
    faults: Mapping[str, Fault]
    """Faults that turn a verdict that holds; a name completes "the verdict turns if …"."""
    check: Callable[[Measured], Finding]

    def __call__(self, measured: Measured) -> Record:
        """Judge the claim, and judge it with each of its faults."""
        return Record(
            name=self.name,
            meaning=" ".join((getdoc(self.check) or "").split()),
            threshold=self.threshold,
            null=self.null,
            finding=self.check(measured),
            mutated={name: self.check(fault(measured)).verdict for name, fault in self.faults.items()},
        )


CLAIMS: dict[str, Claim] = {}


def claim(name: str, **fields: Any) -> Callable[[Callable[[Measured], Finding]], Claim]:
    """Register the decorated function as the check of a claim; fields as in Claim."""

    def add(check: Callable[[Measured], Finding]) -> Claim:
        if name in CLAIMS:
            raise ValueError(f"claim {name!r} is registered twice")
        CLAIMS[name] = Claim(name=name, check=check, **fields)
        return CLAIMS[name]

    return add


def choose(names: Collection[str] = (), pattern: str = "") -> list[Claim]:
    """Return the claims with these names or with `pattern` in their name: see `entrostat.choosing.choose`."""
    return choosing.choose(CLAIMS, names, pattern, kind="claim", listed=f"choose from {', '.join(CLAIMS)}")


def told(values: Array, digits: int = 3) -> str:
    """Return mean ± standard error over seeds as text."""
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / sqrt(len(values)):.{digits}f}"
