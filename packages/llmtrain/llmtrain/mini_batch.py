"""Which prompts make up each mini-batch, and which of them a rank answers.

Mini-batches are drawn over all prompts of a rollout step, whatever the number of ranks.
"""

import torch
from torch import Tensor

from entrostat.draws import generator_seed


def mini_batches(prompts: int, size: int, seed: int, step: int, epoch: int) -> tuple[Tensor, ...]:
    """The prompts of each mini-batch, (size,) each: all of them once, in an order drawn anew for each pass."""
    generator = torch.Generator().manual_seed(generator_seed("mini-batches", seed, step, epoch))
    return torch.randperm(prompts, generator=generator).split(size)


def shares(parts: tuple[Tensor, ...], sizes: Tensor, ranks: int) -> list[list[int]]:
    """The prompts that each rank answers, ascending: the same number of each mini-batch, as far as they divide.

    sizes: what each prompt costs, (P,). They are dealt out from the largest, there and back over the ranks, so that
    costs are about the same.
    """
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for part in parts:
        for place, prompt in enumerate(part[sizes[part].argsort(descending=True, stable=True)].tolist()):
            turn, seat = divmod(place, ranks)
            dealt[seat if turn % 2 == 0 else ranks - 1 - seat].append(prompt)
    return [sorted(prompts) for prompts in dealt]
