"""Control room: its numbers, pictures and texts, and the page in AppTest."""

import re
import shlex

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat.numbers import pi_control
from entrostat_app.views.control_room import control_room, loop_pictures, loop_words
from entrostat_app.views.control_room.loop import Bandit, Loop, errors_of, ideal_gains, overshoot, plant, run
from toybandit.local_plant import LocalPlant

LOOP = Loop(g=0.1, kp=2.8, ki=0.2, d=-0.04)
EXACT = Bandit(env="exact", target=1.0, lr=2.0, tau=0.5, seed=0)


def app(**state: str) -> AppTest:
    def script() -> None:
        from entrostat_app.views.control_room import control_room

        control_room.page()

    found = AppTest.from_function(script, default_timeout=60)
    for key, value in state.items():
        found.query_params[f"pi.{key}"] = value
    return found.run()


def test_why_a_loop_is_unstable():
    gains = {"g": 0.5}
    assert loop_words.why_unstable(Loop(kp=1.0, ki=0.2, **gains)) is None
    assert "g·Kp is 0" in loop_words.why_unstable(Loop(kp=0.0, ki=0.2, **gains))
    assert "d/(g·Kp) = -0.20" in loop_words.why_unstable(Loop(kp=1.0, ki=0.0, d=-0.1, **gains))
    assert "g·Kp = 2.50 is not below 2" in loop_words.why_unstable(Loop(kp=5.0, ki=0.2, **gains))
    assert "2·g·Kp + g·Ki = 4.50 is not below 4" in loop_words.why_unstable(Loop(kp=3.0, ki=3.0, **gains))


@pytest.mark.parametrize("s", [0.0, 0.3, 1.9, 2.1])
@pytest.mark.parametrize("c", [0.0, 0.1, 3.6, 4.2])
def test_a_reason_is_given_exactly_where_the_loop_is_not_stable(s, c):
    loop = Loop(g=0.5, kp=s / 0.5, ki=c / 0.5)
    assert (loop_words.why_unstable(loop) is None) == bool(pi_control.stable(0.5, loop.kp, loop.ki))


def test_settling_and_overshoot():
    errors = np.array([1.0, 0.2, -0.3, 0.04, 0.0])
    assert loop_words.settles(errors, 0.05) == "3 steps"
    assert loop_words.settles(errors[:3], 0.05) == "never"
    assert overshoot(errors) == pytest.approx(0.3)


def test_words_on_poles():
    assert "Poles at 0.9 and 0.8" in loop_words.poles(LOOP)
    assert "22 steps to decay to a tenth" in loop_words.poles(LOOP)
    assert "0.70 ± 0.33i" in loop_words.poles(Loop(g=0.1, kp=4.0, ki=2.0))
    assert "not inside the unit circle" in loop_words.poles(Loop(g=0.1, kp=20.5, ki=0.2))
    assert "changes sign in every step" in loop_words.poles(Loop(g=0.1, kp=15.0, ki=1.0))
    assert "6.9 times as strong" in loop_words.stability(LOOP)


def test_the_stability_picture_is_the_triangle_with_the_loop_in_it():
    frame = loop_pictures.stability(LOOP).frame
    cells = frame[frame["part"] == "cell"]
    assert (2 * cells["s"] + cells["c"] < 4.1).all()
    assert len(cells) == pytest.approx(0.5 * loop_pictures.CELLS**2, rel=0.1)
    assert cells["slower"].between(0, 1).all()
    here = frame[frame["part"] == loop_pictures.HERE]
    assert (float(here["s"].iloc[0]), float(here["c"].iloc[0])) == pytest.approx((0.28, 0.02))
    onset = frame[frame["part"] == loop_pictures.BORDERS[1]]
    np.testing.assert_allclose((2 - onset["s"] - onset["c"]) ** 2, 4 * (1 - onset["s"]), atol=1e-9)  # equal poles


def test_what_diverges_is_drawn_as_far_as_it_is_in_the_picture():
    errors = loop_pictures.drawable(np.array([1.0, -4.0, 9.0, 0.5]))
    assert errors[:2].tolist() == [1.0, -4.0]
    assert np.isnan(errors[2:]).all()
    frame = loop_pictures.step_panels(Loop(g=0.1, kp=25.0, ki=5.0, alpha_max=1e9))[0].frame
    assert frame["value"].abs().max() <= 5.0


def test_the_bandit_starts_at_the_initial_error_and_linear_theory_follows_it():
    trajectory = run(EXACT.config(LOOP), EXACT.seeds)
    errors = errors_of(trajectory)[0]
    assert errors[0] == pytest.approx(LOOP.error, abs=1e-6)
    found = plant("exact", 2.0, 0.5, 1.0)
    linear = LOOP.in_plant(found).response().error.numpy()
    assert np.abs(errors - linear)[20:].max() < 0.02
    words = loop_words.bandit(trajectory, LOOP.in_plant(found))
    assert f"±0.05 nats: {loop_words.settles(errors, 0.05)};" in words
    assert f"by theory {linear[-20:].mean():+z.3f}" in words


def test_no_grip_is_said():
    bandit = Bandit(env="exact", target=1.0, lr=2.0, tau=0.0, seed=0)
    found = plant("exact", 2.0, 0.0, 1.0)
    trajectory = run(bandit.config(LOOP), bandit.seeds)
    assert "hardly any effect" in loop_words.bandit(trajectory, LOOP.in_plant(found))
    assert ideal_gains(LocalPlant(gain=-0.01, drift=0.0)) == (None, None)


def test_windup_costs_more_without_anti_windup():
    loop = Loop(g=0.1, kp=2.8, ki=0.5, d=-0.04, error=1.0, alpha_max=0.6)
    found = {name: control_room.linear_windup(loop, on) for name, on in control_room.WAYS.items()}
    stops, goes = (overshoot(way["Error e (nats)"][0]) for way in found.values())
    assert goes > 3 * stops
    words = loop_words.windup({name: way["Error e (nats)"][0] for name, way in found.items()})
    assert f"{stops:.3f} nats when the sum stops, and by {goes:.3f}" in words
    assert max(found["sum goes on"]["Sum of errors (nats)"][0]) > 2 * max(found["sum stops"]["Sum of errors (nats)"][0])


def test_no_policy_has_that_entropy():
    with pytest.raises(ValueError, match="a policy of this environment has an entropy of"):
        Bandit(env="noisy", target=3.0, lr=1.0, tau=0.5, seed=0).config(LOOP)


@pytest.mark.parametrize("section", control_room.SECTIONS)
@pytest.mark.parametrize("env", ["exact", "noisy"])
def test_every_section(section, env):
    found = app(section=section, env=env, steps="20")
    assert not found.exception
    assert not found.error
    assert len(found.get("vega_lite_chart")) >= 1


@pytest.mark.parametrize("section", ["Windup", "Auto-tuning"])
def test_each_command_has_a_folder_of_its_own(section):
    found = app(section=section, steps="20")
    name = "control-room-windup-bandit" if section == "Windup" else "control-room-auto"
    found.session_state[f"{name}-export"] = True
    found.run()
    lines = [shlex.split(line) for line in found.code[0].value.splitlines()]
    folders = [line[line.index("--out") + 1] for line in lines]
    assert len(set(folders)) == 2
    assert all(re.fullmatch(r"runs/[\w-]+", folder) for folder in folders)


def test_a_move_changes_the_numbers():
    found = app()
    before = [metric.value for metric in found.metric]
    assert before[:2] == ["stable", "25 steps"]
    found.slider(key="pi.kp").set_value(20.5).run()
    assert [metric.value for metric in found.metric][:2] == ["not stable", "never"]


def test_gains_by_poles():
    found = app(gains="by poles", p1="0.5", p2="0.5", g="0.2")
    assert any("Kp = 3.75 per nat, Ki = 1.25" in caption.value for caption in found.caption)
    assert "Poles at 0.5 and 0.5" in " ".join(text.value for text in found.markdown)


def test_taking_the_plant_over():
    found = app(section="Bandit", lr="1.0")
    found.button(key="take").click().run()
    assert found.slider(key="pi.g").value == pytest.approx(0.05)
    assert found.slider(key="pi.d").value == pytest.approx(-0.02)


def test_bad_input_is_one_line():
    found = app(section="Bandit", target="0.2", error="-0.5")
    assert not found.exception
    assert [error.value for error in found.error] == [
        "a policy of this environment has an entropy of 0.00 to 2.77, not -0.30"
    ]
