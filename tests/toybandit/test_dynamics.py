"""What controllers do to the entropy of a whole run, at a size where the orderings have no exception over seeds."""

from functools import cache

import numpy as np
import pytest

from toybandit import Config, Trajectory, simulate

CI = {"states": 48, "rollouts": 150}


@cache
def run(controller: str) -> Trajectory:
    return simulate(Config(controller=controller, **CI), range(8))


def final(controller: str) -> np.ndarray:
    """Final entropy of each run."""
    return run(controller).entropy[:, -1]


def test_grpo_collapses_and_learns():
    trajectory = run("grpo")
    assert (trajectory.entropy[:, -1] < 0.3 * trajectory.entropy[:, 0]).all()
    assert (trajectory.reward[:, -1] > trajectory.reward[:, 0] + 0.08).all()


@pytest.mark.slow
def test_clip_bounds_order_the_entropy():
    assert (final("clip_lower") < final("grpo")).all()
    assert (final("grpo") < final("clip_higher")).all()
    assert (final("grpo") < final("clip_tighter")).all()


def test_pi_control_holds_its_target_and_p_control_ends_below():
    gains = {"tau": 0.0, "kp": 1.0, "ki": [0.05] * 8 + [0.0] * 8}
    config = Config(controller="entropic", target=0.6, controller_args=gains, **CI)
    pi, p = simulate(config, [*range(8), *range(8)]).entropy[:, 100:].reshape(2, -1).mean(-1)
    assert abs(pi - 0.6) < 0.05
    assert -0.25 < p - 0.6 < -0.04


def test_adaptive_entropy_holds_its_target():
    config = Config(controller="adaptive_entropy", target=0.6, controller_args={"delta": 0.005, "coef_max": 0.1}, **CI)
    assert abs(simulate(config, range(8)).entropy[:, 100:].mean() - 0.6) < 0.05


def test_deterministic_rewards_take_the_actuators_away():
    """All-correct groups have no advantage left to reweight."""
    args = {"tau": 0.0, "ki": 0.05}
    config = Config(env="det", controller="entropic", target=0.6, controller_args=args, **CI)
    assert abs(simulate(config, range(8)).entropy[:, -1].mean() - 0.6) > 0.2
