"""Responses move between ranks before they are trained on, so that each has about as much of every mini-batch.

A rank has sampled for prompts that were dealt out before anybody knew how long responses become, which of them teach
something, and how many groups dynamic sampling leaves it.
"""

import heapq
from dataclasses import replace

import torch
from torch import Tensor

from ..process.ranks import Ranks
from .collected import Collected


def deal(found: Collected, mini_batches: tuple[Tensor, ...], n: int, whole_groups: bool, ranks: Ranks) -> Tensor:
    """The rank that is to train each of the B sequences, (B,).

    Of every mini-batch each gets about as many tokens: first of sequences with an advantage, which go through the model
    forth and back, then of the others, whose statistics are asked for; from the longest.

    mini_batches: the prompts of each, with n samples.
    whole_groups: the samples of a prompt stay together.
    """
    pieces = 1 if whole_groups else n  # of a group
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
    """For each of the costs in turn the rank that has least so far."""
    heap = [(0, 0, rank) for rank in range(ranks)]
    found = []
    for cost in costs:
        load, count, rank = heap[0]
        heapq.heapreplace(heap, (load + cost, count + 1, rank))
        found.append(rank)
    return found


def exchange(found: Collected, to: Tensor, ranks: Ranks) -> Collected:
    """What all ranks have for this one, where `to` (B,) says whom each of the B sequences is for."""
    order = to.argsort(stable=True)
    leaving = found.rollouts.take(order)
    counts = to.bincount(minlength=ranks.size)
    tokens = torch.zeros_like(counts).index_add(0, to[order], leaving.response_lengths)
    rollouts = replace(
        leaving,
        response_ids=ranks.exchange(leaving.response_ids, tokens),
        logp=ranks.exchange(leaving.logp, tokens),
        response_lengths=ranks.exchange(leaving.response_lengths, counts),
        prompt_index=ranks.exchange(leaving.prompt_index, counts),
        finished=ranks.exchange(leaving.finished.long(), counts).bool(),
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
