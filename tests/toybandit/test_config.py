"""Configurations: overrides reach the environment, and bad input is named."""

from dataclasses import FrozenInstanceError, fields

import pytest
import yaml

from toybandit import ENVIRONMENTS, Config, Environment


def test_numbers_of_the_environment_are_kept_unless_given():
    assert Config(env="det").environment() == ENVIRONMENTS["det"]
    changed = Config(env="det", states=5, lr=0.1, advantage="rloo").environment()
    assert (changed.states, changed.lr, changed.advantage) == (5, 0.1, "rloo")
    assert (changed.reward_right, changed.reward_wrong, changed.arms) == (1.0, 0.0, 16)


def test_a_zero_is_an_override():
    assert Config(right_tilt=0.0, logit_std=0.0).environment().right_tilt == 0.0
    assert Config(env="coupled", coupling=0.0).environment().coupling == 0.0


def test_every_number_of_an_environment_can_be_overridden():
    assert {f.name for f in fields(Environment)} <= {f.name for f in fields(Config)}
    assert all(f.default is None for f in fields(Config) if f.name in {e.name for e in fields(Environment)})


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_resolved_is_a_configuration_of_the_same_run(env):
    config = Config(env=env, controller="entropic", target=0.5, controller_args={"kp": 2.0}, rollouts=7)
    again = Config(**yaml.safe_load(yaml.safe_dump(config.resolved())))
    assert again.environment() == config.environment()
    assert again.resolved() == config.resolved()


def test_frozen():
    with pytest.raises(FrozenInstanceError):
        Config().env = "det"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"env": "xyzzy"}, "unknown env 'xyzzy'; choose from exact, noisy, on, pure, det, coupled"),
        ({"dtype": "half"}, "dtype must be one of float64, float32; got 'half'"),
        ({"env": "exact", "group": 4}, "env 'exact' enumerates every outcome and has no group: leave it None"),
        ({"env": "exact", "advantage": "grpo"}, "has no advantage"),
        ({"states": 0}, "states must be at least 1; got 0"),
        ({"arms": 1}, "arms must be at least 2; got 1"),
        ({"group": 0}, "group must be at least 1; got 0"),
        ({"lr": 0.0}, "lr must be positive; got 0.0"),
        ({"right_arms": 17}, "right_arms must be at most the 16 arms; got 17"),
        ({"reward_right": 1.5}, "reward_right must lie in [0, 1]; got 1.5"),
        ({"label_noise": -0.1}, "label_noise must lie in [0, 1]; got -0.1"),
        ({"coupling": -0.1}, "coupling must lie in [0, 1]; got -0.1"),
        ({"logit_std": -1.0}, "logit_std must not be negative; got -1.0"),
    ],
)
def test_bad_input_is_named(bad, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        Config(**bad)
    assert message in str(caught.value)
