"""First-order estimates of the entropy change of a softmax policy under one step, per unit learning rate (nats).

Two kinds. Over a whole distribution (last dimension V): `lemma1`, `policy_gradient`, `natural_policy_gradient`.
Over sampled tokens (any shape, one number per token): `exact`, `discriminator`, `own_logit`, `steer`, `opefo`,
`covariance`; `bonus`, and `planned` for all terms of a plan.
`weight` is the factor of ∇ log π(o_t) in the ascent direction: A·r for a token with importance ratio r.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .plan import Plan
from .tokens import Tokens


def exact(logp: Tensor, entropy: Tensor, s2: Tensor, s2l: Tensor, weight: Tensor) -> Tensor:
    """Return the entropy change of a token's own distribution under its softmax-gradient step Δz = η·w·(e_o − p).

    ΔH = −w·[p(lp + H) − (S2L + H·S2)], the complete first-order term: its mean over o ~ p is zero.
    `logp` belongs to the sampled token; `entropy`, `s2` and `s2l` belong to its distribution.
    """
    return -weight * (discriminator(logp, entropy) - (s2l + entropy * s2))


def discriminator(logp: Tensor, entropy: Tensor) -> Tensor:
    """Return S = p(lp + H), the fall of the entropy by a unit rise of the token's logit; S2L + H·S2 is its mean.

    Wang et al. 2026 (arXiv 2602.03392).
    """
    return logp.exp() * (logp.clamp(min=torch.finfo(logp.dtype).min) + entropy)  # 0 where p is 0


def bonus(entropy: Tensor, s2: Tensor, s2l: Tensor, s2ll: Tensor) -> Tensor:
    """Return the change by a unit of entropy bonus, the step Δz = η·∇H: ‖∇H‖² = S2LL + 2H·S2L + H²·S2."""
    return (entropy * s2).add_(s2l, alpha=2).mul_(entropy).add_(s2ll)


class Planned(NamedTuple):
    """Effect of a plan on the entropy of each token's own distribution, (..., N) each."""

    dlogp: Tensor
    """∂loss/∂lp."""
    policy: Tensor
    """Change by the policy gradient: `exact` with the weight −∂loss/∂lp."""
    bonus: Tensor | None
    """Change by the entropy bonus, −∂loss/∂H times the change by a unit bonus; None without a bonus."""

    @property
    def total(self) -> Tensor:
        return self.policy if self.bonus is None else self.policy + self.bonus


def planned(tokens: Tokens, plan: Plan, logp: Tensor | None = None) -> Planned:
    """Return the change under all terms of a plan except a truncated-entropy bonus.

    logp: log π (..., N) at which the update is made; None for `tokens.logp`. Raises ValueError if moments are missing.
    """
    shape = tokens.advantage.shape
    logp = (tokens.get("logp") if logp is None else logp).expand(shape)
    entropy, s2, s2l = tokens.get("entropy").expand(shape), tokens.get("s2"), tokens.get("s2l")
    dlogp, dentropy = plan.coefficients(logp, entropy)
    policy = exact(logp, entropy, s2, s2l, -dlogp)
    if dentropy is None:
        return Planned(dlogp, policy, None)
    return Planned(dlogp, policy, -dentropy * bonus(entropy, s2, s2l, tokens.get("s2ll")))


def own_logit(logp: Tensor, entropy: Tensor, weight: Tensor) -> Tensor:
    """Return the part of `exact` that comes from the sampled token's own logit: ΔH = −w·(1−p)·p(lp + H)."""
    return -weight * -torch.expm1(logp) * logp.exp() * (logp + entropy)


def steer(logp: Tensor, entropy: Tensor, weight: Tensor) -> Tensor:
    """Return ΔH = −w·(1−p)(lp + H) of STEER theorem 1, with p/π_old folded into `weight`; Ω is its absolute value.

    Lacks the collision term of `exact`, so its sign is wrong for tokens with p between e^(−H) and the true boundary.
    """
    return weight * torch.expm1(logp) * (logp + entropy)


def opefo(logp: Tensor, entropy: Tensor, advantage: Tensor) -> Tensor:
    """Return ΔH = −A·(1−p)²(lp + H) of OPEFO equation 6, strictly on-policy. Has the same sign errors as `steer`."""
    return -advantage * torch.expm1(logp) ** 2 * (logp + entropy)


def covariance(logp: Tensor, advantage: Tensor, mean_logp: Tensor, mean_advantage: Tensor) -> Tensor:
    """Return (lp − mean lp)(A − mean A) of Entropy Mechanism equation 8, large and positive where entropy is lost.

    The means are over the mini-batch and broadcast to the tokens. This is a score, not a ΔH in nats.
    """
    return (logp - mean_logp) * (advantage - mean_advantage)


def lemma1(logp: Tensor, delta_logits: Tensor) -> Tensor:
    """Return ΔH ≈ −Cov_p(log p, Δz) of Entropy Mechanism lemma 1; logp, Δz over all actions (..., V), result (...,)."""
    p = logp.exp()
    logp = torch.where(p > 0, logp, 0.0)
    mean_logp = (p * logp).sum(-1, keepdim=True)
    mean_delta = (p * delta_logits).sum(-1, keepdim=True)
    return -(p * (logp - mean_logp) * (delta_logits - mean_delta)).sum(-1)


def policy_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return ΔH for Δz = η·p·A, Entropy Mechanism theorem 1; (..., V) to (...,). Correct only for A centred under p."""
    return lemma1(logp, logp.exp() * advantage)


def natural_policy_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return ΔH for Δz = η·A, Entropy Mechanism theorem 2, for any advantage; (..., V) to (...,)."""
    return lemma1(logp, advantage)
