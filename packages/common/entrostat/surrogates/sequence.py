"""Surrogates with one ratio for a whole sequence. Their slices must hold whole sequences.

Both have a token gradient: the sequence's ratio multiplies ∇ log π of each token, with the token's own advantage and
weight, so that controllers act on tokens. If all tokens of a sequence have the same advantage, this is the gradient of
the sequence objective itself.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..aggregation import Aggregation
from ..hyperparameters import NotNegative
from ..kl import LOG_RATIO_LIMIT, log_ratio
from ..plan import Plan, Slice
from ..registry import register
from ..segments import Segments
from ..tokens import Tokens
from .base import SurrogateController, bounded


@dataclass(kw_only=True)
class SequenceSurrogate(SurrogateController):
    """Surrogate whose loss depends on whole sequences; averages within sequences, then over them."""

    aggregation: Aggregation = "seq-mean-token-mean"
    across_sequences: ClassVar[bool] = True

    def start(self, tokens: Tokens) -> Plan:
        seq_id = tokens.get("seq_id")
        segments = Segments(seq_id)
        return replace(super().start(tokens), seq_id=seq_id, length=segments.spread(segments.size))

    def sequence_mean(self, x: Tensor, s: Slice) -> Tensor:
        """Return the mean of x over each token's sequence, (..., n). Raises ValueError if a sequence is not whole."""
        assert s.seq_id is not None
        assert s.length is not None
        segments = Segments(s.seq_id)
        if not torch.equal(segments.spread(segments.size), s.length):
            raise ValueError(f"surrogate {self.name!r} needs whole sequences: a slice must not split one")
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
    source: ClassVar = "Zheng et al. 2025 (GSPO), equations 5, 7 and 13"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, torch.inf

    def _log_ratio(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        return self.sequence_mean(log_ratio(logp, s.old_logp), s)

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        of_sequence = self._log_ratio(s.frozen, s) + log_ratio(logp, s.frozen)
        return -s.advantage * bounded(of_sequence.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp(), s)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        ratio = self._log_ratio(logp, s).exp()
        return ((s.direction > 0) & (ratio > s.clip_high)) | ((s.direction < 0) & (ratio < s.clip_low))


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
