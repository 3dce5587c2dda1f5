"""Entropy change by one sampled token: the exact flow, and the formulas of STEER and OPEFO."""

from collections.abc import Callable

import torch
from torch import Tensor

from entrostat import entropy_change, policy_stats

from .ensembles import entropy_change as measured_change
from .ensembles import random_logits, random_vector
from .registry import FAILS, HOLDS, Effort, Finding, claim, judge

STEP = 1e-3
SPREADS = (1.0, 2.0, 3.0)
"""Standard deviations of the logits on which signs are compared."""
ARMS = 16


def every_token(logits: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Exact flow and measured ΔH/η of each arm as the sampled token, (instances, K); weight (instances, K)."""
    stats = policy_stats(logits)
    flow = entropy_change.exact(
        stats.logp, stats.entropy.unsqueeze(-1), stats.s2.unsqueeze(-1), stats.s2l.unsqueeze(-1), weight
    )
    arms = logits.shape[-1]
    step = weight.unsqueeze(-1) * (torch.eye(arms, dtype=logits.dtype) - stats.logp.exp().unsqueeze(-2))
    before = logits.unsqueeze(-2).expand_as(step)
    return flow, measured_change(before, STEP * step) / STEP


@claim(
    "token-flow",
    source="ours; completes STEER theorem 1 and OPEFO equation 6",
    assumption="one sampled token of weight w = A·r, full softmax gradient",
    predicted="ΔH = −η·w·[p(lp + H) − (S2L + H·S2)]: relative MSE < 1e-4 at η = 1e-3; mean over o ~ p is 0",
    expected=HOLDS,
)
def token_flow(effort: Effort) -> Finding:
    logits = random_logits(effort.instances, ARMS, 2.0, "token flow")
    weight = 2 * random_vector(effort.instances, ARMS, "token weight")
    flow, truth = every_token(logits, weight)
    relative = float(((flow - truth) ** 2).sum() / (truth**2).sum())
    correlation = float(torch.corrcoef(torch.stack([flow.flatten(), truth.flatten()]))[0, 1])
    same_weight, _ = every_token(logits, torch.ones_like(weight))
    mean = float((policy_stats(logits).logp.exp() * same_weight).sum(-1).abs().max())
    return Finding(
        f"relative MSE {relative:.1e}, Pearson {correlation:.6f}, mean over o ~ p {mean:.0e}",
        {"relative MSE": relative, "Pearson": correlation, "mean": mean},
        judge(relative < 1e-4 and mean < 1e-12),
    )


def wrong_signs(estimate: Callable[[Tensor, Tensor, Tensor], Tensor], effort: Effort, std: float) -> float:
    """Share of tokens sampled from p for which the estimate has another sign than the measured entropy change."""
    logits = random_logits(effort.instances, ARMS, std, f"signs {std}")
    weight = torch.ones_like(logits)
    _, truth = every_token(logits, weight)
    stats = policy_stats(logits)
    wrong = estimate(stats.logp, stats.entropy.unsqueeze(-1), weight) * truth < 0
    return float((stats.logp.exp() * wrong).sum(-1).mean())


def sign_finding(estimate: Callable[[Tensor, Tensor, Tensor], Tensor], effort: Effort) -> Finding:
    shares = {f"wrong sign, logit std {std:g}": wrong_signs(estimate, effort, std) for std in SPREADS}
    low, high = min(shares.values()), max(shares.values())
    return Finding(f"{low:.1%} to {high:.1%} of sampled tokens have the wrong sign", shares, judge(high < 1e-3))


@claim(
    "steer-sign",
    source="STEER, theorem 1",
    assumption="one sampled token, full softmax gradient",
    predicted="sign of ΔH is that of −A·(lp + H): boundary at p = e^(−H)",
    expected=FAILS,
)
def steer_sign(effort: Effort) -> Finding:
    return sign_finding(entropy_change.steer, effort)


@claim(
    "opefo-sign",
    source="OPEFO, equation 6",
    assumption="one sampled token, full softmax gradient",
    predicted="ΔH = −A·(1−p)²·(lp + H), so its sign is that of −A·(lp + H)",
    expected=FAILS,
)
def opefo_sign(effort: Effort) -> Finding:
    return sign_finding(entropy_change.opefo, effort)
