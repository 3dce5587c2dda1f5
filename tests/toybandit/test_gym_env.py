"""The simulator's bandits behind gymnasium's interface."""

import runpy
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit import ENVIRONMENTS, Config, simulate
from toybandit.gym_env import BLOCK, SoftmaxBandit, SoftmaxBanditVector
from toybandit.problem import draw_problem

NAME = "toybandit/SoftmaxBandit-v0"
ONE_TOKEN = [name for name, env in ENVIRONMENTS.items() if env.length == 1]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("env", ONE_TOKEN)
def test_gymnasiums_checker_has_nothing_to_say(env):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(NAME, env=env, states=5).unwrapped)
        gymnasium.make_vec(NAME, num_envs=2, env=env, states=5).reset(seed=0)


def test_importing_toybandit_registers_it_without_torch():
    code = f"import sys, toybandit, gymnasium; gymnasium.spec('{NAME}'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_make_imports_the_module_in_front_of_the_name(monkeypatch):
    monkeypatch.delitem(sys.modules, "toybandit")
    monkeypatch.delitem(gymnasium.registry, NAME)
    with pytest.raises(gymnasium.error.Error, match="toybandit"):
        gymnasium.make(NAME)
    assert isinstance(gymnasium.make(f"toybandit:{NAME}", env="det", states=4).unwrapped, SoftmaxBandit)


def test_it_is_the_bandit_that_the_simulator_learns():
    env = SoftmaxBandit(env="on", states=6, arms=5, seed=7)
    problem = draw_problem(Config(env="on", states=6, arms=5).environment(), torch.tensor([7]), torch.float64)
    np.testing.assert_array_equal(env.logits, problem.logits[0])
    np.testing.assert_array_equal(env.success, problem.success[0])
    learnt = simulate(Config(env="on", states=6, arms=5, rollouts=1), [7])
    np.testing.assert_array_equal(env.success, learnt.success[0])


def test_own_tables():
    env = SoftmaxBandit(env="exact", states=2, arms=2, right_arms=1, success=[[1, 0], [0, 1]], logits=[0, 3])
    np.testing.assert_array_equal(env.success, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(env.logits, [[0, 3], [0, 3]])
    state, _ = env.reset(seed=0)
    for step in range(50):
        arm = (state + step) % 2
        state, reward, *_ = env.step(arm)
        assert reward == 1 - step % 2


@pytest.mark.parametrize("made", [SoftmaxBandit, SoftmaxBanditVector])
def test_information_is_about_the_observed_state_and_is_a_copy(made):
    env = made(states=4, seed=2)
    state, info = env.reset(seed=5)
    before = env.success.copy(), env.logits.copy()
    for _ in range(3):
        np.testing.assert_array_equal(info["success"], env.success[state])
        np.testing.assert_array_equal(info["logits"], env.logits[state])
        for name in ("success", "logits"):
            assert not np.shares_memory(info[name], getattr(env, name))
            info[name][...] = -1
        state, *_, info = env.step(np.zeros(1, int) if made is SoftmaxBanditVector else 0)
    np.testing.assert_array_equal(before, (env.success, env.logits))
    with pytest.raises(ValueError, match="read-only"):
        env.success[0] = 1


def test_changing_an_observation_changes_nothing():
    one, other = (SoftmaxBanditVector(8, env="det", states=9) for _ in range(2))
    observed = [env.reset(seed=1)[0] for env in (one, other)]
    observed[0][...] = 0
    _, reward, *_ = one.step(np.arange(8))
    np.testing.assert_array_equal(reward, other.step(np.arange(8))[1])
    np.testing.assert_array_equal(reward, other.success[observed[1], np.arange(8)])


def test_seeds():
    def run(seed, steps=BLOCK + 3):
        env = SoftmaxBandit(seed=1)
        return [env.reset(seed=seed)[0], *(env.step(i % 16)[:2] for i in range(steps)), env.reset()[0]]

    assert run(3) == run(3)
    assert run(3) != run(4)
    env = SoftmaxBandit()
    first, second = (env.reset(seed=3)[0] for _ in range(2))
    assert first == second
    envs = SoftmaxBanditVector(4)
    np.testing.assert_array_equal(envs.reset(seed=3)[0], envs.reset(seed=3)[0])
    unseeded = [[env.reset()[0] for _ in range(20)] for env in (SoftmaxBandit(), SoftmaxBandit())]
    assert unseeded[0] != unseeded[1]  # equal once in 64^20


def test_states_are_uniform_and_rewards_have_their_probability():
    """Each of 64 states: 256,000 / 64 = 4,000 ± 63 of the draws. Rewards of arm 3: mean q over states, each ± .00098.

    Bounds at 5.5 standard errors: false failure rate 64 · 4e-8.
    """
    envs, steps, copies = SoftmaxBanditVector(1000, seed=4), 256, 1000
    states, rewards = [envs.reset(seed=0)[0]], []
    for _ in range(steps):
        state, reward, *_ = envs.step(np.full(copies, 3))
        states.append(state)
        rewards.append(reward)
    state, reward = np.stack(states[:-1]), np.stack(rewards)
    share = np.bincount(state.ravel(), minlength=64) / state.size
    assert np.abs(share - 1 / 64).max() < 5.5 * np.sqrt(1 / 64 * 63 / 64 / state.size)
    q = envs.success[state, 3]
    assert abs((reward - q).mean()) < 5.5 * np.sqrt((q * (1 - q)).mean() / q.size)
    right = q == 0.6
    for of_arm, value in ((right, 0.6), (~right, 0.3)):
        assert abs(reward[of_arm].mean() - value) < 5.5 * np.sqrt(value * (1 - value) / of_arm.sum())
    after = np.stack(states[1:])
    assert abs(np.corrcoef(reward.ravel(), after.ravel())[0, 1]) < 5.5 / np.sqrt(reward.size)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 2**31),
    bandit=st.integers(0, 100),
    states=st.integers(1, 20),
    episode=st.integers(1, 7),
    copies=st.integers(1, 4),
)
def test_scalar_and_vector_agree_step_by_step(seed, bandit, states, episode, copies):
    """And with gymnasium's own vector environment, autoresets and masks included."""
    kwargs = {"num_envs": copies, "env": "noisy", "states": states, "seed": bandit, "max_episode_steps": episode}
    ours, theirs = (
        gymnasium.make_vec(NAME, vectorization_mode=mode, **kwargs) for mode in ("vector_entry_point", "sync")
    )
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    rng = np.random.default_rng(seed)
    for begin in (seed, None):
        (one, one_info), (other, other_info) = (envs.reset(seed=begin) for envs in (ours, theirs))
        np.testing.assert_array_equal(one, other)
        assert_same(one_info, other_info)
        for _ in range(20):
            actions = rng.integers(16, size=copies)
            (*one, one_info), (*other, other_info) = (envs.step(actions) for envs in (ours, theirs))
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype
            assert_same(one_info, other_info)


def test_they_agree_beyond_a_block_of_random_numbers():
    one, many = SoftmaxBandit(states=3), SoftmaxBanditVector(2, states=3)
    assert one.reset(seed=11)[0] == many.reset(seed=10)[0][1]
    for step in range(2 * BLOCK + 5):
        state, reward, *_ = one.step(step % 16)
        several, rewards, *_ = many.step(np.full(2, step % 16))
        assert (state, reward) == (several[1], rewards[1])


def test_an_episode_is_truncated_and_never_terminated():
    env = gymnasium.make(NAME, max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    envs = SoftmaxBanditVector(2, env="det", success=[1.0] * 16, max_episode_steps=3)
    envs.reset(seed=0)
    seen = [envs.step(np.zeros(2, int))[1:4] for _ in range(5)]
    assert [x[0].tolist() for x in seen] == [[1, 1], [1, 1], [1, 1], [0, 0], [1, 1]]
    assert [x[2].tolist() for x in seen] == [[False] * 2, [False] * 2, [True] * 2, [False] * 2, [False] * 2]
    assert not any(x[1].any() for x in seen)
    assert gymnasium.spec(NAME).max_episode_steps == gymnasium.make_vec(NAME).unwrapped.max_episode_steps


def test_each_copy_can_have_a_seed_of_its_own():
    envs = SoftmaxBanditVector(3)
    states, _ = envs.reset(seed=[5, 9, 5])
    assert states[0] == states[2] == SoftmaxBandit().reset(seed=5)[0]
    assert states[1] == SoftmaxBandit().reset(seed=9)[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"color": 1}, r"unknown argument 'color'; choose from env, seed, states, arms"),
        ({"env": "nosy"}, "unknown env 'nosy'; did you mean noisy"),
        ({"env": "episodes"}, "length must be 1, not 4: an action here is a whole response"),
        ({"arms": 1}, "arms must be at least 2; got 1"),
        ({"states": 2.5}, r"states must be an integer, not 2\.5"),
        ({"seed": "a"}, "seed must be an integer, not 'a'"),
        ({"seed": -1}, r"seed must be between 0 and 2\^63 - 1, not -1"),
        ({"seed": 2**63}, r"seed must be between 0 and 2\^63 - 1, not 9223372036854775808"),
    ],
)
@pytest.mark.parametrize("made", [SoftmaxBandit, SoftmaxBanditVector])
def test_bad_arguments(made, given, message):
    with pytest.raises(ValueError, match=message):
        made(**given)


def act(env, action):
    env.reset()
    env.step(np.array(action) if isinstance(action, list) else action)


WRONG = {
    "action must be an arm, 0 to 15, not 16": lambda: act(SoftmaxBandit(), 16),
    "action must be an arm, 0 to 15, not -1": lambda: act(SoftmaxBandit(), -1),
    r"action must be an integer, not 0\.5": lambda: act(SoftmaxBandit(), 0.5),
    "actions must be arms, 0 to 15, not 0 to 16": lambda: act(SoftmaxBanditVector(2), [0, 16]),
    "actions must be arms, 0 to 15, not -1 to 0": lambda: act(SoftmaxBanditVector(2), [-1, 0]),
    r"actions must be 2 integers, not float64 of shape \(2,\)": lambda: act(SoftmaxBanditVector(2), [0.0, 1.0]),
    r"actions must be 2 integers, not int64 of shape \(1,\)": lambda: act(SoftmaxBanditVector(2), [0]),
    "seed must be one number or 3, one for each copy, not 2": lambda: SoftmaxBanditVector(3).reset(seed=[1, 2]),
    "num_envs must be at least 1, not 0": lambda: SoftmaxBanditVector(0),
    "max_episode_steps must be at least 1, not 0": lambda: SoftmaxBanditVector(1, max_episode_steps=0),
    "unknown render mode 'ansi'; choose from rgb_array, or None": lambda: SoftmaxBandit(render_mode="ansi"),
    "render_mode must be None, not 'rgb_array': copies are not drawn": lambda: gymnasium.make_vec(
        NAME, num_envs=2, render_mode="rgb_array"
    ),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_what_is_wrong_is_named(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_reset_comes_first():
    for call, name in (
        (lambda: SoftmaxBandit().step(0), "step"),
        (lambda: SoftmaxBanditVector(2).step(np.zeros(2, int)), "step"),
        (SoftmaxBandit(render_mode="rgb_array").render, "render"),
    ):
        with pytest.raises(ResetNeeded, match=f"call reset before {name}"):
            call()


def test_label_noise_is_in_the_reward_and_not_in_success():
    """Arms that always pay, flipped with probability .2: mean reward .8, ± .0025 over 25,600 steps."""
    envs = SoftmaxBanditVector(100, success=[1.0] * 16, label_noise=0.2)
    _, info = envs.reset(seed=0)
    assert (info["success"] == 1).all()
    rewards = np.stack([envs.step(np.zeros(100, int))[1] for _ in range(256)])
    assert rewards.mean() == pytest.approx(0.8, abs=5 * 0.0025)
    one = SoftmaxBandit(success=[1.0] * 16, label_noise=0.2)
    one.reset(seed=0)
    assert [one.step(0)[1] for _ in range(256)] == rewards[:, 0].tolist()


def test_render_draws_the_observed_state_and_the_last_action():
    env = SoftmaxBandit(env="det", states=8, render_mode="rgb_array")
    env.reset(seed=0)
    pictures = [env.render()]
    env.step(3)
    pictures += [env.render(), env.render()]
    env.policy = np.full((8, 16), 1 / 16)
    pictures.append(env.render())
    first, second, again, other = pictures
    assert first.shape == (400, 640, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(second, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, other)


def test_render_needs_its_mode_and_changes_nothing():
    plain, drawn = SoftmaxBandit(), SoftmaxBandit(render_mode="rgb_array")
    assert plain.reset(seed=1)[0] == drawn.reset(seed=1)[0]
    assert plain.render() is None
    for arm in range(3):
        assert drawn.render() is not None
        assert plain.step(arm)[:2] == drawn.step(arm)[:2]


def test_importing_the_environment_imports_no_matplotlib():
    code = "import sys, toybandit.gym_env as g; g.SoftmaxBandit().reset(); print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.long
@pytest.mark.parametrize(("env", "reached"), [("det", 0.95), ("noisy", 0.57)])
def test_ppo_of_stable_baselines3_learns(env, reached):
    """From .25 and .375, those of the uniform policy; the best possible are 1 and .6."""
    pytest.importorskip("stable_baselines3")
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/ppo_bandit.py"))
    before, after = example["learn"](env, seed=0)
    assert before < 0.4
    assert after > reached


@pytest.mark.parametrize("make", [gymnasium.make, partial(gymnasium.make_vec, num_envs=2)])
def test_options_of_reset_are_refused(make):
    env = make(NAME)
    env.reset(options={})
    with pytest.raises(ValueError, match="reset takes no options, got state"):
        env.reset(options={"state": 1})
