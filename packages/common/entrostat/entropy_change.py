"""First-order estimates of the entropy change of a softmax policy under one step, per unit learning rate (nats).

Two kinds. Over a whole distribution (last dimension V): `lemma1`, `policy_gradient`, `natural_policy_gradient`.
Over sampled tokens (any shape, one number a token): `exact`, `own_logit`, `steer`, `opefo`, `covariance`.
`weight` is what multiplies ∇ log π(o_t) in the ascent direction: A·r for a token with importance ratio r.
"""

import torch
from torch import Tensor


def exact(logp: Tensor, entropy: Tensor, s2: Tensor, s2l: Tensor, weight: Tensor) -> Tensor:
    """Change of a token's own distribution when its softmax-gradient step Δz = η·w·(e_o − p) is taken.

    ΔH = −w·[p(lp + H) − (S2L + H·S2)], the complete first-order term: its mean over o ~ p is zero.
    `logp` is that of the sampled token, `entropy`, `s2` and `s2l` those of its distribution.
    """
    p_times = logp.exp() * (logp.clamp(min=torch.finfo(logp.dtype).min) + entropy)  # 0 where p is
    return -weight * (p_times - (s2l + entropy * s2))


def own_logit(logp: Tensor, entropy: Tensor, weight: Tensor) -> Tensor:
    """The part of `exact` that comes from the sampled token's own logit: ΔH = −w·(1−p)·p(lp + H)."""
    return -weight * -torch.expm1(logp) * logp.exp() * (logp + entropy)


def steer(logp: Tensor, entropy: Tensor, weight: Tensor) -> Tensor:
    """STEER theorem 1 with p/π_old folded into `weight`: ΔH = −w·(1−p)(lp + H); Ω is its absolute value.

    Lacks the collision term of `exact`, so its sign is wrong for tokens with p between e^(−H) and the true boundary.
    """
    return weight * torch.expm1(logp) * (logp + entropy)


def opefo(logp: Tensor, entropy: Tensor, advantage: Tensor) -> Tensor:
    """OPEFO equation 6: ΔH = −A·(1−p)²(lp + H), strictly on-policy. Shares the sign errors of `steer`."""
    return -advantage * torch.expm1(logp) ** 2 * (logp + entropy)


def covariance(logp: Tensor, advantage: Tensor, mean_logp: Tensor, mean_advantage: Tensor) -> Tensor:
    """Entropy Mechanism equation 8: (lp − mean lp)(A − mean A), large and positive where entropy is lost.

    The means are of the mini-batch, broadcastable to the tokens. This is a score, not a ΔH in nats.
    """
    return (logp - mean_logp) * (advantage - mean_advantage)


def lemma1(logp: Tensor, delta_logits: Tensor) -> Tensor:
    """Entropy Mechanism lemma 1: ΔH ≈ −Cov_p(log p, Δz); logp and Δz over all actions (..., V), result (...,)."""
    p = logp.exp()
    logp = torch.where(p > 0, logp, 0.0)
    mean_logp = (p * logp).sum(-1, keepdim=True)
    mean_delta = (p * delta_logits).sum(-1, keepdim=True)
    return -(p * (logp - mean_logp) * (delta_logits - mean_delta)).sum(-1)


def policy_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Entropy Mechanism theorem 1: Δz = η·p·A. True only for advantages centred under p; (..., V) to (...,)."""
    return lemma1(logp, logp.exp() * advantage)


def natural_policy_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Entropy Mechanism theorem 2: Δz = η·A, for any advantage; (..., V) to (...,)."""
    return lemma1(logp, advantage)
