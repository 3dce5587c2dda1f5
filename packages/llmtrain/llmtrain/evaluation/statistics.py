"""Mean log-probability and entropy per token of sequences under a policy, in nats.

Both use the policy's distribution at its temperature over the whole vocabulary, however the sequences were sampled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels import HeadStats
from ..policy.policy import ALONE, Policy
from ..process.ranks import Ranks
from ..sequences.batch import Batch
from ..sequences.rollouts import Rollouts

MICRO_BATCH_TOKENS = 16384
"""Tokens per forward pass."""


class Means(NamedTuple):
    """Means over the tokens of each sequence, (B,), in nats; NaN for a sequence without tokens."""

    logp: NDArray[np.float64]
    entropy: NDArray[np.float64]


def response_means(policy: Policy, rollouts: Rollouts, budget: int = MICRO_BATCH_TOKENS, ranks: Ranks = ALONE) -> Means:
    """Return the means over the tokens of each response, of statistics from sampling or else from a pass.

    All `ranks` make this call, each with its own responses.
    """
    if rollouts.stats is not None:
        return _means(HeadStats(*rollouts.stats), rollouts.response_lengths)
    batch = Batch.of(rollouts)
    return _means(policy.all_stats(batch, budget, ranks), batch.response_lengths)


def prompt_entropy(
    policy: Policy, prompt_ids: Sequence[list[int]], budget: int = MICRO_BATCH_TOKENS, ranks: Ranks = ALONE
) -> NDArray[np.float64]:
    """Return the mean entropy over each prompt's tokens except the first, which has no context (Q,), in nats.

    NaN for a prompt of one token (Revisiting Entropy, C.2).
    """
    longer = [i for i, ids in enumerate(prompt_ids) if len(ids) > 1]
    lengths = torch.tensor([len(prompt_ids[i]) for i in longer], dtype=torch.long)
    ids = torch.tensor([token for i in longer for token in prompt_ids[i]], dtype=torch.long)
    found = np.full(len(prompt_ids), np.nan)
    batch = Batch(ids, torch.ones_like(lengths), lengths - 1)
    stats = policy.all_stats(batch, budget, ranks, "padded")  # a shared prompt would be only one token
    found[longer] = _means(stats, batch.response_lengths).entropy
    return found


def _means(stats: HeadStats, lengths: Tensor) -> Means:
    owner = torch.arange(len(lengths)).repeat_interleave(lengths)

    def mean(x: Tensor) -> NDArray[np.float64]:
        return (torch.zeros(len(lengths)).double().index_add(0, owner, x.double().cpu()) / lengths).numpy()

    return Means(mean(stats.logp), mean(stats.entropy))
