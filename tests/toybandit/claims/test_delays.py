"""A loop with an old measurement, by hand."""

import torch

from entrostat import StepStats, make
from entrostat.controller import Controller
from toybandit.claims.delays import delayed
from toybandit.claims.mutations import Swap


class Notes(Controller):
    """Keeps what it was shown."""

    name = "notes"

    def __init__(self) -> None:
        self.shown: list[float] = []

    def observe(self, stats: StepStats) -> None:
        self.shown.append(float(stats.entropy))


def shown(delay: int) -> list[float]:
    """The entropies that a chain passes on, given 0, 1, 2, 3."""
    chain, notes = make("grpo"), Notes()
    chain.parts = (*chain.parts, notes)
    with Swap(type(chain), "observe", delayed(delay))():
        for step in range(4):
            chain.observe(StepStats(entropy=torch.tensor(float(step)), step=step, total_steps=4))
    return notes.shown


def test_the_entropy_is_that_of_so_many_rollouts_before_or_the_first():
    assert shown(0) == [0, 1, 2, 3]
    assert shown(1) == [0, 0, 1, 2]
    assert shown(3) == [0, 0, 0, 0]
