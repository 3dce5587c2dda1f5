"""Prompts of each mini-batch, and prompts that each rank samples responses for.

Mini-batches are drawn over all prompts of a rollout step, independently of the number of ranks, and are the same in
each pass over them, because responses are distributed over the ranks only once.
"""

import torch
from torch import Tensor

from entrostat.numbers.draws import generator_seed


def mini_batches(prompts: int, size: int, seed: int, step: int) -> tuple[Tensor, ...]:
    """Return the prompts of each mini-batch, (size,) each: every prompt once, in a random order per rollout step."""
    key = generator_seed("mini-batches", seed, step, 0)  # 0 keeps the draws of published runs
    return torch.randperm(prompts, generator=torch.Generator().manual_seed(key)).split(size)


def shares(sizes: Tensor, ranks: int) -> list[list[int]]:
    """Return the prompts that each rank samples for, ascending: the same number per rank, or one more on some.

    sizes: size of each prompt, (P,). Prompts are dealt from the largest, back and forth over the ranks.
    """
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for place, prompt in enumerate(sizes.argsort(descending=True, stable=True).tolist()):
        turn, seat = divmod(place, ranks)
        dealt[seat if turn % 2 == 0 else ranks - 1 - seat].append(prompt)
    return [sorted(prompts) for prompts in dealt]
