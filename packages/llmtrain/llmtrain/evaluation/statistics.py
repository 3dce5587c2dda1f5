"""Mean log-probability and entropy per token of sequences under a policy, in nats.

Both use the policy's distribution at its temperature over the whole vocabulary, however the sequences were sampled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
    """Return the means over the tokens of each response. All `ranks` make this call, each with its own responses."""
    return _means(policy, Batch.of(rollouts), budget, ranks)


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
    found[longer] = _means(policy, batch, budget, ranks, "padded").entropy  # a shared prompt would be only one token
    return found


def _means(policy: Policy, batch: Batch, budget: int, ranks: Ranks, layout: str = "") -> Means:
    stats, lengths = policy.all_stats(batch, budget, ranks, layout), batch.response_lengths
    owner = torch.arange(len(lengths)).repeat_interleave(lengths)

    def mean(x: Tensor) -> NDArray[np.float64]:
        return (torch.zeros(len(lengths)).double().index_add(0, owner, x.double().cpu()) / lengths).numpy()

    return Means(mean(stats.logp), mean(stats.entropy))
