"""The search for an environment: it finds one like a run, the same each time, and keeps what is fixed."""

import warnings

import numpy as np
import pytest

from entrostat import CompositionWarning
from toybandit import Config, simulate
from toybandit.forecast.fit import LOGITS, draw, fit, like, vary
from toybandit.forecast.observed import Observed, thirds, windows

FIXED = {"pool": 64, "held_out": 16, "rollouts": 24}


def run_of(config: Config) -> Observed:
    run = simulate(config, range(4))
    assert run.held_out is not None
    return Observed(
        steps=24, total=24, k=8,
        entropy=windows(run.entropy[:, :24].mean(0), 8), reward=thirds(run.reward.mean(0)),
        evaluated=np.array([0.0, 1.0]),
        mean=run.held_out.pass_at(1).mean(0)[[0, -1]], passed=run.held_out.pass_at(8).mean(0)[[0, -1]],
    )  # fmt: skip


SEEN = run_of(Config(env="features", lr=0.3, **FIXED))


@pytest.mark.slow
def test_a_search_comes_near_and_repeats() -> None:
    few, many = fit(SEEN, tries=5, fixed=FIXED), fit(SEEN, tries=60, fixed=FIXED)
    assert many.distance < few.distance
    blind = [fit(SEEN, tries=1, seed=seed, fixed=FIXED).distance for seed in range(9)]
    assert many.distance < 0.2 * np.median(blind)
    assert fit(SEEN, tries=60, fixed=FIXED) == many


def test_a_search_says_nothing_of_its_own_simulations() -> None:
    """A policy so sharp that tokens one after another are certain; in a run they would look like padding."""
    sharp = {"arms": 4, "features": 8, "length": 1, "coupling": 0.0, "logit_std": 9.0, "skill": 4.0, "right_arms": 1}
    config = {**FIXED, **sharp, "predictable": 0.0, "right_tilt": 0.0, "lr": 0.5, "branching": 1}
    with pytest.warns(CompositionWarning, match="log-probability of exactly 0"):
        simulate(Config(env="features", **config), range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(SEEN, tries=1, fixed=config)


def test_what_is_fixed_stays() -> None:
    found = fit(SEEN, tries=8, fixed={**FIXED, "predictable": 0.5, "length": 2})
    assert (found.config.predictable, found.config.length, found.config.pool) == (0.5, 2, 64)


def test_nothing_that_can_be_simulated_is_an_error() -> None:
    with pytest.raises(ValueError, match="no environment could be simulated"):
        fit(SEEN, tries=2, fixed={**FIXED, "logit_std": 1e308})


def test_numbers_that_do_not_go_together_are_named() -> None:
    with pytest.raises(ValueError, match="pool must be a multiple"):
        fit(SEEN, tries=2, fixed={**FIXED, "pool": 65})


def test_numbers_stay_in_their_box_and_arms_suffice_for_the_entropy() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        numbers = draw(random, 2.5)
        assert np.log(numbers["arms"]) > 2.5
        for _ in range(5):
            numbers = vary(numbers, random, 2.5)
            assert LOGITS[0] <= numbers["logit_std"] <= LOGITS[1]
            assert 0 <= numbers["predictable"] <= 1
            Config(env="features", **numbers)


def test_a_long_run_is_told_in_fewer_rollouts() -> None:
    long = Observed(**{**vars(SEEN), "total": 5000})
    assert like(long, {}).rollouts == 160
    assert like(SEEN, {}).rollouts == 24
