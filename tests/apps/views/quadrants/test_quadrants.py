"""Quadrants: frames and texts of its pictures, and the page in AppTest."""

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.views.quadrants import quadrant_pictures, quadrants, token_plans
from toybandit import Config
from toybandit.rollout_tokens import by_quadrant
from toybandit.token_surface import FORMULAS

CONFIG = Config(states=8, passes=3, rollouts=12, lr=1.0)
UPDATE = token_plans.update_of(CONFIG, 0, 4, -1)
TOKENS = token_plans.tokens_of(UPDATE)


def app(**state: Any) -> AppTest:
    def script() -> None:
        from entrostat_app.views.quadrants import quadrants

        quadrants.page()

    found = AppTest.from_function(script, default_timeout=60)
    for key, value in state.items():
        found.query_params[key.replace("__", ".")] = value
    return found.run()


def test_the_surface_has_possible_cells_only_and_both_boundaries():
    frame = quadrant_pictures.surface_picture("Ω", 16, TOKENS).frame
    cells = frame[frame["part"] == "cell"]
    assert 0.4 < len(cells) / np.prod(quadrant_pictures.CELLS) < 0.9
    p, h = (cells["p"] + cells["p2"]) / 2, (cells["entropy"] + cells["entropy2"]) / 2
    np.testing.assert_allclose(cells["flow"], -(1 - p) * (np.log(p) + h), rtol=1e-9)
    steer, exact = (frame[frame["part"] == name] for name in quadrant_pictures.BOUNDARIES)
    np.testing.assert_allclose(steer["p"], np.exp(-steer["entropy"]))
    assert (exact["p"] > np.exp(-exact["entropy"])).all()
    assert frame.loc[frame["part"] == "token", "tokens"].sum() == TOKENS.p.size
    assert "token" not in set(quadrant_pictures.surface_picture("Ω", 16, None).frame["part"])


def test_every_token_with_an_advantage_is_in_the_scatter_plot():
    frame = quadrant_pictures.token_frame(TOKENS, exact=False)
    assert frame["tokens"].sum() == (TOKENS.advantage != 0).sum()
    assert frame.loc[frame["kept"] == quadrant_pictures.STOPPED, "tokens"].sum() == (~TOKENS.kept).sum()
    likely = frame["quadrant"].str.contains(", likely")
    assert ((frame["relative"] > 1) == likely).all()
    up = frame["quadrant"].str.contains("A > 0")
    exact = quadrant_pictures.token_frame(TOKENS, exact=True)
    lowers = exact["quadrant"].str.match("I:|III:")
    assert ((exact["flow"] < 0) == lowers).all()
    assert ((frame["advantage"] > 0) == up).all()


def test_controllers_side_by_side():
    named = [("run", TOKENS), ("positive_only", token_plans.tokens_under("positive_only", UPDATE, None))]
    weights = token_plans.wide(token_plans.compared(named, "mean weight", exact=False), "mean weight")
    assert weights["controller"].tolist() == ["run", "positive_only"]
    assert weights.iloc[1][["I", "II", "III", "IV"]].tolist() == [1, 1, 0, 0]
    change = token_plans.wide(token_plans.compared(named, "entropy change", exact=True), "entropy change")
    assert change["sum"].iloc[0] == pytest.approx(1000 * TOKENS.planned.mean())
    assert change["III"].iloc[0] < 0 < change["II"].iloc[0]
    kept = token_plans.compared(named, "kept share", exact=False).set_index(["controller", "quadrant"])["value"]
    assert kept["run", "III"] == by_quadrant(TOKENS)["III"].kept < 1


def test_a_target_is_passed_on():
    name = "entropic (tau=0.5, ki=0.05)"
    low, high = (token_plans.tokens_under(name, UPDATE, target) for target in (0.2, 2.0))
    first = (TOKENS.advantage > 0) & (TOKENS.p > 0.5)
    assert (low.weight[first] > 1).all()
    assert (high.weight[first] < 1).all()


def test_a_target_of_zero_is_one():
    name = "entropic (tau=0.5, ki=0.05)"
    zero, least, none = (token_plans.tokens_under(name, UPDATE, target).weight for target in (0.0, 1e-9, None))
    np.testing.assert_allclose(zero, least, atol=1e-6)
    assert np.abs(zero - none).max() > 0.01


def test_no_command_is_said_to_give_the_bars_of_other_controllers():
    found = app(states="4")
    found.session_state["quadrants-controllers-export"] = True
    found.run()
    assert not found.exception
    assert not found.code
    assert {box.label for box in found.expander} == {"Export"}


def test_words():
    between = (TOKENS.likely & ~TOKENS.beyond).mean()
    assert f"{between:.1%} lie between" in quadrants.told_surface("exact", TOKENS)
    assert "By OPEFO, the sign switches at e^(−H)" in quadrants.told_surface("OPEFO", None)
    counts = by_quadrant(TOKENS)
    assert f"Tokens: I {counts['I'].tokens}, II {counts['II'].tokens}" in quadrants.told_tokens(TOKENS, exact=False)
    assert "Each token does what its quadrant says" in quadrants.told_tokens(TOKENS, exact=True)
    words = quadrants.told_controllers([("run", TOKENS)], exact=False)
    assert f"{1000 * TOKENS.planned.mean():+z.1f} thousandths" in words
    agreed = token_plans.tokens_of(
        token_plans.update_of(Config(states=1, group=2, rollouts=1, reward_right=1.0, reward_wrong=1.0), 0, 0, 0)
    )
    assert "all advantages are 0" in quadrants.told_tokens(agreed, exact=False)


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_formula(formula):
    found = app(q__formula=formula, states="4")
    assert not found.exception
    assert not found.error
    assert len(found.get("vega_lite_chart")) == 3


@pytest.mark.parametrize(
    "state",
    [
        {"env": "episodes", "states": "2"},
        {"env": "det", "q__t": "79"},
        {"controller": "thermostat", "target": "0.8", "q__measure": "entropy change", "q__cut": "p*"},
        {"q__axis": "p", "q__update": "first", "q__measure": "kept share"},
        {"rollouts": "20", "q__t": "60"},
    ],
)
def test_states(state):
    found = app(**state)
    assert not found.exception
    assert not found.error


def test_a_move_changes_the_numbers():
    found = app(states="4")
    before = [info.value for info in found.info]
    found.slider(key="q.t").set_value(30).run()
    assert [info.value for info in found.info] != before


def test_bad_input_is_one_line_and_the_surface_stays():
    found = app(env="exact")
    assert not found.exception
    (error,) = found.error
    assert "'exact'" in error.value
    assert len(found.get("vega_lite_chart")) == 1


def test_a_controller_that_cannot_plan_for_these_tokens_is_named():
    found = app(states="4", q__with=["truncated_entropy_bonus", "steer"])
    assert not found.exception
    (error,) = found.error
    assert error.value.startswith("truncated_entropy_bonus: ")
    assert "steer" in found.dataframe[0].value["controller"].tolist()


def test_a_slow_run_waits_to_be_asked_for():
    found = app(rollouts="400", passes="16", states="4", q__t="100")
    assert not found.exception
    assert len(found.get("vega_lite_chart")) == 1
    (button,) = (button for button in found.button if button.label == "Simulate 101 rollouts for their tokens")
    button.click().run()
    assert len(found.get("vega_lite_chart")) == 3
    found.selectbox(key="q.measure").set_value("kept share").run()
    assert len(found.get("vega_lite_chart")) == 3


def test_a_mini_batch_of_features():
    found = app(env="features", q__t="3")
    assert not found.exception
    assert not found.error
