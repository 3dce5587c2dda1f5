"""Cells of the leaderboard's entries."""

from collections.abc import Sequence
from dataclasses import replace

from entrostat.about.lineup import Entry

from ..config import Config
from ..sweep.cells import Cell

ENVS = ("noisy", "on", "det", "coupled")
TARGET = 0.6
"""Target entropy of the controllers that have a target, nats."""


def cells(entry: Entry, environment: Config, seeds: Sequence[int]) -> list[Cell]:
    """Return a cell for each seed, in the environment of a configuration."""
    target = TARGET if entry.has_target else None
    advantage = entry.advantage or environment.advantage
    config = replace(
        environment, controller=entry.controller, controller_args=entry.args, target=target, advantage=advantage
    )
    return [Cell(config, seed) for seed in seeds]
