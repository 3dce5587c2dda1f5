"""The outcome of looking at a whole mini-batch: plain per-token numbers, applied later to any slice of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
Index = Tensor | slice | None


def importance_ratio(logp: Tensor, old_logp: Tensor) -> Tensor:
    """π/π_old of each token, with the log-ratio kept within ±20."""
    return (logp - old_logp).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice:
    """What a surrogate sees of some of the tokens, each (..., n) or broadcastable to it."""

    advantage: Tensor
    """Weight times advantage."""
    old_logp: Tensor | None
    clip_low: Tensor
    clip_high: Tensor
    dual_clip: Tensor


Surrogate = Callable[[Tensor, Slice], Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """How each of the N tokens enters the loss. Tensors are (..., N) or broadcastable to it; none has a gradient.

    loss = Σ_t scale_t · [surrogate(lp_t, weight_t·A_t) − entropy_coef_t·H_t + kl_coef_t·|lp_t − old_t|]

    `scale` holds the aggregation over the whole mini-batch, all ranks, so losses of slices, and of ranks, add up.
    """

    surrogate: Surrogate
    advantage: Tensor
    old_logp: Tensor | None
    weight: Tensor
    """Multiplies the advantage; 0 on dropped tokens."""
    keep: Tensor
    """False where a controller dropped the token; matters to `denominator="kept"`."""
    clip_low: Tensor
    """Lower bound of the importance ratio for A < 0."""
    clip_high: Tensor
    """Upper bound of the importance ratio for A > 0."""
    dual_clip: Tensor
    """Upper bound of the importance ratio for A < 0."""
    scale: Tensor
    entropy_coef: Tensor | None = None
    kl_coef: Tensor | None = None
    info: dict[str, Tensor] = field(default_factory=dict)
    """What the controllers would like to be logged, (...,) each."""

    # Built by controllers -----------------------------------------------------------------------------------------

    def reweight(self, factor: Tensor, **info: Tensor) -> "Plan":
        """Multiply the weights by `factor` (..., N)."""
        return replace(self, weight=self.weight * factor, info={**self.info, **info})

    def drop(self, mask: Tensor, **info: Tensor) -> "Plan":
        """Give the tokens of `mask` no policy gradient."""
        weight = self.weight.masked_fill(mask, 0.0)
        return replace(self, weight=weight, keep=self.keep & ~mask, info={**self.info, **info})

    def add_entropy_bonus(self, coef: Tensor, **info: Tensor) -> "Plan":
        total = coef if self.entropy_coef is None else self.entropy_coef + coef
        return replace(self, entropy_coef=total, info={**self.info, **info})

    def add_kl(self, coef: Tensor, **info: Tensor) -> "Plan":
        total = coef if self.kl_coef is None else self.kl_coef + coef
        return replace(self, kl_coef=total, info={**self.info, **info})

    def clipped(self, logp: Tensor) -> Tensor:
        """Mask of the tokens whose ratio lies beyond its bound, so that they have no policy gradient."""
        if self.old_logp is None:
            return torch.zeros_like(self.advantage, dtype=torch.bool)
        ratio = importance_ratio(logp, self.old_logp)
        above = torch.where(self.advantage > 0, self.clip_high, self.dual_clip)
        return (ratio > above) | ((self.advantage < 0) & (ratio < self.clip_low))

    def active(self) -> Tensor:
        """Mask (..., N) of the tokens that can have a gradient at all."""
        mask = self.weight * self.advantage != 0
        for coef in (self.entropy_coef, self.kl_coef):
            mask = mask if coef is None else mask | (coef != 0)
        return mask

    # Applied by trainers ------------------------------------------------------------------------------------------

    def token_loss(self, logp: Tensor, entropy: Tensor | None = None, index: Index = None) -> Tensor:
        """Each token's share of the loss, (..., n), for the n tokens that `index` selects (all when None).

        `logp` and `entropy` are those of the selected tokens, (..., n). ValueError when the shape is another, or when
        the plan has an entropy bonus and no entropy is given.
        """

        def at(x: Any) -> Any:
            return x if x is None or index is None or x.shape[-1] == 1 != self.size else x[..., index]

        advantage = at(self.weight) * at(self.advantage)
        if logp.shape[-1:] != advantage.shape[-1:]:
            raise ValueError(f"logp has {logp.shape[-1]} tokens where the plan's slice has {advantage.shape[-1]}")
        old_logp = at(self.old_logp)
        loss = self.surrogate(
            logp,
            Slice(
                advantage=advantage,
                old_logp=old_logp,
                clip_low=at(self.clip_low),
                clip_high=at(self.clip_high),
                dual_clip=at(self.dual_clip),
            ),
        )
        if self.entropy_coef is not None:
            if entropy is None:
                raise ValueError("this plan has an entropy bonus: pass entropy to loss()")
            loss = loss - at(self.entropy_coef) * entropy
        if self.kl_coef is not None:
            loss = loss + at(self.kl_coef) * (logp - old_logp).abs()
        return at(self.scale) * loss

    def loss(self, logp: Tensor, entropy: Tensor | None = None, index: Index = None) -> Tensor:
        """Loss of a slice, shape (...,): one number for each leading run. Losses of disjoint slices add up."""
        return self.token_loss(logp, entropy, index).sum(-1)

    def coefficients(
        self, logp: Tensor, entropy: Tensor | None = None, index: Index = None
    ) -> tuple[Tensor, Tensor | None]:
        """(∂loss/∂logp, ∂loss/∂H) of each token of the slice, (..., n); the second is None without an entropy bonus.

        The loss is elementwise, so these say all there is to know of its gradient before the logits are touched.
        """
        with torch.enable_grad():
            leaves = [logp.detach().requires_grad_()]
            if self.entropy_coef is not None and entropy is not None:
                leaves.append(entropy.detach().requires_grad_())
            total = self.token_loss(leaves[0], leaves[-1] if len(leaves) > 1 else entropy, index).sum()
            grads = torch.autograd.grad(total, leaves)
        return grads[0], grads[1] if len(grads) > 1 else None

    @property
    def size(self) -> int:
        """N, the tokens of the mini-batch on this rank."""
        return self.advantage.shape[-1]
