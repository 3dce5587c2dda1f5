"""Claims that can be asked in a language model, each with its threshold, its null and its faults.

    @claim("clip-free", needs=("grpo", "clip_free"), threshold=..., null=..., mutations=faults({"...": change}))
    def clip_free(measured): ... return judged(text, null, margins)

The names are those of toybandit's claims, whose records have the papers' words. A margin is a difference, one value for
each seed, that is positive if the claim is true; the verdict follows from the margins' intervals alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrostat.about.claims import FAILS, HOLDS, OPEN, Check, Claim, Claims, Finding

Array = NDArray[np.float64]
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


Change = Callable[[Measured], Measured]
"""Change of the measurements that a fault in what the claim tests would make."""


class Fault(NamedTuple):
    """Fault that turns a verdict that holds; its name completes "the verdict turns if …"."""

    name: str
    change: Change

    def finding(self, check: Check, subject: Measured) -> Finding:
        """Return what the check finds in the measurements with the fault."""
        return check(self.change(subject))


def faults(changes: Mapping[str, Change]) -> tuple[Fault, ...]:
    """Return faults from their changes by name."""
    return tuple(Fault(name, change) for name, change in changes.items())


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


def judged(measured: str, null: str, margins: tuple[Margin, ...]) -> Finding:
    """Return the finding: HOLDS if all intervals are above 0, FAILS if one is below 0, else OPEN."""
    intervals = [margin.interval for margin in margins]
    verdict = HOLDS if all(low > 0 for low, _ in intervals) else OPEN
    if any(high < 0 for _, high in intervals):
        verdict = FAILS
    return Finding(measured, {margin.name: margin.mean for margin in margins}, verdict, null=null, margins=margins)


CLAIMS = Claims(Claim, group="llmtrain.claims")
claim = CLAIMS.claim


def told(values: Array, digits: int = 3) -> str:
    """Return mean ± standard error over seeds as text."""
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / sqrt(len(values)):.{digits}f}"
