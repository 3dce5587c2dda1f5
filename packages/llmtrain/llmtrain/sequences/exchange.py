"""Exchange of responses between ranks before training, so that each rank has about the same share of every mini-batch.

Prompts are dealt out to ranks before sampling, when response lengths, advantages and the number of groups that dynamic
sampling leaves on each rank are still unknown.
"""

import heapq
from dataclasses import replace

import torch
from torch import Tensor

from ..process.ranks import Ranks
from .collected import Collected


def deal(found: Collected, mini_batches: tuple[Tensor, ...], n: int, whole_groups: bool, ranks: Ranks) -> Tensor:
    """Return the rank that trains each of the B sequences, (B,).

    Each rank gets about the same number of tokens of every mini-batch. Sequences with an advantage, which need forward
    and backward passes, are dealt first; then the others, which need only statistics; the longest come first.

    mini_batches: prompts of each mini-batch, with n samples each.
    whole_groups: keep the samples of a prompt together.
    """
    pieces = 1 if whole_groups else n  # pieces per group
    parts = tuple((part[:, None] * pieces + torch.arange(pieces)).flatten() for part in mini_batches)
    unit, lengths = found.sequence * pieces // n, found.rollouts.lengths
    told = torch.zeros(2, sum(map(len, parts)), dtype=torch.long)
    tokens, live = ranks.total(told.index_add(1, unit, torch.stack([lengths, (found.advantage != 0).long()])))
    rank_of, turn = torch.empty_like(tokens), tokens + (live > 0) * tokens.max()
    for part in parts:
        order = part[turn[part].argsort(descending=True, stable=True)]
        rank_of[order] = torch.tensor(lightest(tokens[order].tolist(), ranks.size))
    return rank_of[unit]


def lightest(costs: list[int], ranks: int) -> list[int]:
    """Return a rank for each cost in turn: the one with the lowest total so far."""
    heap = [(0, 0, rank) for rank in range(ranks)]
    found = []
    for cost in costs:
        load, count, rank = heap[0]
        heapq.heapreplace(heap, (load + cost, count + 1, rank))
        found.append(rank)
    return found


def exchange(found: Collected, to: Tensor, ranks: Ranks) -> Collected:
    """Send each of the B sequences to the rank in `to` (B,); return the sequences sent to this rank."""
    order = to.argsort(stable=True)
    leaving = found.rollouts.take(order)
    counts = to.bincount(minlength=ranks.size)
    tokens = torch.zeros_like(counts).index_add(0, to[order], leaving.response_lengths)
    rollouts = replace(
        leaving,
        response_ids=ranks.exchange(leaving.response_ids, tokens),
        logp=ranks.exchange(leaving.logp, tokens),
        version=ranks.exchange(leaving.version, tokens),
        response_lengths=ranks.exchange(leaving.response_lengths, counts),
        prompt_index=ranks.exchange(leaving.prompt_index, counts),
        finished=ranks.exchange(leaving.finished.long(), counts).bool(),
        stats=None,
    )
    sequence = ranks.exchange(found.sequence[order], counts)
    scores = torch.stack([found.reward, found.shaped, found.advantage], 1)
    by_sequence = sequence.argsort()
    reward, shaped, advantage = ranks.exchange(scores[order], counts)[by_sequence].unbind(1)
    return replace(
        found,
        rollouts=rollouts.take(by_sequence),
        sequence=sequence[by_sequence],
        reward=reward,
        shaped=shaped,
        advantage=advantage,
    )
