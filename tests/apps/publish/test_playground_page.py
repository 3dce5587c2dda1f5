"""The published picture: its own simulator against toybandit, and its prediction, in Chromium."""

import json

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from telephone import is_on_the_screen, telephone

from entrostat.about.colours import colour_of
from entrostat_app.entrostat_command import main
from entrostat_app.publish.playground_page import RULES, SLIDERS, bandit, held, settings
from toybandit import Config, picture, simulate
from toybandit.picture import HELD, NEITHER, PLAIN, TARGET
from toybandit.uncertainty import FACTOR, apart


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Path of a published playground."""
    folder = tmp_path_factory.mktemp("published") / "page"
    assert main(["publish", "--playground", "--out", str(folder)]) == 0
    return folder / "index.html"


@pytest.fixture
def tab(browser, page):
    """Tab of a published playground at 1280 × 800."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(page.as_uri())
    yield tab
    tab.close()


def paths(tab, panel: int) -> list[str]:
    """Return the colours of the lines of a panel, without its grid."""
    return tab.locator("svg.curves").nth(panel).locator("path[style*=dasharray]").evaluate_all(
        "lines => lines.map(line => line.style.stroke)"
    )  # fmt: skip


def test_every_slider_starts_within_its_limits():
    starts = [(settings()[key], *limits) for key, _, *limits in SLIDERS]
    starts += [(value, *limits) for *_, low, high, step, value in RULES.values() for limits in [(low, high, step)]]
    for start, low, high, step in starts:
        assert low <= start <= high
        assert abs((start - low) / step % 1 - 0.5) == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("controller", "arguments"),
    [
        ("ppo", {}),
        ("clip_higher", {"eps_high": 0.6}),
        ("entropy_bonus", {"coef": 0.1}),
        ("thermostat", {"target": 1.2}),
        ("thermostat", {"target": 0.4}),
    ],
)
@pytest.mark.parametrize(
    ("env", "seed", "changes"),
    [
        ("trap", 0, {}),
        ("trap", 3, {"lr": 4.0}),
        ("noisy", 7, {"passes": 16, "lr": 1.0}),
        ("det", 3, {"group": 2, "passes": 1}),
    ],
)
def test_its_steps_are_toybandits(tab, env, seed, changes, controller, arguments):
    numbers = {**settings(), "rollouts": 60, **changes}
    given = {key: numbers[key] for key in ("lr", "passes", "group", "rollouts")}
    config = Config(env=env, states=16, controller=controller, controller_args=arguments, **given)
    expected = simulate(config, [seed], keep_policies=True)
    own = {"held": {**held(), **arguments}} if controller == "thermostat" else arguments
    found = tab.evaluate(
        "([bandit, settings]) => simulate(bandit, settings)", [bandit(config, seed), {**numbers, **own}]
    )
    np.testing.assert_allclose(found["entropy"], expected.entropy[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["reward"][:-1], expected.reward[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["passed"], expected.pass_at(picture.K)[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["logits"], expected.logits[0], rtol=0, atol=1e-9)
    assert abs(expected.entropy[0, -1] - expected.entropy[0, 0]) > 0.1


def test_the_estimate_starts_afresh_where_toybandits_does(tab):
    """A first gain that is far too low makes the thermostat overreact until its plans lead away from the target."""
    given = {"lr": 4.0, "passes": 4, "group": 16, "rollouts": 120}
    config = Config(env="trap", controller="thermostat", target=1.4, controller_args={"kappa": 1e-4}, **given)
    expected = simulate(config, [5])
    assert expected.metrics["thermostat/alarms"].max() > 0
    own = {**settings(), **given, "held": {**held(), "target": 1.4, "kappa": 1e-4}}
    found = tab.evaluate("([bandit, settings]) => simulate(bandit, settings)", [bandit(config, 5), own])
    np.testing.assert_allclose(found["entropy"], expected.entropy[0], rtol=0, atol=1e-9)


def test_nothing_is_drawn_before_the_prediction(tab):
    assert [len(paths(tab, panel)) for panel in (0, 1)] == [1, 0]  # the target
    assert "Choose" in tab.get_by_role("status").inner_text()
    tab.get_by_role("radio", name=HELD).check()
    colours = ["rgb" + str(tuple(bytes.fromhex(colour_of(name)[1:]))) for name in (PLAIN, HELD)]
    assert set(paths(tab, 1)) == set(colours)
    assert len(paths(tab, 0)) == 3


@pytest.mark.slow
def test_it_is_the_picture_of_toybandit(tab):
    """The words of the answer are those of toybandit, at two targets."""
    slider, told = tab.get_by_role("slider", name="Target entropy"), tab.get_by_role("status")
    for guess, target in ((HELD, TARGET), (NEITHER, 0.2)):
        right, words = picture.verdict(picture.sides(target))
        tab.get_by_role("radio", name=guess).check()
        slider.fill(str(target))
        assert right == HELD
        assert told.inner_text() == f"{'As' if guess == right else 'Not as'} predicted. {words}"


@pytest.mark.parametrize(("gap", "right"), [(0.5, 0), (-0.5, 1), (0.02, -1)])
def test_a_run_is_named_if_the_seeds_tell_it_apart(tab, gap, right):
    noise = 0.1 * np.resize([1.0, -1.0], 8)
    one, other = 0.5 + gap + noise, np.full(8, 0.5)
    assert (right != -1) == apart(one, other)
    runs = [{"seeds": [{"passed": [float(p)]} for p in passed]} for passed in (one, other)]
    assert tab.evaluate("([runs, factor]) => higher(runs, factor)", [runs, FACTOR]) == right


def test_other_controllers_and_the_reward(tab):
    tab.get_by_role("radio", name=HELD).check()
    tab.get_by_text("Reward, and other controllers").click()
    tab.get_by_label("Controller beside GRPO").select_option("entropy_bonus")
    assert len(paths(tab, 0)) == len(paths(tab, 2)) == 2  # a bonus has no target
    assert tab.get_by_role("radio", name="entropy_bonus").is_checked()
    tab.get_by_role("slider", name="Coefficient").fill("0.2")
    assert "under entropy_bonus" in tab.get_by_role("status").inner_text()
    before = tab.get_by_role("status").inner_text()
    tab.get_by_role("slider", name="Learning rate").fill("1")
    assert tab.get_by_role("status").inner_text() != before


def test_one_screen_without_an_accessibility_finding(tab):
    tab.get_by_role("radio", name=PLAIN).check()
    low = max(part.bounding_box()["y"] + part.bounding_box()["height"] for part in tab.locator("svg.policy").all())
    assert low < tab.get_by_role("status").bounding_box()["y"] < 800
    assert [v["id"] for v in Axe().run(tab).response["violations"]] == []
    assert json.loads(tab.locator("section script").text_content())["settings"] == settings()


def test_a_telephone_shows_picture_slider_and_answer_on_the_first_screen(browser, page):
    with telephone(browser, page) as tab:
        tab.get_by_role("radio", name=HELD).check()
        parts = [tab.get_by_role("status"), tab.get_by_role("slider", name="Target"), *tab.locator(".stage svg").all()]
        assert len(parts) == 6
        assert all(map(is_on_the_screen, parts))
