"""How tokens are averaged into a loss: the factor of each token, over the whole mini-batch and all ranks."""

import torch
from torch import Tensor

from .reduce import LocalReduce
from .segments import segment_sum
from .tokens import Tokens

AGGREGATIONS = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "fixed")
DENOMINATORS = ("all", "kept")


def token_scale(
    tokens: Tokens, keep: Tensor, reduce: LocalReduce, aggregation: str, denominator: str, constant: float
) -> Tensor:
    """Factor of every token, (..., N) or (..., 1).

    token-mean: 1 / tokens.  seq-mean-token-mean: 1 / (sequences · length).  seq-mean-token-sum: 1 / sequences.
    fixed: 1 / constant (Dr. GRPO).  With denominator "kept", dropped tokens are not counted, and sequences without a
    kept token neither. Whole sequences must lie on one rank.
    """
    like = tokens.advantage
    if aggregation == "fixed":
        return torch.full_like(like[..., :1], 1.0 / constant)
    counted = (keep if denominator == "kept" else torch.ones_like(keep)).expand(like.shape)
    if aggregation == "token-mean":
        return (1.0 / reduce.count(counted).clamp(min=1).double()).unsqueeze(-1).to(like.dtype)
    lengths = segment_sum(counted.double(), tokens.get("seq_id")).clamp(min=1)
    sequences = reduce.sum(counted / lengths).clamp(min=1).unsqueeze(-1)
    scale = 1.0 / (sequences * lengths) if aggregation == "seq-mean-token-mean" else 1.0 / sequences
    return scale.to(like.dtype)
