"""Which prompts a rank answers, and which make up each mini-batch.

Mini-batches are drawn over all prompts of a rollout step, whatever the number of ranks, and are the same in each pass
over it: responses are shared out over the ranks once.
"""

import torch
from torch import Tensor

from entrostat.draws import generator_seed


def mini_batches(prompts: int, size: int, seed: int, step: int) -> tuple[Tensor, ...]:
    """The prompts of each mini-batch, (size,) each: all of them once, in an order drawn for the rollout step."""
    key = generator_seed("mini-batches", seed, step, 0)  # 0 keeps the draws of published runs
    return torch.randperm(prompts, generator=torch.Generator().manual_seed(key)).split(size)


def shares(sizes: Tensor, ranks: int) -> list[list[int]]:
    """The prompts that each rank answers, ascending: the same number, as far as they divide.

    sizes: of the prompts, (P,). They are dealt out from the largest, there and back over the ranks.
    """
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for place, prompt in enumerate(sizes.argsort(descending=True, stable=True).tolist()):
        turn, seat = divmod(place, ranks)
        dealt[seat if turn % 2 == 0 else ranks - 1 - seat].append(prompt)
    return [sorted(prompts) for prompts in dealt]
