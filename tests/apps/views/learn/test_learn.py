"""Tour: every step runs, and its runs differ as its text says."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.shared.presets import PRESETS
from entrostat_app.views.learn import learn


def shown() -> None:
    from entrostat_app.views.learn import learn

    learn.page()


@pytest.mark.parametrize("number", range(1, len(learn.STEPS) + 1))
def test_every_step(number):
    app = AppTest.from_function(shown, default_timeout=60)
    app.query_params["step"] = str(number)
    app.run()
    assert not app.exception
    assert learn.STEPS[number - 1].title in app.header[0].value


def test_next_and_back():
    app = AppTest.from_function(shown, default_timeout=60).run()
    assert app.header[0].value.startswith("1.")
    app.button[1].click().run()
    assert app.header[0].value.startswith("2.")
    app.button[0].click().run()
    assert app.header[0].value.startswith("1.")


def test_steps_lead_to_presets():
    assert len(learn.STEPS) == 6
    for step in learn.STEPS:
        assert step.goes_on in PRESETS
        assert all(name in PRESETS or name in learn.SIDES or name == learn.HELD for name in step.runs.values())


def test_grpo_stays_in_the_trap_and_a_falling_target_finds_the_way_out():
    plain, held = learn.simulate(learn.STEPS[0], 2.4).values()
    assert plain.reward[:, -1].mean() == pytest.approx(0.5, abs=0.02)
    assert held.reward[:, -1].mean() > 0.9
    assert held.entropy[:, -1].mean() < 0.2
    assert plain.pass_at(64)[:, -1].mean() < 0.05 < plain.pass_at(64)[:, 0].mean()
    low = learn.simulate(learn.STEPS[0], 0.4)[learn.HELD]
    assert plain.reward[:, -1].mean() < low.reward[:, -1].mean() < held.reward[:, -1].mean() - 0.2
    text = learn.answer({"GRPO": plain, learn.HELD: held})
    assert f"reward of {plain.reward[:, -1].mean():.2f}" in text
    assert f"ends at {held.reward[:, -1].mean():.2f}" in text


def test_the_slider_moves_the_target():
    app = AppTest.from_function(shown, default_timeout=60).run()
    before = app.expander[0].markdown[0].value
    app.slider(key="start").set_value(2.4).run()
    assert not app.exception
    assert app.expander[0].markdown[0].value != before
    assert app.radio[0].value is None


def late(step: int) -> dict[str, float]:
    """Return the mean entropy of the last 20 rollouts of each run."""
    return {name: float(run.entropy[:, -20:].mean()) for name, run in learn.simulate(learn.STEPS[step - 1]).items()}


def test_clip_higher_ends_higher():
    found = late(2)
    assert found["clip-higher .28"] > found["clip .2"] + 0.02


def test_positives_fall_and_negatives_stay():
    found = late(3)
    assert found["positives"] < found["both"] < found["negatives"]


def test_p_leaves_an_error_and_pi_does_not():
    found = late(4)
    assert found["P control"] < 0.8 - 0.1
    assert found["PI control"] == pytest.approx(0.8, abs=0.05)


def test_windup_shoots_past():
    found = learn.simulate(learn.STEPS[4])
    least = {name: float(run.entropy.min(-1).mean()) for name, run in found.items()}
    assert least["sum goes on"] < least["sum stops"] - 0.1


def test_the_theorem_fails():
    found = learn.simulate(learn.STEPS[5])["PI, on-policy, τ = 0"]
    assert found.entropy[:, -1].mean() < 0.4
    np.testing.assert_allclose(found.metrics["entropic/alpha"][:, -1], -1.0)
