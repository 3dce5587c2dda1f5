"""Training curves as tidy tables."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.reproduce import FULL, QUICK, Effort
from toybandit.reproduce.curves import curves, headline, size, stack, sweep, train

TINY = Effort(runs=2, scale=0)
SMALL = {"states": 4, "rollouts": 9}


def test_size_grows_with_effort():
    assert size(FULL) == {"states": 48, "rollouts": 150}
    assert size(QUICK) == {"states": 24, "rollouts": 80}


def test_train_takes_seeds_and_changes():
    run = train(TINY, env="on", **SMALL)
    np.testing.assert_array_equal(run.entropy, simulate(Config(env="on", **SMALL), [0, 1]).entropy)


def test_a_sweep_is_the_runs_one_by_one():
    together = sweep(TINY, "coef", (0, 0.1), controller="entropy_bonus", **SMALL)
    assert list(together) == ["coef = 0", "coef = 0.1"]
    for coef, run in zip((0.0, 0.1), together.values(), strict=True):
        alone = train(TINY, controller="entropy_bonus", controller_args={"coef": coef}, **SMALL)
        np.testing.assert_allclose(run.entropy, alone.entropy, rtol=1e-12)
        assert run.seeds == (0, 1)


def test_a_sweep_keeps_other_settings():
    runs = sweep(TINY, "kl_cov.beta", (1, 10), controller="kl_cov", controller_args={"k": 0.5}, **SMALL)
    alone = train(TINY, controller="kl_cov", controller_args={"k": 0.5, "beta": 10.0}, **SMALL)
    np.testing.assert_allclose(runs["beta = 10"].entropy, alone.entropy, rtol=1e-12)


def test_curves_are_means_with_bands():
    run = train(TINY, controller="entropic", target=0.6, **SMALL)
    table = curves({"a": run, "long name": run}, "entropic/alpha")
    assert list(table["series"]) == ["a"] * 9 + ["long name"] * 9
    np.testing.assert_array_equal(table["rollout"], [*range(9), *range(9)])
    np.testing.assert_array_equal(table["entropy"][:9], run.entropy[:, :9].mean(0))
    np.testing.assert_allclose(table["reward_low"][9:], run.reward.mean(0) - np.abs(np.diff(run.reward, axis=0)[0]))
    alpha = run.metrics["entropic/alpha"]  # of two runs, two standard errors are their difference
    np.testing.assert_allclose(table["entropic/alpha_high"][:9], alpha.mean(0) + np.abs(alpha[1] - alpha[0]))


def test_stack_repeats_what_is_one_for_the_row():
    table = stack([{"series": "x", "y": [1, 2]}, {"series": "yz", "y": 3}])
    assert table["series"].tolist() == ["x", "x", "yz"]
    assert table["y"].tolist() == [1, 2, 3]


def test_headline_is_the_last_third():
    run = train(TINY, **SMALL)
    found = headline({"x": run})
    assert list(found) == ["x/entropy", "x/reward"]
    assert found["x/entropy"] == pytest.approx(run.entropy[:, 7:].mean(), rel=1e-14)
    assert found["x/reward"].error == pytest.approx(np.abs(np.diff(run.reward_held))[0] / 2)
    assert found["x/reward"] == pytest.approx(run.reward[:, 6:].mean(), rel=1e-14)
