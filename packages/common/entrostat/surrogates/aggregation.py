"""Factor of each token in the loss, which averages over the whole mini-batch and all ranks."""

from typing import Literal

import torch
from torch import Tensor

from ..numbers.reduce import LocalReduce
from ..numbers.segments import Segments
from ..tokens import Tokens

Aggregation = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "fixed"]
Denominator = Literal["all", "kept"]


def token_scale(
    tokens: Tokens,
    keep: Tensor,
    reduce: LocalReduce,
    aggregation: Aggregation,
    denominator: Denominator,
    constant: float,
) -> Tensor:
    """Return the factor of every token, (..., N) or (..., 1).

    token-mean: 1 / tokens.  seq-mean-token-mean: 1 / (sequences · length).  seq-mean-token-sum: 1 / sequences.
    fixed: 1 / constant (Dr. GRPO).  With denominator "kept", neither dropped tokens nor sequences without a kept token
    are counted; the factor is 0 if nothing is kept. A whole sequence must be on one rank.
    """
    like = tokens.advantage
    if aggregation == "fixed":
        return torch.full_like(like[..., :1], 1.0 / constant)
    if aggregation == "token-mean" and denominator == "all":
        return reduce.size(like).reciprocal().to(like.dtype)
    counted = keep.expand(like.shape)
    if aggregation == "token-mean":
        return _inverse(reduce.count(counted)).unsqueeze(-1).to(like.dtype)
    segments = Segments(tokens.get("seq_id"))
    lengths = segments.sum(counted.long()) if denominator == "kept" else segments.size
    sequences = reduce.count(lengths > 0).unsqueeze(-1)
    if aggregation == "seq-mean-token-sum":
        return _inverse(sequences).to(like.dtype)
    return segments.spread(_inverse(sequences * lengths).to(like.dtype))


def _inverse(count: Tensor) -> Tensor:
    """Return 1/count in float64, or 0 if the count is 0. A count may be an expectation below 1."""
    return torch.where(count > 0, 1.0 / count.double(), 0.0)
