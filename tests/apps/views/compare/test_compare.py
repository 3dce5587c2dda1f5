"""Compare: numbers, pictures and table of several contenders, and the page in AppTest and Chromium."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from entrostat.settings.commandline import parse_flags
from entrostat_app.browser.headless import settled
from entrostat_app.shared import exports
from entrostat_app.views.compare import compare, comparison, tradeoff
from entrostat_app.views.compare.contenders import parse, parse_all, pinned
from toybandit import simulate
from toybandit.frontier import best_reward, mean_entropy, mean_reward
from toybandit.leaderboard.standings import Estimate
from toybandit.run import RunFlags

PAGE = {"env": "noisy", "lr": 1.0, "group": 8, "passes": 2, "states": 4, "rollouts": 20}
SEEDS = (3, 4, 5)
LINES = ("grpo", "held: thermostat rate=0.05", "twin: ppo", "other: grpo env=det rollouts=12")


@pytest.fixture(scope="module")
def outcomes():
    contenders, errors = parse_all(LINES, PAGE, 0.8)
    assert errors == []
    return [comparison.outcome(c, simulate(c.config, SEEDS)) for c in contenders]


def wrapper() -> None:
    from entrostat_app.views.compare import compare

    compare.page()


def app(**state: str | list[str]) -> AppTest:
    found = AppTest.from_function(wrapper, default_timeout=60)
    for key, value in {"rollouts": "20", "states": "2", "seeds": "2", **state}.items():
        found.query_params[key.replace("__", ".")] = value
    return found.run()


def table(found: AppTest) -> pd.DataFrame:
    return found.dataframe[0].value.set_index("contender")


# Numbers ----------------------------------------------------------------------------------------------------------


def test_a_path_ends_with_the_final_policy(outcomes):
    for found in outcomes:
        trajectory = found.trajectory
        reward = mean_reward(trajectory.probabilities, trajectory.success)
        assert len(found.path) == trajectory.reward.shape[1] + 1
        assert found.path["reward"].iloc[-1] == pytest.approx(reward.mean())
        assert found.path["entropy"].iloc[-1] == pytest.approx(mean_entropy(trajectory.probabilities).mean())
        np.testing.assert_allclose(found.path["reward"][:-1], trajectory.reward.mean(0))


def test_the_table_by_hand(outcomes):
    frame = comparison.table(comparison.ranked(outcomes)).set_index("contender")
    assert frame.index[0] == "other"
    assert frame["reward"].is_monotonic_decreasing
    held = outcomes[1].trajectory
    error = np.abs(held.entropy[:, -6:].mean(1) - 0.8)
    assert frame.loc["held", "target_error"] == pytest.approx(error.mean())
    low, high = frame.loc["held", ["target_error_low", "target_error_high"]]
    assert error.min() - 1e-12 <= low <= high <= error.max() + 1e-12  # sums in another order
    reward = mean_reward(held.probabilities, held.success)
    best = best_reward(held.success, mean_entropy(held.probabilities))
    assert frame.loc["held", "gap"] == pytest.approx((best - reward).mean())
    assert np.isnan(frame.loc["grpo", ["target_error", "settling"]].astype(float)).all()
    assert frame.loc["twin", "same_as"] == "grpo"


def test_over_time_holds_every_seed(outcomes):
    picture = comparison.over_time(outcomes, 0.8)
    frame = picture.frame[(picture.frame["panel"] == "Entropy H (nats)") & (picture.frame["series"] == "held")]
    entropy = outcomes[1].trajectory.entropy
    np.testing.assert_allclose(frame["value"], entropy.mean(0))
    np.testing.assert_allclose(frame["low"], entropy.min(0))
    np.testing.assert_allclose(frame["high"], entropy.max(0))
    assert set(picture.frame[picture.frame["series"] == "target"]["value"]) == {0.8}
    assert "target" not in set(comparison.over_time(outcomes, 0.7).frame["series"])


def test_names_are_at_the_lines_or_in_one_legend(outcomes):
    def legends(panel):
        encodings = [layer["encoding"].get(channel) for layer in panel["layer"] for channel in ("color", "strokeDash")]
        return [encoding["legend"] for encoding in encodings if encoding and encoding.get("legend")]

    assert not any(map(legends, comparison.over_time(outcomes, 0.8).spec["vconcat"]))
    long = replace(outcomes[0], contender=replace(outcomes[0].contender, label="a name that is too long"))
    first, second = comparison.over_time([long, *outcomes[1:]], 0.8).spec["vconcat"]
    assert legends(first)
    assert not legends(second)


def test_short_names_leave_settings_out_where_one_is_left():
    lines = ("entropic kp=1", "entropic kp=2", "thermostat rate=0.05", "as it was: grpo")
    contenders, _ = parse_all(lines, PAGE, 0.8)
    found = comparison.short_names([comparison.Outcome(c, None, {}) for c in contenders])
    assert list(found.values()) == ["entropic kp=1", "entropic kp=2", "thermostat", "as it was"]


def test_words_are_made_of_the_numbers(outcomes):
    standings = comparison.ranked(outcomes)
    text = comparison.notice(standings)
    assert text.startswith(f"other ends with the highest reward, {standings[0].reward.value:.3f}")
    assert "Closest to its target is held" in text
    assert "twin and grpo" in text
    assert comparison.notice(comparison.ranked(outcomes[:1])) == ""
    assert f"grpo from {outcomes[0].path['entropy'][0]:.2f}" in comparison.summary(outcomes)
    assert "3 seeds" in comparison.summary(outcomes)


def test_who_may_be_first_with_other_seeds_is_named(outcomes):
    """The bootstrap interval of the first is .9 to 1; those of the others end at .91 and .89."""
    first, *others = comparison.ranked(outcomes)[:3]
    high = [Estimate(0.8, 0.7, 0.91), Estimate(0.7, 0.6, 0.89)]
    found = [replace(first, reward=Estimate(0.95, 0.9, 1.0), gap=Estimate(0.0, 0.0, 0.0))]
    found += [replace(s, reward=r, gap=Estimate(0.2, 0.1, 0.3)) for s, r in zip(others, high, strict=True)]
    text = comparison.notice(found)
    assert f"With other seeds {others[0].entry.name} may be first: the intervals overlap." in text


def test_what_cannot_run_says_why():
    assert "enumerates outcomes" in comparison.obstacle(parse("steer env=exact", PAGE))
    assert comparison.obstacle(parse("steer", PAGE)) == ""


def test_commands_repeat_the_contenders(outcomes):
    for found in outcomes:
        words = shlex.split(exports.run_command(found.contender.config, SEEDS))
        flags = parse_flags(RunFlags, words[2:], prog="toybandit run", description="")
        assert flags.config().resolved() == found.contender.config.resolved()
        assert (flags.seeds, flags.first_seed) == (3, 3)


def test_each_of_several_commands_has_a_folder_of_its_own(outcomes):
    contenders, _ = parse_all(["entropic kp=1", "entropic kp=2", "a (b): grpo", "a =b,: grpo"], PAGE, 0.8)
    several = [comparison.Outcome(c, outcomes[0].trajectory, {}) for c in contenders]
    folders = []
    for command in comparison.commands(several):
        flags = parse_flags(RunFlags, shlex.split(command)[2:], prog="toybandit run", description="")
        folders.append(flags.out)
    assert len(set(folders)) == len(several) == 4
    assert {str(folder.parent) for folder in folders} == {"runs"}
    assert "--out" not in comparison.commands(outcomes[:1])[0]


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("env", ["noisy", "episodes"])
def test_what_diverges_is_no_outcome(env):
    contender = parse(f"grpo lr=1e308 env={env} states=2 rollouts=3", PAGE)
    with pytest.raises(ValueError, match="logits are not finite"):
        comparison.outcome(contender, simulate(contender.config, [0]))


# The trade-off ----------------------------------------------------------------------------------------------------


def test_no_path_passes_its_frontier(outcomes):
    """Some policy reaches the mean of several policies, so the frontier of all states bounds the means, too."""
    lines = {frame["series"].iloc[0]: frame.sort_values("entropy") for frame in tradeoff.frontiers(outcomes)}
    assert set(lines) == {"frontier 1 (noisy)", "frontier 2 (det)"}
    for found in outcomes:
        line = lines["frontier 2 (det)" if found.name == "other" else "frontier 1 (noisy)"]
        assert (found.path["reward"] <= np.interp(found.path["entropy"], line["entropy"], line["reward"]) + 1e-3).all()
    assert [frame["series"].iloc[0] for frame in tradeoff.frontiers(outcomes[:2])] == ["frontier"]


def test_the_picture_holds_paths_and_ends(outcomes):
    frame = tradeoff.picture(outcomes, 0.8).frame
    ends = frame[frame["kind"] == "end"].set_index("series")
    held = outcomes[1]
    assert ends.loc["held", "entropy"] == pytest.approx(held.trajectory.entropy[:, -1].mean())
    assert ends.loc["held", "reward_max"] == pytest.approx(held.numbers["reward_final"].max())
    assert (frame["kind"] == "quarter").sum() == 4 * len(outcomes)
    assert frame[frame["kind"] == "target"]["entropy"].tolist() == [0.8]
    assert "target" not in set(tradeoff.picture(outcomes, None).frame["kind"])


def test_labels_stand_apart_inside_the_picture(outcomes):
    frame = tradeoff.picture(outcomes, None).frame
    ends, corners = frame[frame["kind"] == "end"], frame[frame["kind"] == "corner"]
    bottom, top = corners["reward"].min(), corners["reward"].max()
    row = tradeoff.ROW / tradeoff.PLOT * (top - bottom)
    labels = np.sort(ends["label"])
    assert labels[0] > bottom
    assert (np.diff(labels) > 0.99 * row).all()
    assert labels[-1] < ends["reward_min"].min()


def test_colour_is_never_alone(outcomes):
    spec = json.dumps(tradeoff.picture(outcomes, None).spec)
    assert all(f'"{shape}"' in spec for shape in tradeoff.SHAPES[: len(outcomes)])
    assert len(set(tradeoff.SHAPES)) == 8
    assert exports.svg(tradeoff.picture(outcomes, 0.8)).startswith(b"<svg")


def test_episodes_have_no_frontier():
    contender = parse("grpo env=episodes states=2 rollouts=4", PAGE)
    found = comparison.outcome(contender, simulate(contender.config, [0]))
    assert tradeoff.frontiers([found]) == []
    assert len(found.path) == 4
    assert np.isfinite(tradeoff.end(found)["reward"])
    assert tradeoff.picture([found], None).frame["kind"].tolist().count("end") == 1


SHARED = {"env": "features", "pool": 128, "rollouts": 20}


@pytest.fixture(scope="module")
def shared():
    contenders, errors = parse_all(["grpo", "other: grpo env=det", "held: thermostat target=.4"], SHARED)
    assert errors == []
    return [comparison.outcome(c, simulate(c.config, SEEDS)) for c in contenders]


def test_held_out_prompts_over_time_keep_the_colours(shared):
    picture = comparison.over_time(shared, 0.4)
    for k in (1, 8):
        frame = picture.frame[picture.frame["panel"] == f"pass@{k} on held-out prompts"]
        assert list(frame["series"].unique()) == ["grpo", "other", "held"]
        unseen = shared[2].trajectory.held_out
        held = frame[frame["series"] == "held"]
        np.testing.assert_array_equal(held["x"], unseen.rollouts)
        np.testing.assert_allclose(held["value"], unseen.pass_at(k).mean(0))
        np.testing.assert_allclose(held["low"], unseen.pass_at(k).min(0))
        assert frame[frame["series"] == "other"]["value"].isna().all()
    assert exports.svg(picture).startswith(b"<svg")


def test_words_and_paths_of_held_out_prompts(shared, outcomes):
    first, last = shared[2].trajectory.held_out.pass_at(8)[:, [0, -1]].mean(0)
    assert comparison.on_held_out(shared).endswith(f"held from {first:.2f} to {last:.2f}.")
    assert "other" not in comparison.on_held_out(shared)
    assert "held-out" in comparison.on_paths(shared)
    assert comparison.on_held_out(outcomes) == ""
    assert "frontier" in comparison.on_paths(outcomes)
    unseen = shared[0].trajectory.held_out
    end = tradeoff.end(shared[0])
    assert (end["entropy"], end["reward"]) == pytest.approx(
        (unseen.entropy[:, -1].mean(), unseen.pass_at(1)[:, -1].mean())
    )
    assert end["reward_max"] == pytest.approx(unseen.pass_at(1)[:, -1].max())
    assert len(tradeoff.frontiers(shared)) == 1  # that of det


# The page ---------------------------------------------------------------------------------------------------------


def test_the_page_with_held_out_prompts():
    found = app(env="features", f__rollouts="20", contenders=["grpo", "thermostat"], target="0.4")
    assert not found.exception
    assert not found.error
    assert "8 on prompts that are never trained: grpo from" in found.info[0].value.replace("\\", "")
    assert "f.advantage" not in [box.key for box in found.selectbox]
    assert set(table(found).index) == {"grpo", "thermostat"}


def test_the_page_at_its_defaults():
    found = AppTest.from_function(wrapper, default_timeout=60).run()
    assert not found.exception
    assert not found.error
    assert set(table(found).index) == set(compare.DEFAULT)
    assert [header.value for header in found.header] == ["Standings"]
    assert not found.code
    found.session_state["compare-export"] = True
    found.run()
    assert len(found.code[0].value.splitlines()) == len(compare.DEFAULT)


@pytest.mark.parametrize("env", ["exact", "on", "pure", "det", "coupled", "episodes"])
def test_every_environment(env):
    found = app(env=env, contenders=["grpo", "entropic tau=0.5 ki=0.05"])
    assert not found.exception
    assert not found.error
    assert len(found.dataframe) == 1


def test_a_move_changes_the_numbers_and_leaves_pins():
    pin = pinned(parse("grpo", {**PAGE, "states": 2}), "as it was")
    found = app(contenders=["grpo"], pins=pin)
    before = table(found)
    found.slider(key="lr").set_value(3.0).run()
    after = table(found)
    assert after.loc["grpo", "entropy"] < before.loc["grpo", "entropy"]
    assert after.loc["as it was", "entropy"] == before.loc["as it was", "entropy"]


def test_only_those_with_a_target_answer_to_it():
    found = app(contenders=["grpo", "thermostat rate=0.05"], rollouts="40")
    before = table(found)["entropy"]
    found.slider(key="target").set_value(1.2).run()
    after = table(found)["entropy"]
    assert after["grpo"] == before["grpo"]
    assert after["thermostat rate=0.05"] > before["thermostat rate=0.05"]


def test_what_is_wrong_with_a_line_leaves_the_others():
    found = app(contenders=["grpo", "x: entropc"], pins="![a](http://b.example/c.png): grpo")
    assert not found.exception
    assert len(found.error) == 2
    assert found.error[0].value.startswith("x\\: unknown controller 'entropc'")
    assert "![" not in found.error[1].value
    assert list(table(found).index) == ["grpo"]


def test_what_cannot_run_leaves_the_others():
    found = app(contenders=["grpo", "steer"], env="exact")
    assert not found.exception
    assert [error.value.partition(":")[0] for error in found.error] == ["steer\\"]
    assert list(table(found).index) == ["grpo"]


def test_what_diverges_leaves_the_others():
    found = app(contenders=["grpo", "grpo lr=1e308"])
    assert not found.exception
    (error,) = found.error
    assert error.value.startswith("grpo lr=1e308\\: ")
    assert list(table(found).index) == ["grpo"]


def test_nothing_to_show():
    found = app(contenders=["x: entropc"])
    assert len(found.error) == 1
    assert not found.dataframe
    assert "Choose a contender" in found.info[0].value


@pytest.mark.slow
def test_slow_ones_are_asked_for():
    found = app(contenders=["grpo", "thermostat"], passes="16", rollouts="80", states="1")
    assert not found.dataframe
    (button,) = [button for button in found.button if "slow" in button.label]
    assert "Run 2 slow simulations (160 rollouts)" in button.label
    button.click().run()
    assert len(table(found)) == 2


def test_pin_and_name_in_the_page():
    def click(label: str) -> None:
        next(button for button in found.button if button.label == label).click().run()

    found = app(contenders=["grpo"])
    found.text_input(key="pin.name").set_value("first try")
    click("Pin it")
    assert not found.exception
    assert found.text_area(key="pins").value.startswith("first try: grpo env=noisy ")
    assert set(table(found).index) == {"grpo", "first try"}
    click("Pin it")
    assert found.text_area(key="pins").value.splitlines()[1].startswith("grpo pinned: grpo ")
    found.text_input(key="pin.name").set_value("first try")
    click("Pin it")
    assert found.error[0].value.startswith("first try is the name of another")
    assert len(found.text_area(key="pins").value.splitlines()) == 2
    click("Reset")
    assert found.text_area(key="pins").value == ""


def test_names_for_pins():
    assert compare.free_name("grpo", {"grpo": 0}) == "grpo pinned"
    assert compare.free_name("grpo", {"grpo pinned": 0, "grpo pinned 2": 0}) == "grpo pinned 3"


def test_numbers_as_text():
    assert compare.measured(0.3, 0.25, 0.5) == "0.300 ± 0.125"
    assert compare.measured(0.3, 0.3, 0.3) == compare.measured(0.3, np.nan, np.nan) == "0.300"
    assert compare.measured(np.nan, np.nan, np.nan) is None
    assert compare.settling(9.0, 7.0, np.inf) == "   9 (7–never)"
    assert compare.settling(np.inf, np.inf, np.inf) == "never"
    assert compare.settling(np.nan, np.nan, np.nan) is None
    texts = [compare.padded(value) for value in (9.0, 10.0, 120.0, np.inf)]
    assert texts == sorted(texts)


# In the browser ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_pin_stays_and_travels_in_the_link(browser, tab, url):
    tab.goto(f"{url}/compare?contenders=grpo&rollouts=20&seeds=2&states=2")
    tab.wait_for_selector("h1")
    settled(tab)
    tab.get_by_role("button", name="Pin", exact=True).click()
    tab.get_by_role("textbox", name="Name").fill("slow")
    tab.keyboard.press("Tab")
    tab.get_by_role("button", name="Pin it").click()
    tab.wait_for_url(re.compile("pins=slow%3A"))
    tab.keyboard.press("Escape")
    tab.locator(".st-key-lr").get_by_role("slider").focus()
    for _ in range(6):
        tab.keyboard.press("ArrowRight")
    tab.wait_for_url(re.compile(r"lr=1\.3"))
    settled(tab)
    shown = lines(tab)
    assert tab.locator("[data-testid=stVegaLiteChart] svg").first.get_by_text("slow", exact=True).count()
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    other = context.new_page()
    other.goto(tab.url)
    other.wait_for_selector("h1")
    settled(other)
    assert lines(other) == shown
    context.close()


def lines(tab) -> list[list[str]]:
    """Return the paths drawn in each picture."""
    tab.wait_for_selector("[data-testid=stVegaLiteChart] svg")
    drawn = "e => Array.from(e.querySelectorAll('path'), (path) => path.getAttribute('d'))"
    return [chart.evaluate(drawn) for chart in tab.locator("[data-testid=stVegaLiteChart] svg").all()]
