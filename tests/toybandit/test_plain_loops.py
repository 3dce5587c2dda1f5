"""The simulator against plain loops: every controller, in random environments, several runs at once."""

import random
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from reference import in_loops

from entrostat import Tokens, list_controllers
from toybandit import Config, simulate
from toybandit.environments import ENVIRONMENTS
from toybandit.simulator import WATCHED

ARGS = {
    "adaptive_entropy": {"initial": 0.004, "target": 5.0},
    "arbitrary_entropy": {"target": 1.5},
    "clip_cov": {"k": 0.1, "omega_low": -1.0, "omega_high": 2.0},
    "entropic": {"tau": 0.0},
    "entropy_bonus": {"coef": 0.1},
    "kl_cov": {"k": 0.1},
    "kl_ref": {"beta": 0.3},
    "lp_reg": {"share": 0.5},
    "siren": {"beta": 0.5, "tau": 0.5, "per_response": False},
    "truncated_entropy_bonus": {"coef": 0.3, "top_k": 3},
}
"""Settings with which a rule acts in a small bandit."""
ENUMERABLE = {
    "grpo": {},
    "reinforce": {},
    "clip_free": {},
    "entropic": {"tau": 0.0},
    "entropy_bonus": {"coef": 0.1},
    "kl_ref": {"beta": 0.3},
    "positive_only": {"denominator": "kept"},
    "truncated_entropy_bonus": {"coef": 0.3, "top_k": 3},
}
"""Rules of single tokens, which work on enumerated outcomes."""
CHAINS: dict[str, dict[str, Any]] = {
    "clip_higher+steer+entropy_bonus": {"coef": 0.05},
    "cispo+positive_reweight+kl_ref": {"beta": 0.2, "estimator": "k3"},
    "ppo+kl_ref": {"beta": 0.3, "estimator": "k1", "dual_clip": 1.05, "reset_every": 7},
    "thermostat": {"mode": "anchor+bonus", "target": 1.2, "reset_every": 5},
    "kl_ref": {"beta": 0.3, "estimator": "k2"},
}
TWO_SIDED = ("grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp over=responses", "qae k=0.6", "w_reinforce")
"""Advantages of either sign, so that rules for one sign act."""
OF_SETS = ("pass_at_k k=2", "pass_at_k k=2 variant=analytic", "pass_at_k k=2 variant=best", "max_rl")
OF_MORE = ("gdpo", "opo", "rae", "rae decay=0.5")
"""Advantages that are told more than rewards."""
ADVANTAGES = (*TWO_SIDED, *OF_SETS, *OF_MORE, "qae", "psr", "nsr")


def scene(name: str, number: int = 0, **given: Any) -> dict[str, Any]:
    """Return the numbers of a random environment with 24 rollouts."""
    draw = random.Random(f"{name}, {number}")
    states, arms = draw.randint(2, 3), draw.randint(4, 7)
    numbers: dict[str, Any] = {
        "states": states,
        "arms": arms,
        "group": draw.randint(3, 6),
        "rollouts": 24,
        "passes": draw.randint(1, 3),
        "logit_std": draw.uniform(0.5, 1.5),
        "right_arms": draw.randint(1, arms - 1),
        "right_tilt": draw.uniform(0, 1),
        "right_logit": draw.choice((0.0, 0.5)),
        "reward_right": draw.uniform(0.5, 1),
        "reward_wrong": draw.uniform(0, 0.5),
        "advantage": draw.choice(TWO_SIDED),
        "update": draw.choice(("sgd", "sgd", "npg", "adam")),
    }
    numbers["lr"] = draw.uniform(0.2, 0.8) if numbers["update"] == "sgd" else draw.uniform(0.02, 0.05)
    match draw.choice(("plain", "tree", "coupled", "kernel", "beta", "table")):
        case "tree":
            numbers |= {"length": 3, "branching": 2, "states": 2}
        case "coupled":
            numbers |= {"coupling": draw.uniform(0.1, 0.5)}
        case "kernel":
            numbers |= {"kernel": [[draw.uniform(-0.2, 1) for _ in range(states)] for _ in range(states)]}
        case "beta":
            numbers |= {"success_beta": (0.5, 1.5)}
        case "table":
            numbers |= {"success": [[draw.random() for _ in range(arms)]], "logits": [[0.1 * a for a in range(arms)]]}
    return numbers | given


def assert_equal(config: Config, seeds: list[int]) -> None:
    ours, loops = simulate(config, seeds, predict=True), in_loops(config, seeds)
    for name in ("success", "entropy", "reward", "predicted", "probabilities", "logits"):
        np.testing.assert_allclose(getattr(ours, name), getattr(loops, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert set(ours.metrics) == set(loops.metrics)
    for name, values in loops.metrics.items():
        np.testing.assert_allclose(ours.metrics[name], values, rtol=1e-8, atol=1e-9, err_msg=name)
    assert np.ptp(ours.entropy, axis=1).min() > 1e-3, "the policy hardly moves"


@pytest.mark.parametrize("name", list_controllers())
def test_every_controller(name):
    assert_equal(Config(controller=name, controller_args=ARGS.get(name, {}), **scene(name)), [4, 7])


@pytest.mark.parametrize("env", sorted({*ENVIRONMENTS} - {"features"}))  # its own: test_features.py
def test_every_named_environment(env):
    size = {} if ENVIRONMENTS[env].enumerated else {"states": 2}
    config = Config(env=env, rollouts=24, lr=2.0 if ENVIRONMENTS[env].enumerated else None, **size)
    assert_equal(config, [3, 8])


def test_bounds_of_the_ratio():
    args = {"eps_low": 0.05, "eps_high": 0.1}
    numbers = scene("bounds", update="sgd", lr=1.0, passes=3)
    assert_equal(Config(controller_args=args, **numbers), [1, 2])
    narrow, wide = (simulate(Config(controller_args=a, **numbers), [1]).entropy for a in (args, {}))
    assert np.abs(narrow - wide).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 4, 5))])
@pytest.mark.parametrize("name", list_controllers())
def test_every_controller_in_more_environments(name, number):
    assert_equal(Config(controller=name, controller_args=ARGS.get(name, {}), **scene(name, number)), [number, 2**62, 0])


@pytest.mark.parametrize("name", CHAINS)
def test_chains_and_modes(name):
    assert_equal(Config(controller=name, controller_args=CHAINS[name], **scene(f"chain {name}", passes=2)), [1, 5])


HEATED = {
    "fixed": {"temperature": 1.4, "controller": "kl_ref", "controller_args": {"beta": 0.3}},
    "moving": {"temperature": "linear(1.5, 0.8, 20)", "controller": "entropy_bonus", "controller_args": {"coef": 0.1}},
    "truncated": {"temperature": 0.7, "controller": "truncated_entropy_bonus", "controller_args": {"top_k": 3}},
    "solved": {"controller": "thermostat", "controller_args": {"mode": "temperature", "target": 1.2}},
    "E3": {"controller": "temperature_loop", "controller_args": {"vocabulary": 5, "target": 1.2}},
    "held at it": {"temperature": 1.3, "controller": "thermostat", "controller_args": {"mode": "both", "target": 1.2}},
}


@pytest.mark.parametrize("update", ["sgd", "npg", "adam"])
@pytest.mark.parametrize("name", HEATED)
def test_temperatures(name, update):
    rate = 0.5 if update == "sgd" else 0.04
    assert_equal(Config(**HEATED[name], **scene(f"heat {name}", update=update, lr=rate, passes=2)), [2, 5])


def test_temperatures_of_trees_and_of_enumerated_outcomes():
    assert_equal(Config(temperature=1.6, **scene("heat tree", length=3, branching=2, states=2, kernel=None)), [1, 4])
    assert_equal(Config(env="exact", temperature=0.8, rollouts=24, lr=2.0), [1, 4])


@pytest.mark.parametrize("number", range(6))
def test_label_noise(number):
    assert_equal(Config(label_noise=0.2, **scene("label noise", number)), [number, 5])


def test_label_noise_where_outcomes_are_enumerated():
    assert_equal(Config(env="exact", label_noise=0.2, rollouts=12, lr=2.0), [1])


@pytest.mark.parametrize("advantage", ADVANTAGES)
def test_every_advantage(advantage):
    assert_equal(Config(**scene(advantage, advantage=advantage)), [2, 3, 11])


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("advantage", ["remax", "optimal_token", "opo", "rae", "gdpo"])
def test_advantages_that_look_at_the_policy(advantage, noise):
    """remax: the reward of the most likely arm; optimal_token: weights from the probabilities of all arms."""
    numbers = scene(f"looks {advantage}", length=1, branching=1, advantage=advantage, label_noise=noise)
    assert_equal(Config(**numbers), [2, 3, 11])


@pytest.mark.parametrize(("advantage", "needs"), [("remax", "greedy"), ("optimal_token", "logp, s2, response")])
def test_what_a_tree_does_not_tell(advantage, needs):
    with pytest.raises(ValueError, match=f"needs {needs}; a simulation has none where responses have several tokens"):
        simulate(Config(advantage=advantage, length=2, branching=2), [0])
    with pytest.raises(ValueError, match="needs prm_logp, ref_logp, response; a simulation has none"):
        simulate(Config(advantage="prime", length=2, branching=2), [0])


@pytest.mark.parametrize("name", ENUMERABLE)
def test_enumerated_outcomes(name):
    numbers = scene(f"enumerated {name}", length=1, branching=1, gradient="exact", group=None, advantage=None)
    assert_equal(Config(controller=name, controller_args=ENUMERABLE[name], **numbers), [0, 9])


@pytest.mark.parametrize("update", ["sgd", "npg", "adam"])
def test_rates_of_each_run(update):
    numbers = scene(f"rates {update}", update=update, lr=(0.02, 0.05, 0.04))
    assert_equal(Config(controller="entropy_bonus", controller_args={"coef": 0.1}, **numbers), [5, 5, 6])


@pytest.mark.parametrize("tree", [{}, {"length": 3, "branching": 2}])
def test_every_field_of_every_token(tree):
    """Also those that the controller does not need, at each of 24 rollouts' updates."""
    config, seen = Config(**scene(f"fields {tree}", passes=3, update="sgd", lr=0.5) | tree | {"kernel": None}), []
    simulate(config, [3, 12], watch=lambda tokens, plan: seen.append(tokens))
    loops = in_loops(config, [3, 12], needs=WATCHED).tokens
    assert len(seen) == len(loops) == 24 * 3
    for ours, expected in zip(seen, loops, strict=True):
        for name in sorted(field.name for field in fields(Tokens)):
            one, other = getattr(ours, name), getattr(expected, name)
            assert (one is None) == (other is None), name
            if one is not None:
                torch.testing.assert_close(one.double(), other.double(), rtol=0, atol=1e-10, msg=name)
