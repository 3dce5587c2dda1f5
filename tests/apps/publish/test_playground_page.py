"""The page's own simulator against toybandit, in Chromium."""

import json

import numpy as np
import pytest
from telephone import is_on_the_screen, telephone

from entrostat_app.entrostat_command import main
from entrostat_app.publish.playground_page import SETTINGS, SLIDERS, bandit
from toybandit import Config, simulate


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Path of a published playground."""
    folder = tmp_path_factory.mktemp("published") / "page"
    assert main(["publish", "--playground", "--out", str(folder)]) == 0
    return folder / "index.html"


def test_every_slider_starts_within_its_limits():
    for key, _, low, high, step in SLIDERS:
        assert low <= SETTINGS[key] <= high
        assert abs((SETTINGS[key] - low) / step % 1 - 0.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("env", "seed", "changes"),
    [
        ("trap", 0, {}),
        ("trap", 0, {"eps_high": 1.0, "lr": 4.0}),
        ("noisy", 7, {"eps_low": 0.1, "passes": 16}),
        ("det", 3, {"group": 2, "passes": 1}),
    ],
)
def test_its_steps_are_toybandits(browser, page, env, seed, changes):
    settings = {**SETTINGS, "rollouts": 60, **changes}
    numbers = {key: settings[key] for key in ("lr", "passes", "group", "rollouts")}
    clip = {key: settings[key] for key in ("eps_low", "eps_high")}
    config = Config(env=env, states=16, controller="ppo", controller_args=clip, **numbers)
    expected = simulate(config, [seed])
    tab = browser.new_page()
    tab.goto(page.as_uri())
    found = tab.evaluate("([bandit, settings]) => simulate(bandit, settings)", [bandit(config, seed), settings])
    tab.close()
    np.testing.assert_allclose(found["entropy"], expected.entropy[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["reward"][:-1], expected.reward[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["logits"], expected.logits[0], rtol=0, atol=1e-9)
    assert abs(expected.entropy[0, -1] - expected.entropy[0, 0]) > 0.1


def test_a_telephone_shows_result_and_slider_on_the_first_screen(browser, page):
    with telephone(browser, page) as tab:
        result, slider = tab.get_by_role("status"), tab.get_by_role("slider", name="Upper clip bound")
        for part in (result, slider):
            assert is_on_the_screen(part)
        clip = {key: SETTINGS[key] for key in ("eps_low", "eps_high")}
        numbers = {key: SETTINGS[key] for key in ("lr", "passes", "group", "rollouts")}
        first = simulate(Config(env="trap", controller="ppo", controller_args=clip, **numbers), [0])
        assert f"entropy {first.entropy[0, -1]:.3f} nats" in result.inner_text()
        slider.focus()
        tab.keyboard.press("End")
        clip["eps_high"] = 1.0
        wide = simulate(Config(env="trap", controller="ppo", controller_args=clip, **numbers), [0])
        assert f"entropy {wide.entropy[0, -1]:.3f} nats" in result.inner_text()
        assert wide.entropy[0, -1] > first.entropy[0, -1]
        assert json.loads(tab.locator("section script").text_content())["settings"] == SETTINGS
