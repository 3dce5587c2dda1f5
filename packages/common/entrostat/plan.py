"""Plan for a whole mini-batch: plain per-token numbers, applied later to any slice of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor

from .numbers.kl import LOG_RATIO_LIMIT, Estimator, kl_estimate, kl_slope, log_ratio
from .numbers.lazy import lazy

Index = Tensor | slice | None
ROUNDING = 16
"""Units in the last place by which another order of summation may change a log-probability or a mean."""


def rounding(x: Tensor) -> float:
    """Return the relative change of numbers like x that another order of summation may cause."""
    widest = torch.finfo(torch.float32).eps  # narrower types are for storage, not for computing
    return ROUNDING * min(torch.finfo(x.dtype).eps, widest)


def importance_ratio(logp: Tensor, old_logp: Tensor) -> Tensor:
    """Return π/π_old of each token, with the log-ratio kept within ±20."""
    return log_ratio(logp, old_logp).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice:
    """Inputs of a surrogate for a micro-batch under a plan, each (..., n) or broadcastable to it."""

    weight: Tensor
    unweighted: Tensor
    """Advantage A before the weight."""
    old_logp: Tensor | None
    clip_low: Tensor
    clip_high: Tensor
    dual_clip: Tensor | None
    frozen: Tensor
    """log π inside the stop-gradients of a surrogate."""
    seq_id: Tensor | None = None
    length: Tensor | None = None
    """Number of tokens in the token's sequence, int64."""

    @lazy
    def advantage(self) -> Tensor:
        """Weight times advantage."""
        return self.weight * self.unweighted

    @lazy
    def direction(self) -> Tensor:
        """Advantage, negated where the weight is negative; unlike `advantage` not zero where the weight is zero."""
        turned = (self.weight < 0).to(self.unweighted.dtype)
        return self.unweighted * (1 - 2 * turned)

    def differentiable(self) -> "Slice":
        """Return the slice with copies of tensors that were made in inference mode, which autograd refuses."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        made = {name: t.clone() for name, t in held.items() if t is not None and t.is_inference()}
        return replace(self, **made) if made else self


Surrogate = Callable[[Tensor, Slice], Tensor]
"""Function of log π (..., n) and the slice that returns the loss of each token (..., n)."""
Slope = Callable[[Tensor, Slice], Tensor]
"""Function of log π (..., n) and the slice that returns the derivative of each token's loss in its log π (..., n)."""
Stopped = Callable[[Tensor, Slice], Tensor]
"""Function of log π (..., n) and the slice that returns a mask (..., n) of tokens whose gradient clipping removes."""


def beyond_bounds(logp: Tensor, s: Slice) -> Tensor:
    """Return a mask of the tokens whose own ratio is beyond its bound."""
    if s.old_logp is None:
        return torch.zeros_like(s.unweighted, dtype=torch.bool)
    ratio, up, down = importance_ratio(logp, s.old_logp), s.direction > 0, s.direction < 0
    beyond = (up & (ratio > s.clip_high)) | (down & (ratio < s.clip_low))
    return beyond if s.dual_clip is None else beyond | (down & (ratio > s.dual_clip))


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """Terms of each of the N tokens in the loss. Tensors are (..., N) or broadcastable to it; none has a gradient.

    loss = Σ_t scale_t · [surrogate(lp_t, weight_t·A_t) − entropy_coef_t·H_t + kl_coef_t·|lp_t − old_t|
                          + ref_coef_t·kl(lp_t, ref_t) − truncated_coef_t·H_t of the truncated policy]

    `scale` holds the aggregation over the whole mini-batch and all ranks, so losses of slices and of ranks add up.
    """

    surrogate: Surrogate
    slope: Slope
    """Derivative of `surrogate`."""
    advantage: Tensor
    old_logp: Tensor | None
    weight: Tensor
    """Factor of the advantage; 0 on dropped tokens."""
    keep: Tensor
    """False for tokens that a controller dropped; used by `denominator="kept"`."""
    clip_low: Tensor
    """Lower bound of the importance ratio for A < 0."""
    clip_high: Tensor
    """Upper bound of the importance ratio for A > 0."""
    dual_clip: Tensor | None
    """Upper bound of the importance ratio for A < 0; None disables it."""
    scale: Tensor
    entropy_coef: Tensor | None = None
    kl_coef: Tensor | None = None
    ref_coef: Tensor | None = None
    ref_logp: Tensor | None = None
    ref_estimator: Estimator = "k3"
    """KL estimator: k1, k2 or k3, see `entrostat.numbers.kl`."""
    truncated_coef: Tensor | None = None
    """Coefficient of the entropy of the policy restricted to the controller's `support`."""
    stopped: Stopped = beyond_bounds
    seq_id: Tensor | None = None
    length: Tensor | None = None
    """Number of tokens in each token's sequence, for sequence-level surrogates; None otherwise, like seq_id."""
    info: dict[str, Tensor] = field(default_factory=dict)
    """Metrics that the controllers want logged, (...,) each."""

    # Built by controllers -----------------------------------------------------------------------------------------

    def changed(self, **changes: Any) -> "Plan":
        """Return a copy with other values: `dataclasses.replace` for twenty fields would take five times as long."""
        plan = object.__new__(Plan)
        plan.__dict__.update(self.__dict__, **changes)
        return plan

    def reweight(self, factor: Tensor, **info: Tensor) -> "Plan":
        """Multiply the weights by `factor` (..., N)."""
        return self.changed(weight=self.weight * factor, info={**self.info, **info})

    def drop(self, mask: Tensor, **info: Tensor) -> "Plan":
        """Remove the policy gradient of the tokens in `mask`."""
        kept = ~mask
        return self.changed(weight=self.weight * kept, keep=self.keep & kept, info={**self.info, **info})

    def shape(self, advantage: Tensor, **info: Tensor) -> "Plan":
        """Replace the advantage, (..., N). Weights stay; later parts of a chain get the new advantage."""
        return self.changed(advantage=advantage, info={**self.info, **info})

    def add_entropy_bonus(self, coef: Tensor, **info: Tensor) -> "Plan":
        total = coef if self.entropy_coef is None else self.entropy_coef + coef
        return self.changed(entropy_coef=total, info={**self.info, **info})

    def add_kl(self, coef: Tensor, **info: Tensor) -> "Plan":
        total = coef if self.kl_coef is None else self.kl_coef + coef
        return self.changed(kl_coef=total, info={**self.info, **info})

    def add_ref_kl(self, coef: Tensor, ref_logp: Tensor, estimator: Estimator) -> "Plan":
        """Penalise the divergence from a reference policy. Raises ValueError if the plan already does."""
        if self.ref_coef is not None:
            raise ValueError("the plan already has a penalty on the divergence from a reference policy")
        return self.changed(ref_coef=coef, ref_logp=ref_logp, ref_estimator=estimator)

    def add_truncated_bonus(self, coef: Tensor, **info: Tensor) -> "Plan":
        total = coef if self.truncated_coef is None else self.truncated_coef + coef
        return self.changed(truncated_coef=total, info={**self.info, **info})

    def clipped(self, logp: Tensor, index: Index = None) -> Tensor:
        """Return a mask (..., n) of the slice's tokens whose policy gradient clipping removes, at their log π."""
        return self.stopped(logp, self._slice(index, logp))

    def active(self) -> Tensor:
        """Return a mask (..., N) of the tokens that can have a gradient."""
        mask = self.weight * self.advantage != 0
        for coef in (self.entropy_coef, self.kl_coef, self.ref_coef, self.truncated_coef):
            mask = mask if coef is None else mask | (coef != 0)
        return mask

    # Applied by trainers ------------------------------------------------------------------------------------------

    def token_loss(
        self,
        logp: Tensor,
        entropy: Tensor | None = None,
        index: Index = None,
        *,
        truncated_entropy: Tensor | None = None,
        frozen: Tensor | None = None,
    ) -> Tensor:
        """Return each token's share of the loss, (..., n), for the n tokens that `index` selects (all if None).

        logp, entropy: values of the selected tokens, (..., n). truncated_entropy: the same, if a part of the chain has
        a `support`. frozen: log π inside stop-gradients, logp itself by default.
        Raises ValueError if a shape does not match, if an entropy that the plan has a bonus for is missing or has no
        gradient while logp has one, and if a sequence-level surrogate gets only part of a sequence.
        """
        loss = self._loss(logp, entropy, index, logp.detach() if frozen is None else frozen)
        if self.truncated_coef is not None:
            entropy = _with_bonus("truncated_entropy", truncated_entropy, logp)
            loss = loss - self._at(self.truncated_coef, index) * entropy
        return self._at(self.scale, index) * loss

    def loss(
        self,
        logp: Tensor,
        entropy: Tensor | None = None,
        index: Index = None,
        *,
        truncated_entropy: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a slice, (...,): one number per leading run. Losses of disjoint slices add up."""
        return self.token_loss(logp, entropy, index, truncated_entropy=truncated_entropy).sum(-1)

    def coefficients(
        self, logp: Tensor, entropy: Tensor | None = None, index: Index = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return (∂loss/∂logp, ∂loss/∂H) of each token of the slice, (..., n); the second is None without a bonus.

        The loss is elementwise, so these, and `truncated_coefficient` if a chain has a support, determine its gradient
        before the logits are touched.
        """
        with torch.no_grad():
            s = self._checked_slice(index, logp)
            scale = self._at(self.scale, index)
            dlogp = self.slope(logp, s)
            if self.kl_coef is not None:
                dlogp = dlogp + self._at(self.kl_coef, index) * _gap(logp, s).sign()
            if self.ref_coef is not None:
                slope = kl_slope(logp, self._at(self.ref_logp, index), self.ref_estimator)
                dlogp = dlogp + self._at(self.ref_coef, index) * slope
            if self.entropy_coef is None:
                return dlogp * scale, None
            dentropy = -scale * self._at(self.entropy_coef, index)
            return dlogp * scale, dentropy.expand(_with_bonus("entropy", entropy, logp).shape)

    def truncated_coefficient(self, index: Index = None) -> Tensor | None:
        """Return ∂loss/∂(truncated entropy) of each token of the slice, (..., n); None if the plan has no bonus."""
        if self.truncated_coef is None:
            return None
        size = self._at(self.advantage, index).shape
        return (-self._at(self.scale, index) * self._at(self.truncated_coef, index)).expand(size)

    # Internal -----------------------------------------------------------------------------------------------------

    def _at(self, x: Any, index: Index) -> Any:
        """Return x at the tokens of `index`; a value shared by all tokens is returned unchanged."""
        return x if x is None or index is None or x.shape[-1] == 1 != self.size else x[..., index]

    def _slice(self, index: Index, frozen: Tensor) -> Slice:
        names = ("weight", "old_logp", "clip_low", "clip_high", "dual_clip", "seq_id", "length")
        parts = {name: self._at(getattr(self, name), index) for name in names}
        return Slice(unweighted=self._at(self.advantage, index), frozen=frozen, **parts)

    def _checked_slice(self, index: Index, logp: Tensor) -> Slice:
        s = self._slice(index, logp)
        if logp.shape[-1:] != s.unweighted.shape[-1:]:
            raise ValueError(f"logp has {logp.shape[-1]} tokens, but the plan's slice has {s.unweighted.shape[-1]}")
        return s

    def _loss(self, logp: Tensor, entropy: Tensor | None, index: Index, frozen: Tensor) -> Tensor:
        """Return the loss of each token before its scale, without the truncated entropy."""
        s = self._checked_slice(index, frozen)
        loss = self.surrogate(logp, s)
        if self.entropy_coef is not None:
            loss = loss - self._at(self.entropy_coef, index) * _with_bonus("entropy", entropy, logp)
        if self.kl_coef is not None:
            coef = self._at(self.kl_coef, index)
            loss = loss + torch.where(coef != 0, coef * _gap(logp, s).abs(), 0.0)  # 0·inf is NaN
        if self.ref_coef is not None:
            kl = kl_estimate(logp, self._at(self.ref_logp, index), self.ref_estimator)
            coef = self._at(self.ref_coef, index)
            loss = loss + torch.where(coef != 0, coef * kl, 0.0)
        return loss

    @property
    def elementwise(self) -> bool:
        """True if a token's loss depends only on that token, so that any slice works."""
        return self.length is None

    @property
    def size(self) -> int:
        """Number N of tokens of the mini-batch on this rank."""
        return self.advantage.shape[-1]


def _with_bonus(name: str, entropy: Tensor | None, logp: Tensor) -> Tensor:
    """Return an entropy that has a bonus. Raises ValueError unless it is one for each token that the bonus can move."""
    if entropy is None:
        raise ValueError(f"this plan has a bonus on the {name.replace('_', ' ')}: pass {name} to loss()")
    if entropy.shape[-1:] != logp.shape[-1:]:
        raise ValueError(f"{name} has shape {tuple(entropy.shape)}; expected one for each token, {tuple(logp.shape)}")
    if logp.requires_grad and not entropy.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"{name} has no gradient, and this plan has a bonus on it: compute it from the logits as logp, without "
            "detach() or no_grad()"
        )
    return entropy


def _gap(logp: Tensor, s: Slice) -> Tensor:
    """Return log(π/π_old), or 0 within rounding, where the sign would depend on how the mini-batch is split."""
    assert s.old_logp is not None
    gap = log_ratio(logp, s.old_logp)
    return torch.where(gap.abs() > rounding(gap) * (1 + s.old_logp.abs()), gap, 0.0)
