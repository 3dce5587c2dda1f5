"""Presets: every one can be reached, its note is true of the numbers, and the page recognises it."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from entrostat_app.menu import PAGES, SCRIPT
from entrostat_app.shared import bandit, simulations
from entrostat_app.shared.controls import query
from entrostat_app.shared.presets import PRESETS
from entrostat_app.views.playground.playground import VIEW, VIEWS

SEEDS = tuple(range(8))


def entropy(name: str, **changes) -> np.ndarray:
    """Return entropies of the preset's runs, (seeds, rollouts + 1)."""
    return simulations.run(bandit.config_at({**PRESETS[name].query, **changes}), SEEDS).entropy


def test_there_are_eight_and_more_on_pages_that_exist():
    assert len(PRESETS) >= 8
    assert {preset.page for preset in PRESETS.values()} <= set(PAGES)


def shown(path: str) -> None:
    from entrostat_app.menu import PAGES

    PAGES[path].draw()


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_state_without_an_error(name):
    preset = PRESETS[name]
    app = AppTest.from_function(shown, default_timeout=60, kwargs={"path": preset.page})
    for key, value in {**query(preset.query), VIEW: VIEWS[1]}.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert not app.error
    assert app.get("vega_lite_chart")
    if preset.page == "playground":
        assert any(preset.notice in info.value for info in app.info)


def test_pass_at_64_falls_in_the_trap_and_rises_under_a_thermostat():
    trap = PRESETS["trap"].query
    plain, held = (
        simulations.run(bandit.config_at({**trap, **changes}), SEEDS)
        for changes in ({}, {"controller": ("thermostat",), "target": 1.2})
    )
    assert plain.pass_at(64)[:, -1].mean() < 0.05 < plain.pass_at(64)[:, 0].mean() - 0.05
    assert plain.reward[:, -1].mean() == pytest.approx(0.5, abs=0.02)
    assert held.pass_at(64)[:, -1].mean() > 0.5


def test_collapse_is_fastest_at_first():
    h = entropy("collapse").mean(0)
    assert h[0] - h[15] > 0.5 * (h[0] - h[-1])
    assert h[-1] < 0.5 * h[0]


def test_clip_higher_ends_above_the_default():
    assert entropy("clip-higher")[:, -1].mean() > entropy("clip-higher", controller=())[:, -1].mean()


def test_the_thermostat_follows_a_falling_target():
    target = np.linspace(1.4, 0.5, 61)
    h = entropy("anneal").mean(0)
    assert np.abs(h[21:] - target[20:60]).max() < 0.05
    slower = entropy("anneal", **{"thermostat.k": 0.1}).mean(0)
    assert (slower[21:] - target[20:60]).min() > 0.1


def test_positives_fall_below_and_negatives_stay_above():
    both = entropy("collapse")[:, -1].mean()
    assert entropy("positives-only")[:, -1].mean() < both < entropy("negatives-only")[:, -1].mean()


def test_no_signal_falls_all_the_same():
    h = entropy("no-signal").mean(0)
    assert h[-1] < 0.8 * h[0]


def test_groups_that_agree_stop_learning():
    noisy, h = entropy("collapse").mean(0), entropy("deterministic", rollouts=200).mean(0)
    assert noisy[0] - noisy[15] < 0.7 * (h[0] - h[15])
    assert abs(h[-1] - h[-20]) < 0.02


def test_the_thermostat_holds():
    assert entropy("thermostat")[:, -20:].mean() == pytest.approx(0.8, abs=0.03)


def test_p_leaves_an_error_and_pi_none():
    assert entropy("p-control")[:, -20:].mean() < 0.7
    assert entropy("pi-control")[:, -20:].mean() == pytest.approx(0.8, abs=0.05)


def test_windup_shoots_past():
    stopped = entropy("windup", **{"entropic.anti_windup": True})
    assert entropy("windup").min(-1).mean() < stopped.min(-1).mean() - 0.1


def test_without_authority_entropy_falls_through_the_target():
    assert entropy("no-authority")[:, -1].mean() < 0.4


def visit(app: AppTest, path: str) -> dict[str, object]:
    """Go to a page as the menu does, or to the playground; return the query parameters of its URL."""
    app._page_hash = calc_hash(path)
    app.query_params.clear()
    if not path:
        app.query_params[VIEW] = VIEWS[1]
    app.run()
    assert not app.exception
    return dict(app.query_params)


def click(app: AppTest, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()


OWN = ("passes", "states", "rollouts")


@pytest.mark.slow
@pytest.mark.parametrize("pressed", ["Reset", "Deterministic rewards"])
def test_what_one_page_has_by_default_stays_there(pressed):
    app = AppTest.from_file(SCRIPT, default_timeout=60)
    visit(app, "compare")
    click(app, pressed)
    assert [app.slider(key=key).value for key in OWN] == [2, 8, 40]
    visit(app, "")
    assert [app.slider(key=key).value for key in OWN] == [4, 16, 60]
    click(app, "Reset")
    visit(app, "compare")
    assert [app.slider(key=key).value for key in OWN] == [2, 8, 40]


@pytest.mark.slow
def test_what_was_moved_goes_along():
    app = AppTest.from_file(SCRIPT, default_timeout=60)
    visit(app, "")
    app.slider(key="lr").set_value(1.5).run()
    visit(app, "compare")
    assert app.slider(key="lr").value == 1.5
    assert app.slider(key="passes").value == 2


@pytest.mark.slow
def test_reset_and_presets_leave_the_controls_of_other_pages():
    app = AppTest.from_file(SCRIPT, default_timeout=60)
    visit(app, "compare")
    app.slider(key="seeds").set_value(2).run()
    visit(app, "")
    click(app, "Positives only")
    assert any(PRESETS["positives-only"].notice in info.value for info in app.info)
    click(app, "Reset")
    visit(app, "compare")
    assert app.slider(key="seeds").value == 2
