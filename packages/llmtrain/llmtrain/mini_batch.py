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


def share(parts: tuple[Tensor, ...], rank: int, ranks: int) -> Tensor:
    """The prompts that a rank answers, ascending: the same number of each mini-batch, as far as they divide."""
    return torch.cat([part[rank::ranks] for part in parts]).sort().values
