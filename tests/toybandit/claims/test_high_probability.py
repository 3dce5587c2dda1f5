"""Control by likely tokens: when a loop has settled, and that unlikely tokens act the other way."""

import numpy as np

from toybandit.claims.feedback import GOAL
from toybandit.claims.high_probability import ENVS, WIDE, by_unlikely, settling
from toybandit.claims.registry import Effort


def test_settling_is_from_the_last_rollout_outside():
    inside, outside = GOAL + WIDE / 2, GOAL + 2 * WIDE
    assert settling(np.array([[outside, inside, outside, inside, inside]])) == 3
    assert settling(np.array([[inside, inside]])) == 0
    assert settling(np.array([[inside, outside], [inside, outside]])) == 2


def test_unlikely_tokens_are_weighted_within_the_block_alone():
    effort = Effort(instances=1, runs=3, states=16, rollouts=60)
    first, second = by_unlikely(effort), by_unlikely(effort)
    assert set(first) == set(ENVS)
    assert all((first[name] == second[name]).all() for name in ENVS)
