"""Clip-Cov and KL-Cov: Entropy Mechanism, section 4."""

from warnings import catch_warnings, simplefilter

import numpy as np

from entrostat import CompositionWarning

from .checks import Check, numbers_of, rising, settle, told
from .registry import HOLDS, Effort, Finding, claim
from .runs import entropies, side_by_side

PAPER = "Entropy Mechanism"
DROPPED = (0.002, 0.01, 0.03, 0.1)
"""Values of k of Clip-Cov: share of the tokens that are dropped."""
PENALTIES = (0.01, 0.3, 1.0, 10.0)
"""Values of β of KL-Cov."""
PENALISED = 0.02
"""Value of k of KL-Cov: the paper's .002 would penalise one of 768 tokens."""


def monotone(effort: Effort, controller: str, varied: dict[str, tuple[float, ...]]) -> Finding:
    """Check that the final entropy in `noisy` rises with the first of the hyperparameters."""
    name, values = next(iter(varied.items()))
    entropy = side_by_side(effort, varied, env="noisy", controller=controller)[:, :, -1]
    final = {f"{name} = {value:g}": h for value, h in zip(values, entropy, strict=True)}
    measured = ", ".join(f"{setting}: {told(h)}" for setting, h in final.items())
    return Finding(f"final H: {measured}", numbers_of(final), *settle(rising(*final.values())))


@claim(
    "clip-cov",
    paper=PAPER,
    source="equations 8 to 10, figure 6",
    assumption="noisy, samples reused in 8 passes",
    predicted="dropping more tokens of high covariance leaves a higher final entropy",
    expected=HOLDS,
)
def clip_cov(effort: Effort) -> Finding:
    """A few tokens carry most of the covariance, and so most of the fall of the entropy: k sets the final entropy."""
    return monotone(effort, "clip_cov", {"k": DROPPED})


@claim(
    "kl-cov",
    paper=PAPER,
    source="equations 11 and 12, figure 6",
    assumption="noisy, samples reused in 8 passes, k = .02",
    predicted="a larger penalty on tokens of high covariance leaves a higher final entropy",
    expected=HOLDS,
)
def kl_cov(effort: Effort) -> Finding:
    """Keeping the same few tokens near the policy that sampled them keeps entropy; β sets how much."""
    return monotone(effort, "kl_cov", {"beta": PENALTIES, "k": (PENALISED,) * len(PENALTIES)})


@claim(
    "kl-cov-on-policy",
    paper=PAPER,
    source="ours, on equation 12",
    assumption="strictly on-policy (on)",
    predicted="KL-Cov equals GRPO: |log π − log π_old| has no gradient if the two are equal",
    expected=HOLDS,
)
def kl_cov_on_policy(effort: Effort) -> Finding:
    """Its penalty needs a policy that has moved away from the sampling policy: without reuse it has no effect."""
    args = {"k": PENALISED, "beta": PENALTIES[-1]}
    with catch_warnings():
        simplefilter("ignore", CompositionWarning)  # the warning announces the effect measured here
        kl = entropies(effort, env="on", controller="kl_cov", controller_args=args)
    grpo = entropies(effort, env="on", controller="grpo")
    difference = float(np.abs(kl - grpo).max())
    return Finding(
        f"largest difference of the entropies of two runs: {difference:.0e}",
        {"difference": difference},
        *settle(Check(difference < 1e-12)),
    )
