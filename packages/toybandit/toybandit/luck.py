"""Uniform random numbers of a simulation, which decide the arms drawn and the rewards."""

import torch
from torch import Tensor

from entrostat.numbers.draws import salt, uniform

BLOCK = 1 << 18
"""Numbers to make at once, for as many rollouts as they cover: a few small calls cost more than a large one."""


class Luck:
    """Uniform numbers (R, S, G), keyed by (seed, purpose, rollout, prompt, response).

    Every run has its own numbers, compared controllers share them, and they do not depend on the run's past.
    seeds: int64 (R,).
    """

    def __init__(self, seeds: Tensor, prompts: int, group: int) -> None:
        self.keys = seeds.reshape(-1, 1, 1), torch.arange(prompts).reshape(-1, 1), torch.arange(group)
        self.ahead = max(BLOCK // (len(seeds) * prompts * group), 1)
        self.drawn: dict[str, tuple[int, Tensor]] = {}

    def __call__(self, purpose: str, rollout: int) -> Tensor:
        """Return the numbers for `purpose` in a rollout, float64 (R, S, G)."""
        first, numbers = self.drawn.get(purpose, (0, torch.empty(0)))
        if not 0 <= rollout - first < len(numbers):
            seed, prompt, sample = self.keys
            first, rollouts = rollout, rollout + torch.arange(self.ahead).reshape(-1, 1, 1, 1)
            numbers = uniform(seed, salt(purpose), rollouts, prompt, sample)
            self.drawn[purpose] = first, numbers
        return numbers[rollout - first]
