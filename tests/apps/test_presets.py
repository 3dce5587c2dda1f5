"""Presets: every one is a state that can be reached, says something true of the numbers, and is recognised."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer import simulations
from explorer.controls import query
from explorer.presets import PRESETS
from explorer.views import PAGES
from toybandit import Config

ENVIRONMENT = {"states": 16, "rollouts": 80, "passes": 4, "lr": 1.0, "group": 16}


def entropy(controller: str, seeds: int = 8, **changes) -> np.ndarray:
    return simulations.run(Config(controller=controller, **{**ENVIRONMENT, **changes}), tuple(range(seeds))).entropy


def test_there_are_eight_and_more_on_pages_that_exist():
    assert len(PRESETS) >= 8
    assert {preset.page for preset in PRESETS.values()} <= set(PAGES)


def shown(path: str) -> None:
    from explorer.views import PAGES

    PAGES[path].page()


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_state_without_an_error(name):
    preset = PRESETS[name]
    app = AppTest.from_function(shown, default_timeout=60, kwargs={"path": preset.page})
    for key, value in query(preset.query).items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert not app.error
    assert app.get("vega_lite_chart")
    if preset.page == "playground":
        assert any(preset.notice in info.value for info in app.info)


def test_collapse_is_fastest_at_first():
    h = entropy("grpo").mean(0)
    assert h[0] - h[20] > 0.5 * (h[0] - h[-1])
    assert h[-1] < 0.5 * h[0]


def test_clip_higher_ends_above_the_default():
    changes = {"passes": 8, "states": 8, "rollouts": 60}
    assert entropy("clip_higher", **changes)[:, -1].mean() > entropy("grpo", **changes)[:, -1].mean()


def test_positives_fall_below_and_negatives_stay_above():
    assert (
        entropy("positive_only")[:, -1].mean() < entropy("grpo")[:, -1].mean() < entropy("negative_only")[:, -1].mean()
    )


def test_no_signal_falls_all_the_same():
    h = entropy("grpo", env="pure").mean(0)
    assert h[-1] < 0.8 * h[0]


def test_the_thermostat_holds():
    config = Config(controller="thermostat", target=0.8, **ENVIRONMENT)
    held = simulations.run(config, tuple(range(8))).entropy[:, -20:].mean()
    assert held == pytest.approx(0.8, abs=0.03)


def test_without_authority_entropy_falls_through_the_target():
    config = Config(
        env="on", controller="entropic", target=0.8, controller_args={"tau": 0.0},
        states=16, rollouts=120, passes=1, lr=2.0, group=16,
    )  # fmt: skip
    assert simulations.run(config, tuple(range(8))).entropy[:, -1].mean() < 0.4
