"""From a configuration to a controller: targets, hyperparameters, and what is refused."""

import numpy as np
import pytest
import torch

from toybandit import Config, simulate
from toybandit.control import build_controller


def test_target_goes_to_the_part_that_has_one():
    chain = build_controller(Config(controller="clip_higher+entropic", target=0.7, controller_args={"kp": 2}), runs=3)
    (entropic,) = chain.parts
    assert (entropic.target, entropic.kp) == (0.7, 2)
    assert chain.surrogate.name == "clip_higher"


def test_no_target_leaves_the_default():
    assert build_controller(Config(controller="adaptive_entropy"), runs=1).parts[0].target == 0.2


def test_a_sequence_has_one_value_for_each_run():
    chain = build_controller(Config(controller="entropic", controller_args={"kp": [1, 2, 3]}), runs=3)
    assert torch.equal(chain.parts[0].kp, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


def test_preset():
    assert build_controller(Config(controller="steer", preset="released"), runs=1).parts[0].lambda_min == 0.8


EXACT = {"env": "exact"}
GROUPED = ["edge", "gtpo", "unlikeliness"]
SAMPLED = ["clip_cov", "kl_cov", "steer", "opefo", "clip_higher+steer"]
SAMPLED += ["forking_tokens", "ppl_advantage", "random_positive_clip"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"controller": "xyzzy"}, "unknown controller 'xyzzy'; choose from adapo, adaptive_clip, "),
        ({"controller": "grpoo", "target": 0.5}, "unknown controller 'grpoo'; did you mean grpo"),
        ({"preset": "tuned"}, "preset must be one of paper, released; got 'tuned'"),
        ({"target": 0.5}, "controller 'grpo' has no target; those with one are adapo, adaptive_clip, "),
        ({"controller": "clip_lower+steer", "target": 0.5}, "controller 'clip_lower+steer' has no target"),
        ({"controller": "entropic", "target": 0.5, "controller_args": {"target": 1}}, "target is given twice"),
        ({"controller": "entropic", "controller_args": {"gain": 1}}, "has the hyperparameter 'gain'"),
        ({"controller": "entropic", "controller_args": {"kp": "fast"}}, "entropic: kp must be a number, not 'fast'"),
        ({"controller": "entropic", "controller_args": {"tau": "high"}}, "entropic: tau must be a number, not 'high'"),
        ({"controller": "entropic", "controller_args": {"anti_windup": 3}}, "anti_windup must be true or false, not 3"),
        ({"controller": "entropic", "controller_args": {"kp": [1, 2]}}, "'kp' has 2 values for 1 runs"),
        ({"advantage": "critic"}, "unknown advantage 'critic'; choose from grpo, dr_grpo, rloo"),
        ({"update": "lion"}, "update must be one of sgd, npg, adam; got 'lion'"),
        *((EXACT | {"controller": name}, f"'{name}' needs Tokens.group_id") for name in GROUPED),
        *((EXACT | {"controller": name}, f"{name}' needs statistics over a sample, but env 'exa") for name in SAMPLED),
    ],
)
def test_bad_input_is_named(config, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        simulate(Config(**config), [0])
    assert message in str(caught.value)


def test_enumerated_outcomes_count_by_their_probability():
    """A share is an expected one, and the mean over what is kept divides by the probability of being kept."""
    gains = {}
    for denominator in ("all", "kept"):
        args = {"denominator": denominator}
        run = simulate(Config(env="exact", controller="positive_only", controller_args=args, rollouts=1), [0])
        gains[denominator] = run.logits
    negative = 1 - run.reward[0, 0]  # all of a state's failures, and no success, are below its mean
    assert run.metrics["positive_only/dropped"][0, 0] == pytest.approx(negative, rel=1e-12)
    assert negative == pytest.approx(0.5875, rel=1e-12)
    np.testing.assert_allclose(gains["kept"] * (1 - negative), gains["all"], rtol=1e-12)


@pytest.mark.parametrize("controller", ["grpo", "clip_free", "reinforce", "entropic", "adaptive_entropy"])
def test_rules_of_one_token_run_on_enumerated_outcomes(controller):
    assert simulate(Config(env="exact", controller=controller, rollouts=2), [0]).entropy.shape == (1, 3)
