"""Gain and drift of a bandit's entropy near a target under α of `entropic`, as linear control theory needs them.

    e⁺ = e + drift − gain·α

Both are measured by one rollout with α fixed slightly above zero and one slightly below, with the same random numbers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from entrostat import policy_stats

from .config import Config
from .problem import draw_problem
from .simulator import simulate
from .trajectory import Array

HALF_WIDTH = 0.1
"""Half-width of the interval of α over which the entropy change is measured."""
BISECTIONS = 30
LOGIT_STD, RIGHT_LOGIT = (0.0, 100.0), (0.0, 40.0)
"""Search ranges for the number that sets the initial entropy."""


class LocalPlant(NamedTuple):
    """Gain and drift of a bandit at one entropy, as means over runs."""

    gain: float
    """g, decrease of the mean entropy in a rollout per unit of α, nats."""
    drift: float
    """d, change of the mean entropy in a rollout at α = 0, nats."""


def starting_at(config: Config, entropy: float, seeds: Sequence[int]) -> Config:
    """Return `config` with an initial policy whose mean entropy over these seeds is `entropy` (nats).

    Changes the spread of the logits or, if it is 0, the logit of the right arms. Possible entropies range from a
    uniform policy's to the lowest that the spread or the right arms allow. Raises ValueError outside that range.
    """
    spread = config.environment().logit_std > 0
    low, high = LOGIT_STD if spread else RIGHT_LOGIT

    def at(number: float) -> Config:
        return replace(config, logit_std=number) if spread else replace(config, right_logit=number)

    top, bottom = (initial_entropy(at(end), seeds) for end in (low, high))
    if not bottom <= entropy <= top:
        raise ValueError(f"a policy of this environment has an entropy of {bottom:.2f} to {top:.2f}, not {entropy:.2f}")
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = initial_entropy(at(middle), seeds) > entropy
        low, high = (middle, high) if above else (low, middle)
    return at((low + high) / 2)


def initial_entropy(config: Config, seeds: Sequence[int]) -> float:
    """Return the mean entropy of the initial policies of these seeds, nats."""
    problem = draw_problem(config.environment(), torch.tensor(list(seeds)), torch.float64)
    return float(policy_stats(problem.logits).entropy.mean())


def held(config: Config, alpha: Sequence[float], seeds: Sequence[int]) -> Array:
    """Return the mean entropy's change in the first rollout under `entropic` at each α, (len(alpha), seeds), nats.

    Uses tau of `config`, but not its gains and target.
    """
    runs = [seed for _ in alpha for seed in seeds]
    start = simulate(replace(config, controller="grpo", controller_args={}, target=None, rollouts=1), seeds).entropy[
        :, 0
    ]
    args = {
        **{key: value for key, value in config.controller_args.items() if key == "tau"},
        "target": np.outer(1 - np.sign(alpha) / 2, start).ravel().tolist(),  # an error of half the entropy
        "kp": np.outer(np.abs(alpha), 2 / start).ravel().tolist(),
        "ki": 0.0,
        "alpha_max": 1e9,
    }
    settled = replace(config, controller="entropic", controller_args=args, target=None, rollouts=1)
    return np.diff(simulate(settled, runs).entropy)[:, 0].reshape(len(alpha), len(seeds))


def local_plant(config: Config, entropy: float, seeds: Sequence[int]) -> LocalPlant:
    """Return the plant of `config` at initial policies of this mean entropy (nats), as means over the seeds.

    config: gives the environment and tau of the controller `entropic`. Raises ValueError as `starting_at` does.
    """
    below, above = held(starting_at(config, entropy, seeds), (-HALF_WIDTH, HALF_WIDTH), seeds).mean(-1)
    return LocalPlant(gain=float(below - above) / (2 * HALF_WIDTH), drift=float(below + above) / 2)
