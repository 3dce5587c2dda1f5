"""Cached simulations: which run live, which are the same run, and which wait for a click."""

from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.shared import bandit, simulations
from toybandit import Config, simulate


def test_the_first_page_is_live_and_a_long_run_is_not():
    first = Config(**{control.key: control.default for control in bandit.ENVIRONMENT})
    assert simulations.is_live([first])
    assert not simulations.is_live([replace(first, rollouts=2000)])
    assert not simulations.is_live([replace(first, states=64, group=64)], runs=64)
    assert not simulations.is_live([first] * 5)
    assert simulations.is_live([])


def test_identity_has_everything_that_a_run_depends_on():
    config = Config(states=4)
    same = Config(states=4, lr=config.environment().lr)
    assert simulations.identity(config) == simulations.identity(same)
    others = [replace(config, lr=0.1), replace(config, controller="steer"), replace(config, controller_args={"x": 1})]
    assert len({simulations.identity(c) for c in [config, *others]}) == 4


def test_the_numbers_are_those_of_the_simulator():
    config = Config(states=2, rollouts=3, passes=2)
    ours, plain = simulations.run(config, (1, 2)), simulate(config, (1, 2))
    np.testing.assert_array_equal(ours.entropy, plain.entropy)
    assert ours.policies is not None
    assert ours.predicted is not None
    assert simulations.run(Config(states=2, rollouts=3, passes=2), (1, 2)) is ours


def slow() -> None:
    import streamlit as st

    from entrostat_app.shared import simulations
    from toybandit import Config

    config = Config(states=1, rollouts=1200, passes=1, group=4, lr=0.1)
    found = simulations.run_or_ask([config], (0,), ["grpo"])
    st.text("waiting" if found is None else f"{found[0].entropy.shape}")


def test_slow_ones_wait_for_a_click_and_are_kept():
    app = AppTest.from_function(slow, default_timeout=60).run()
    assert app.text[0].value == "waiting"
    assert "1,200 rollouts" in app.button[0].label
    app.button[0].click().run()
    assert app.text[0].value == "(1, 1201)"
    app.run()
    assert app.text[0].value == "(1, 1201)"


def refused() -> None:
    import streamlit as st

    from entrostat_app.shared import simulations
    from toybandit import Config

    try:
        simulations.run_or_ask([Config(env="exact", controller="unlikeliness", rollouts=5)], (0,), ["unlikeliness"])
    except ValueError as error:
        st.error(str(error))


def test_a_controller_that_cannot_run_is_refused_in_a_line():
    app = AppTest.from_function(refused, default_timeout=60).run()
    assert not app.exception
    assert len(app.error) == 1
    assert "\n" not in app.error[0].value


def test_the_bound_counts_updates_of_mini_batches_and_tokens_once():
    config = bandit.config_at({"env": "features", "f.rollouts": 400})
    assert simulations.is_live([config])
    assert not simulations.is_live([replace(config, mini_batches=4)])
    nodes = replace(config, length=12, rollouts=200)  # 64 tokens and 48 arms for each of 32 · 12 nodes of a prompt
    most = simulations.LIVE_NUMBERS // (200 * 32 * 12 * (8 + 4))
    assert simulations.is_live([nodes], most)
    assert not simulations.is_live([nodes], most + 1)


@pytest.mark.parametrize("runs", [1, 8])
def test_the_bound_counts_runs(runs):
    config = Config(states=64, group=48, arms=16, passes=10, rollouts=80)
    assert simulations.is_live([config], runs) == (10 * 80 * 64 * (48 + 16) * runs <= simulations.LIVE_NUMBERS)
