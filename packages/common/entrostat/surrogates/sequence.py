"""Surrogates with one ratio for a whole sequence. Their slices must hold whole sequences.

All have a token gradient: a function of the sequence's ratio multiplies ∇ log π of each token, with the token's own
advantage and weight, so that controllers act on tokens. If all tokens of a sequence have the same advantage, the
gradients of GSPO and GMPO are those of their sequence objectives.
"""

from dataclasses import dataclass, replace
from math import inf, log
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from ..numbers.kl import LOG_RATIO_LIMIT, log_ratio
from ..numbers.per_run import column
from ..numbers.segments import Segments
from ..plan import Plan, Slice
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive
from ..tokens import Tokens
from .aggregation import Aggregation
from .base import SurrogateController, bounded

LOG_SMALLEST = log(1e-8)
"""Lower limit of log w in VESPO."""


@dataclass(kw_only=True)
class SequenceSurrogate(SurrogateController):
    """Surrogate whose loss depends on whole sequences; averages within sequences, then over them."""

    aggregation: Aggregation = "seq-mean-token-mean"
    across_sequences: ClassVar[bool] = True

    def start(self, tokens: Tokens) -> Plan:
        seq_id = tokens.get("seq_id")
        segments = Segments(seq_id)
        return replace(super().start(tokens), seq_id=seq_id, length=segments.spread(segments.size))

    def sequences(self, s: Slice) -> Segments:
        """Return the sequences of a slice. Raises ValueError if one is not whole."""
        assert s.seq_id is not None
        assert s.length is not None
        segments = Segments(s.seq_id)
        if not torch.equal(segments.spread(segments.size), s.length):
            raise ValueError(f"surrogate {self.name!r} needs whole sequences: a slice must not split one")
        return segments

    def sequence_mean(self, x: Tensor, s: Slice) -> Tensor:
        """Return the mean of x over each token's sequence, (..., n)."""
        segments = self.sequences(s)
        return segments.spread(segments.mean(x.double())).to(x.dtype)


@register("gspo")
@dataclass(kw_only=True)
class GSPO(SequenceSurrogate):
    """PPO on the sequence's ratio s = exp(mean_t(lp − old)), with the gradient of each token's own log π.

    The loss of a token is −A·clip(s·π/sg π); a sequence is clipped as a whole. Needs whole sequences in every slice.
    """

    eps_low: NotNegative = 3e-4
    """Width of the sequence's clip range below 1, used if A < 0."""
    eps_high: NotNegative = 4e-4
    """Width of the sequence's clip range above 1, used if A > 0."""
    dual_clip: Annotated[Number, "(1, inf]"] = inf
    """Upper bound of the sequence's ratio if A < 0; inf disables it."""
    source: ClassVar = "Zheng et al. 2025 (GSPO), equations 5, 7 and 13"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, self.dual_clip

    def _log_ratio(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        return self.sequence_mean(log_ratio(logp, s.old_logp), s)

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        of_sequence = self._log_ratio(s.frozen, s) + log_ratio(logp, s.frozen)
        return -s.advantage * bounded(of_sequence.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp(), s)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        ratio, down = self._log_ratio(logp, s).exp(), s.direction < 0
        beyond = ((s.direction > 0) & (ratio > s.clip_high)) | (down & (ratio < s.clip_low))
        return beyond if s.dual_clip is None else beyond | (down & (ratio > s.dual_clip))


@register("luspo")
@dataclass(kw_only=True)
class LUSPO(GSPO):
    """`gspo` whose sequences count by their length: the loss of a sequence is −|y|·A·clip(s), averaged over sequences.

    The mean over tokens in GSPO divides the gradient of each token by |y|, so that long responses learn less; here
    −A·clip(s·π/sg π) of each token is added up. Equal to `gspo` with aggregation seq-mean-token-sum and other bounds.
    """

    aggregation: Aggregation = "seq-mean-token-sum"
    eps_low: NotNegative = 2e-3
    """Width of the sequence's clip range below 1, used if A < 0."""
    eps_high: NotNegative = 2.5e-3
    """Width of the sequence's clip range above 1, used if A > 0."""
    source: ClassVar = (
        "Liu et al. 2026 (LUSPO, arXiv 2602.05261), section 5.1 for the bounds; TRL, GRPOTrainer, loss_type luspo"
    )


@register("gmpo")
@dataclass(kw_only=True)
class GMPO(SequenceSurrogate):
    """−A·exp(mean_t c_t): the geometric mean of token ratios, c = lp − old clipped at +eps (A > 0) or −eps (A < 0).

    A token whose own ratio is clipped has no gradient; the others have the gradient of the sequence's ratio. Needs
    whole sequences in every slice.
    """

    eps: NotNegative = 0.4
    """Bound of lp − old: a token's ratio is at most e^eps if A > 0, at least e^(−eps) if A < 0."""
    source: ClassVar = "Zhao et al. 2025 (GMPO) and its released code"
    quadrants: ClassVar = ("II", "III")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        bound = torch.as_tensor(self.eps, dtype=torch.float64).exp()
        return 1 / bound, bound, torch.inf

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        held = self._clipped_log_ratio(s.frozen, s)
        geometric = self.sequence_mean(held, s) + log_ratio(self._clipped_log_ratio(logp, s), held)
        return -s.advantage * geometric.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()

    def _clipped_log_ratio(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        positive = s.direction > 0
        lower = torch.where(positive, -torch.inf, s.clip_low.log())
        upper = torch.where(positive, s.clip_high.log(), torch.inf)
        return log_ratio(logp, s.old_logp).clamp(lower, upper)


@register("vespo")
@dataclass(kw_only=True)
class VESPO(SequenceSurrogate):
    """−sg(φ)·A·log π, φ = e^λ·w^k·e^(−λw), w = Π_t π/π_old over the sequence; k and λ for A ≥ 0 and for A < 0.

    φ is 1 at w = 1, highest at w = k/λ and falls to 0 on both sides. A token's log-ratio is kept within ±20, log w
    within [log 1e-8, 20]. The authors and TRL also multiply w by the ratio of the trainer's to the rollout engine's
    policy; here `rollout_correction` multiplies the weights.
    """

    aggregation: Aggregation = "token-mean"
    k_positive: NotNegative = 2.0
    """k if A ≥ 0."""
    lambda_positive: Positive = 3.0
    """λ if A ≥ 0."""
    k_negative: NotNegative = 3.0
    """k if A < 0."""
    lambda_negative: Positive = 2.0
    """λ if A < 0."""
    source: ClassVar = (
        "Shen et al. 2026 (VESPO) and its released code, compute_policy_loss_vespo; TRL, GRPOTrainer.get_gamma_weights"
    )
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def factor(self, logp: Tensor, s: Slice) -> Tensor:
        """Return φ of each token's sequence, (..., n)."""
        assert s.old_logp is not None
        segments = self.sequences(s)
        token = log_ratio(logp, s.old_logp).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        log_w = segments.spread(segments.sum(token.double())).clamp(LOG_SMALLEST, LOG_RATIO_LIMIT).to(logp.dtype)
        positive = s.direction >= 0
        k = torch.where(positive, column(self.k_positive, logp), column(self.k_negative, logp))
        lambda_ = torch.where(positive, column(self.lambda_positive, logp), column(self.lambda_negative, logp))
        return (lambda_ + k * log_w - lambda_ * log_w.exp()).exp()

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        slope = -self.factor(s.frozen, s) * s.advantage
        return torch.where(slope != 0, slope * logp, 0.0)  # 0·−inf is NaN

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return self.factor(logp, s) == 0
