"""Environments that do what a run did: a random search over the numbers of `features`, then around the best."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from entrostat import CompositionWarning
from entrostat.controllers.thermostat import ThermostatWarning

from ..config import Config
from ..environments import ENVIRONMENTS
from ..simulator import simulate
from ..trajectory import Trajectory
from .observed import Observed

TRIES = 300
"""Simulations of a search."""
BROAD = 0.4
"""Share of the tries that are drawn from the whole box; the others vary one of the best."""
BEST = 6
"""Tries that are varied."""
SEEDS = range(3)
"""Seeds of a try."""
LONGEST = 160
"""Most rollouts of a simulation: a longer run is told in as many."""
LOGITS, SKILL, TILT = (0.5, 9.0), (0.0, 4.0), (0.0, 2.0)
ARMS, LENGTHS, RIGHT = (4, 8, 16, 32, 64), (1, 2, 3, 4, 6), (1, 2, 3, 4, 8)
FEATURES = (1, 2, 4, 8, 16, 32, 64, 128)
COUPLINGS = (0.0, 0.1, 0.3, 0.6)
RATES = (-3.0, -0.3)
"""Powers of ten of the learning rate."""


@dataclass(frozen=True)
class Fit:
    """Environment like a run."""

    config: Config
    distance: float
    """Sum of squared differences from the run's numbers, in units of .05."""


def like(observed: Observed, fixed: Mapping[str, Any]) -> Config:
    """Return the environment `features` with the length of a run, and with numbers that are not searched for."""
    rollouts = min(observed.total, LONGEST)
    usual = ENVIRONMENTS["features"]
    pool = min(usual.prompts, usual.states * rollouts)  # what a short run never sees need not be drawn
    return Config(**{"env": "features", "rollouts": rollouts, "pool": pool, **fixed})


def fit(observed: Observed, *, tries: int = TRIES, seed: int = 0, fixed: Mapping[str, Any] | None = None) -> Fit:
    """Return the best of `tries` environments under plain GRPO.

    fixed: numbers of `Config` that are not searched for.
    """
    base, random = like(observed, fixed or {}), np.random.default_rng(seed)
    most = float(np.nanmax(observed.entropy))
    found: list[tuple[float, int, dict[str, Any]]] = []
    for number in range(tries):
        if number < BROAD * tries or not found:
            numbers = draw(random, most)
        else:
            numbers = vary(found[random.integers(min(BEST, len(found)))][2], random, most)
        try:
            run = tried(replace(base, **{**numbers, **(fixed or {})}), SEEDS)
        except ValueError:
            continue  # numbers that do not go together, such as more right arms than arms
        distance = observed.distance(run)
        if np.isfinite(distance) and not run.diverged:
            found = sorted([*found, (distance, number, numbers)], key=lambda one: one[:2])[: 2 * BEST]
    if not found:
        raise ValueError("no environment could be simulated: a number that is fixed makes all diverge")
    return Fit(replace(base, **{**found[0][2], **(fixed or {})}), found[0][0])


def tried(config: Config, seeds: Sequence[int]) -> Trajectory:
    """Return a simulation, without warnings of its controllers: they are not about the run that is forecast."""
    with warnings.catch_warnings():
        for of_one_run in (CompositionWarning, ThermostatWarning):
            warnings.simplefilter("ignore", of_one_run)
        return simulate(config, seeds)


def draw(random: np.random.Generator, entropy: float) -> dict[str, Any]:
    """Return numbers from the box, with arms enough for an entropy (nats)."""
    arms = int(random.choice([n for n in ARMS if log(n) > entropy] or ARMS[-1:]))
    length = int(random.choice(LENGTHS))
    return {
        "arms": arms,
        "length": length,
        "branching": int(random.choice((1, 2))) if length < LENGTHS[-1] else 1,
        "right_arms": int(random.choice([n for n in RIGHT if n < arms])),
        "features": int(random.choice(FEATURES)),
        "coupling": float(random.choice(COUPLINGS)),
        "logit_std": float(random.uniform(*LOGITS)),
        "skill": float(random.uniform(*SKILL)),
        "right_tilt": float(random.uniform(*TILT)),
        "predictable": float(random.uniform()),
        "lr": float(10 ** random.uniform(*RATES)),
    }


def vary(numbers: Mapping[str, Any], random: np.random.Generator, entropy: float) -> dict[str, Any]:
    """Return numbers near others: a little of each, now and then another kind of sharing or of response."""
    other = draw(random, entropy)
    new = dict(numbers)
    for name, step, (low, high) in (
        ("logit_std", 0.5, LOGITS),
        ("skill", 0.3, SKILL),
        ("right_tilt", 0.15, TILT),
        ("predictable", 0.1, (0.0, 1.0)),
    ):
        new[name] = float(np.clip(numbers[name] + step * random.normal(), low, high))
    new["lr"] = float(numbers["lr"] * np.exp(0.3 * random.normal()))
    if random.random() < 0.4:
        name = str(random.choice(("features", "coupling")))
        new[name] = other[name]
    if random.random() < 0.15:
        new |= {name: other[name] for name in ("arms", "length", "branching", "right_arms")}
    return new
