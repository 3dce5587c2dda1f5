"""Playground: its panels and texts, and the page in AppTest."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.launch import ENVIRONMENTS
from entrostat_app.menu import SCRIPT
from entrostat_app.shared import bandit, exports, simulations
from entrostat_app.views.playground import playground
from toybandit import Config
from toybandit.picture import TITLE

SMALL = {"states": 4, "rollouts": 12, "passes": 2}


def app(**state: str) -> AppTest:
    found = AppTest.from_file(str(SCRIPT), default_timeout=60)
    for key, value in {"view": playground.VIEWS[1], **state}.items():
        found.query_params[key.replace("__", ".")] = value
    return found.run()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "shown"), [({}, TITLE), ({"picture.target": "0.4"}, TITLE), ({"lr": "2.0"}, "Playground")]
)
def test_a_link_with_values_of_the_playground_opens_it(link, shown):
    found = AppTest.from_file(str(SCRIPT), default_timeout=60)
    for key, value in link.items():
        found.query_params[key] = value
    found.run()
    assert not found.exception
    assert [title.value for title in found.title] == [shown]
    assert ("lr" in {slider.key for slider in found.slider}) == (shown == "Playground")


def test_panels_hold_the_numbers_of_the_run():
    config = Config(controller="entropic", target=0.5, controller_args={"tau": 0.2}, **SMALL)
    trajectory = simulations.run(config, (0,))
    entropy, reward, change, passed, state = playground.panels(trajectory)
    frame = entropy.frame.set_index("series")["value"]
    np.testing.assert_array_equal(frame["entropy"], trajectory.entropy[0])
    assert set(frame["target"]) == {0.5}
    np.testing.assert_array_equal(reward.frame["value"], trajectory.reward[0])
    measured = change.frame.set_index("series")["value"]["measured"]
    np.testing.assert_allclose(measured.cumsum(), trajectory.entropy[0, 1:] - trajectory.entropy[0, 0], atol=1e-14)
    np.testing.assert_array_equal(passed.frame.set_index("series")["value"]["pass@8"], trajectory.pass_at(8)[0])
    assert "entropic/alpha" in set(state.frame["series"])


def test_the_line_of_a_target_moves():
    trajectory = simulations.run(Config(controller="thermostat", target="linear(1.4, 0.5, 6)", **SMALL), (0,))
    line = playground.panels(trajectory)[0].frame.set_index("series")["value"]["target"]
    np.testing.assert_allclose(line, [*np.linspace(1.4, 0.5, 7), *[0.5] * 6])
    assert "thermostat/target" not in set(playground.panels(trajectory)[-1].frame["series"])


def test_held_out_prompts_are_beside_the_reward():
    trajectory = simulations.run(bandit.config_at({"env": "features", "f.pool": "128", "f.rollouts": 40}), (0,))
    found = playground.panels(trajectory)
    assert [panel.title.partition(":")[0] for panel in found] == [
        "Entropy H (nats)", "One response", "pass@8 on held-out prompts"
    ]  # fmt: skip
    unseen = trajectory.held_out
    for panel, series, k in ((found[1], "pass@1, held out", 1), (found[2], "pass@8", 8)):
        frame = panel.frame[panel.frame["series"] == series]
        np.testing.assert_array_equal(frame["x"], unseen.rollouts)
        np.testing.assert_array_equal(frame["value"], unseen.pass_at(k)[0])
    mean = found[1].frame["value"][1 : len(unseen.rollouts)]
    np.testing.assert_allclose(mean, trajectory.reward[0].reshape(20, 2).mean(1))
    text = playground.summary(trajectory)
    assert f"pass@8 goes from {unseen.pass_at(8)[0, 0]:.2f} to {unseen.pass_at(8)[0, -1]:.2f}." in text
    assert "first-order" not in playground.notice(trajectory)


@pytest.mark.parametrize("size", ["1", "256", pytest.param("table", marks=pytest.mark.slow)])
def test_features_from_shared_to_a_table(size):
    """The controls are the environment's own, and what needs the same prompts is left out with a word."""
    found = app(env="features", f__features=size, f__rollouts="20", controller="thermostat", target="0.4")
    assert not found.exception
    assert not found.error
    assert found.select_slider(key="f.features").value == size
    assert {slider.key for slider in found.slider} >= {"f.lr", "f.group", "f.passes", "f.rollouts"}
    assert not {slider.key for slider in found.slider} & {"lr", "states", "t"}
    told = "\n".join(caption.value for caption in found.caption)
    assert "over 20 rollouts" in told
    assert "no policy of one prompt to follow" in told
    assert ("so these are 256" in told) == (size == "table")


def test_words_are_made_of_the_numbers():
    trajectory = simulations.run(Config(controller="thermostat", target=0.5, **SMALL), (0,))
    text = f"{playground.summary(trajectory)} {playground.notice(trajectory)}"
    assert f"from {trajectory.entropy[0, 0]:.2f} to {trajectory.entropy[0, -1]:.2f} nats" in text
    assert f"{trajectory.entropy[0, -4:].mean() - 0.5:+.2f} from the target" in text


def test_arms_that_pay_more():
    frame = playground.arms(np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.3]))
    assert frame["pays"].tolist() == ["higher reward", "lower reward", "lower reward"]
    assert set(playground.arms(np.array([0.5, 0.5]), np.array([0.5, 0.5]))["pays"]) == {"equal reward"}


@pytest.mark.slow
def test_every_environment():
    for env in ("exact", "noisy", "on", "pure", "det", "coupled", "episodes", "trap", "features"):
        found = app(env=env, rollouts="20", states="2", passes="1", f__rollouts="20")
        assert not found.exception, env
        assert not found.error, env


@pytest.mark.parametrize(
    "controller",
    [
        pytest.param("steer", marks=pytest.mark.slow),
        "clip_cov",
        "gspo",
        "opefo",
        "positive_reweight",
        "clip_free",
        "kl_ref",
    ],
)
def test_controllers_with_all_their_controls(controller):
    found = app(controller=controller, rollouts="20", states="2")
    assert not found.exception
    assert not found.error


def test_a_control_moves_the_numbers():
    found = app()
    before = found.info[0].value
    found.slider(key="lr").set_value(2.5).run()
    assert found.info[0].value != before


def test_a_hyperparameter_in_the_link_reaches_the_run():
    text = app(controller="entropic", target="0.8", entropic__tau="0.0").info[0].value
    other = app(controller="entropic", target="0.8", entropic__tau="0.95").info[0].value
    assert text != other


def test_a_moment_beyond_a_shorter_run():
    found = app(t="55")
    found.slider(key="rollouts").set_value(20).run()
    assert not found.exception
    assert found.slider(key="t").value == 20


def test_what_cannot_run_is_said_in_a_line():
    found = app(env="exact", controller="unlikeliness")
    assert not found.exception
    assert len(found.error) == 1
    assert "\n" not in found.error[0].value


OWN = "base: det\nstates: 3\narms: 8\nrollouts: 25\npasses: 2\n"


def test_an_environment_of_a_file(tmp_path, monkeypatch):
    """Its numbers are those of the file, and the command repeats it; a file that was not named is not read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "other.yaml").write_text(OWN.replace("25", "35"))
    monkeypatch.setenv(ENVIRONMENTS, "own.yaml")
    found = app(env="own.yaml")
    assert not found.exception
    assert not found.error
    told = "\n".join(caption.value for caption in found.caption)
    assert "over 25 rollouts" in told
    assert "All its numbers are those in own.yaml" in told.replace("\\", "")
    assert "states" not in [slider.key for slider in found.slider]
    assert exports.run_command(Config(env="own.yaml"), (0,)) == (
        "toybandit run --env own.yaml --controller grpo --seeds 1 --first-seed 0"
    )
    assert "over 60 rollouts" in "\n".join(caption.value for caption in app(env="other.yaml").caption)


@pytest.mark.slow
def test_a_file_that_was_changed_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENTS, str(tmp_path / "own.yaml"))
    for rollouts in (25, 30):
        (tmp_path / "own.yaml").write_text(OWN.replace("25", str(rollouts)))
        found = app(env=str(tmp_path / "own.yaml"))
        assert f"over {rollouts} rollouts" in "\n".join(caption.value for caption in found.caption)
    (tmp_path / "own.yaml").write_text("states: many\n")
    (error,) = app(env=str(tmp_path / "own.yaml")).error
    assert "own.yaml" in error.value
