"""The explorer in Chromium, on a real server."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe

from entrostat.about.colours import colour_of
from entrostat_app.browser.headless import settled
from entrostat_app.menu import PAGES, address
from entrostat_app.views.learn.lessons import LESSONS

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIGURE = "[data-testid=stVegaLiteChart] svg"
LINKED = "[data-testid=stVegaLiteChart][aria-label^='Lines over rollout'] svg"
"""Selector of the playground's panels over time."""
PLAYGROUND = "?view=Playground"
"""Link to the playground, which shares its page with the picture."""
LOUD = ("warning", "error")
"""Types of messages in the console that a page may not have."""
PATHS = [pytest.param(path, marks=[pytest.mark.slow] * (i > 0)) for i, path in enumerate(PAGES)]
"""Pages; the quick tests look at the first."""


def visit(tab: "Page", place: str) -> None:
    """Open a page and wait until its script has finished."""
    tab.goto(place)
    tab.wait_for_selector("h1")
    settled(tab)
    if re.search("/learn$", place):  # nothing is drawn before a prediction
        tab.get_by_test_id("stRadioGroup").get_by_text("no difference").click()
    tab.wait_for_selector(FIGURE)
    settled(tab)
    assert tab.get_by_role("dialog").count() == 0  # such as "page not found"


@dataclass
class Seen:
    """Content of a page on a first visit, without a click."""

    errors: list[str]
    said: list[str]
    """Warnings and errors in the console."""
    alerts: list[str]
    asked: list[str]
    descriptions: list[str]
    violations: list[tuple[str, str]]


@pytest.fixture(scope="module")
def seen(browser, url):
    """Return a function that returns a page's content on a first visit; each page is visited once."""
    found: dict[str, Seen] = {}

    def look(path: str) -> Seen:
        if path not in found:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            tab, errors, said, asked = context.new_page(), [], [], []
            tab.on("pageerror", lambda error: errors.append(str(error)))
            tab.on("console", lambda message: said.append(message.text) if message.type in LOUD else None)
            tab.on("request", lambda request: asked.append(request.url))
            visit(tab, f"{url}/{address(path)}")
            alerts = "[data-testid=stException], [data-testid=stAlertContentError]"
            described = "e => (e.closest('[aria-label]') || e.querySelector('[aria-label]'))?.ariaLabel || ''"
            violations = Axe().run(tab).response["violations"]
            found[path] = Seen(
                errors=errors,
                said=said,
                alerts=tab.locator(alerts).all_inner_texts(),
                asked=[place for place in asked if not place.startswith((url, "data:", "blob:"))],
                descriptions=[svg.evaluate(described) for svg in tab.locator(FIGURE).all()],
                violations=[
                    (v["id"], node["html"][:160])
                    for v in violations
                    if v["impact"] in ("serious", "critical")
                    for node in v["nodes"]
                ],
            )
            context.close()
        return found[path]

    return look


@pytest.mark.parametrize("path", PATHS)
def test_a_first_visit_shows_a_figure_and_no_error(seen, path):
    assert seen(path).errors == []
    assert seen(path).alerts == []
    assert seen(path).descriptions


@pytest.mark.parametrize("path", PATHS)
def test_the_console_is_silent(seen, path):
    assert seen(path).said == []


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_asked_of_other_hosts(seen, path):
    assert seen(path).asked == []


@pytest.mark.parametrize("path", PATHS)
def test_no_serious_accessibility_finding(seen, path):
    assert seen(path).violations == []


@pytest.mark.parametrize("path", PATHS)
def test_every_picture_has_a_description(seen, path):
    assert [text for text in seen(path).descriptions if len(text) < 20] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=[pytest.mark.long] * (i % 3 > 0)) for i, path in enumerate(PAGES)]
)
def test_a_telephone_needs_no_sideways_scrolling(browser, url, path):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    tab = context.new_page()
    visit(tab, f"{url}/{address(path)}")
    main = tab.locator("[data-testid=stMain]")
    assert main.evaluate("e => e.scrollWidth - e.clientWidth") <= 1
    for svg in tab.locator(FIGURE).all():
        box = svg.bounding_box()
        assert box is None or box["width"] <= 390
    context.close()


def lines(tab: "Page", chart: int = 0) -> list[str]:
    """Return every line of a picture of panels over time: its number on the page."""
    tab.wait_for_selector(LINKED)
    found = tab.locator(LINKED).nth(chart).locator(".mark-line path")
    drawn: list[str] = found.evaluate_all("paths => paths.map(path => path.getAttribute('d')).filter(Boolean)")
    return drawn


def comes(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until `true` returns True; return whether it did.

    The browser writes a moved control into the URL before the server hears of it, so neither the URL nor a quiet page
    shows that the move has been drawn.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_a_pasted_link_gives_the_same_figure(browser, tab, url):
    visit(tab, f"{url}/{PLAYGROUND}")
    first = lines(tab)
    tab.locator(".st-key-lr").get_by_role("slider").focus()
    for _ in range(4):
        tab.keyboard.press("ArrowRight")
    tab.wait_for_url(re.compile(r"lr=1\.2"))
    tab.locator(".st-key-seed").get_by_role("button", name="Increment").click()
    tab.wait_for_url(re.compile("seed=1"))
    assert comes(lambda: lines(tab) != first)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    other = context.new_page()
    visit(other, tab.url)
    assert comes(lambda: lines(other) == lines(tab))
    assert lines(other) != first
    context.close()


@pytest.mark.slow
def test_a_link_keeps_the_number_of_features(browser, tab, url):
    """From shared to a table: the slider is in the URL, and leaves it with the environment."""
    visit(tab, f"{url}/?env=features&f.rollouts=20&f.pool=128")
    first = lines(tab)
    slider = tab.locator(".st-key-f-features").get_by_role("slider")
    slider.focus()
    tab.keyboard.press("End")
    tab.wait_for_url(re.compile(r"f\.features=table"))
    assert comes(lambda: lines(tab) != first)
    assert slider.get_attribute("aria-valuetext") == "table"
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    other = context.new_page()
    visit(other, tab.url)
    assert comes(lambda: lines(other) == lines(tab))
    context.close()


@pytest.mark.slow
def test_a_move_draws_into_the_picture_that_is_there(tab, url):
    """The page updates the picture and does not recompile it, which would take 0.1 s longer."""
    visit(tab, f"{url}/{PLAYGROUND}")
    first = lines(tab)
    tab.locator(LINKED).evaluate("svg => { svg.dataset.seen = 'before' }")
    tab.locator(".st-key-lr").get_by_role("slider").focus()
    tab.keyboard.press("ArrowRight")
    tab.wait_for_url(re.compile(r"lr=1\.05"))
    assert comes(lambda: lines(tab) != first)
    assert tab.locator(LINKED).get_attribute("data-seen") == "before"


@pytest.mark.slow
def test_a_reader_predicts_and_the_picture_answers_on_one_screen(tab, url):
    """No curve before the prediction; then a move of the slider draws another thermostat and leaves GRPO as it is."""
    tab.set_viewport_size({"width": 1280, "height": 800})
    said = []
    tab.on("console", lambda message: said.append(message.text) if message.type in ("warning", "error") else None)
    visit(tab, url)
    main = tab.locator("[data-testid=stMain]")
    assert tab.get_by_role("heading", level=1).bounding_box()["y"] < 100
    assert [len(lines(tab, chart)) for chart in (0, 1)] == [1, 0]  # the target
    tab.get_by_text("thermostat", exact=True).first.click()
    tab.get_by_text("As predicted.").wait_for()
    settled(tab)
    assert [len(lines(tab, chart)) for chart in (0, 1)] == [3, 2]
    assert main.evaluate("e => e.scrollHeight - e.clientHeight") <= 0
    plain, *others = lines(tab, 1)
    tab.locator(".st-key-picture-target").get_by_role("slider").focus()
    tab.keyboard.press("ArrowLeft")
    tab.wait_for_url(re.compile(r"picture\.target=1\.1"))
    assert comes(lambda: lines(tab, 1) not in ([plain, *others], []))
    assert lines(tab, 1)[0] == plain
    assert said == []


@pytest.mark.slow
def test_a_preset_and_the_way_back(tab, url):
    visit(tab, f"{url}/?lr=2.0")
    tab.get_by_role("button", name="Presets").click()
    tab.get_by_role("button", name="Positives only").click()
    tab.wait_for_url(re.compile("controller=positive_only"))
    tab.wait_for_url(lambda address: "lr=" not in address)
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Reset", exact=True).click()
    tab.wait_for_url(re.compile(r"\?view=Playground$"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "start"),
    [
        ("CSV", b"x,"),
        pytest.param("Parquet", b"PAR1", marks=pytest.mark.long),
        pytest.param("SVG", b"<svg", marks=pytest.mark.long),
        ("PNG", b"\x89PNG"),
    ],
)
def test_downloads(tab, url, tmp_path, label, start):
    visit(tab, f"{url}/{PLAYGROUND}")
    tab.get_by_text("Export, and repeat").click()
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=label, exact=True).click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert path.read_bytes().startswith(start)
    if label == "Parquet":
        frame = pd.read_parquet(path)
        assert {"measured", "predicted", "entropy", "reward"} <= set(frame["series"])
        assert len(frame) > 200


@pytest.mark.slow
def test_the_command_repeats_what_is_shown(tab, url, tmp_path):
    """The command logs the same entropy as the download has."""
    import shlex

    from entrostat.logs.runlog import read_metrics
    from toybandit.cli import main

    visit(tab, f"{url}/?controller=entropic&entropic.tau=0.3&seed=5&states=4&rollouts=20&passes=2")
    tab.get_by_text("Export, and repeat").click()
    command = tab.locator("[data-testid=stCode] code").inner_text()
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="CSV", exact=True).click()
    waiting.value.save_as(tmp_path / "shown.csv")
    shown = pd.read_csv(tmp_path / "shown.csv")
    words = shlex.split(command)
    assert words[0] == "toybandit"
    assert main([*words[1:], "--out", str(tmp_path / "run")]) == 0
    logged = [line["entropy"] for line in read_metrics(tmp_path / "run")]
    entropy = shown[shown["series"] == "entropy"]["value"].tolist()
    assert entropy[:-1] == pytest.approx(logged, rel=1e-12)


@pytest.mark.slow
def test_embedded_without_the_frame(tab, url):
    visit(tab, f"{url}/?embed=true&lr=2.0")
    tab.wait_for_selector(FIGURE)
    assert tab.locator("[data-testid=stMainMenu]").count() == 0


@pytest.mark.slow
def test_playing_moves_the_moment(tab, url):
    visit(tab, f"{url}/{PLAYGROUND}")
    tab.get_by_text("Play", exact=True).click()
    tab.wait_for_url(re.compile(r"t=[3-9]"), timeout=20000)


@pytest.mark.slow
def test_dark(browser, url):
    context = browser.new_context(color_scheme="dark", viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    visit(tab, url)
    red, green, blue = (
        int(part)
        for part in re.findall(
            r"\d+", tab.locator("[data-testid=stApp]").evaluate("e => getComputedStyle(e).backgroundColor")
        )[:3]
    )
    assert max(red, green, blue) < 60
    found = Axe().run(tab).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
    context.close()


@pytest.mark.slow
def test_a_student_goes_through_the_course_from_the_trap_to_ones_own_log(tab, url):
    """Predict and move in the first lesson; then every lesson to the end, each from its top."""
    tab.set_viewport_size({"width": 1280, "height": 300})
    visit(tab, url)
    tab.get_by_role("link", name="New here?").click()
    tab.get_by_role("heading", name="1. The trap").wait_for()
    settled(tab)
    tab.get_by_text("thermostat", exact=True).first.click()
    slider = tab.get_by_role("slider", name="Target of the thermostat")
    slider.focus()
    tab.keyboard.press("End")
    tab.wait_for_url(re.compile(r"target=2\.2"))
    told = tab.locator(".st-key-room-answer")
    assert comes(lambda: re.search(r"pass@8 at the end: GRPO 0\.01, thermostat 0\.98\.", told.inner_text()) is not None)
    assert "As predicted." in told.inner_text()
    address = tab.get_by_role("link", name="Entropy Mechanism").get_attribute("href")
    assert address.startswith("https://arxiv.org/pdf/")
    main = "document.querySelector('[data-testid=stMain]')"
    for number in range(2, len(LESSONS) + 1):
        tab.evaluate(f"{main}.scrollTo(0, {main}.scrollHeight)")
        assert tab.evaluate(f"{main}.scrollTop") > 100
        tab.get_by_role("button", name="Next").click()
        tab.get_by_role("heading", name=f"{number}. ").wait_for()
        tab.wait_for_function(f"{main}.scrollTop == 0")
        settled(tab)
    tab.get_by_role("link", name="Open Runs").click()
    tab.wait_for_url(re.compile(r"/runs\?.*runs\.show=Diagnosis"))
    tab.get_by_text("What was measured").wait_for()


@pytest.mark.slow
def test_a_linked_word_lights_up_its_part_of_the_picture(tab, url):
    visit(tab, f"{url}/learn")
    seen = "paths => paths.filter(path => getComputedStyle(path).opacity == 1).map(path => path.getAttribute('stroke'))"
    curves, panels = tab.locator(f"{FIGURE} .mark-line path"), tab.locator(f"{FIGURE} g[class$=_group]")
    every = curves.evaluate_all(seen)
    tab.locator("[data-part='1']").first.hover()
    assert set(curves.evaluate_all(seen)) == {colour_of("thermostat")} < set(every)
    tab.locator("[data-part=P]").first.focus()
    tab.mouse.move(0, 0)
    lit = panels.evaluate_all("groups => groups.map(group => getComputedStyle(group).opacity)")
    assert lit == ["0.15", "0.15", "1"]
    tab.locator("h1").click()
    assert curves.evaluate_all(seen) == every


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["trainer_state.json", *(pytest.param(x, marks=pytest.mark.long) for x in ("verl.log", "chart.csv"))]
)
def test_an_engineer_drops_a_log_and_finds_a_setting_to_paste(tab, url, tmp_path, kind):
    """Logs of TRL, verl and W&B of one run, whose entropy collapses."""
    path = log_of_another_trainer(tmp_path, kind)
    tab.goto(f"{url}/runs")
    tab.get_by_text("Bring your own run").click()
    tab.locator("input[type=file]").set_input_files(str(path))
    tab.wait_for_url(re.compile(r"runs=.*dropped"))
    settled(tab)
    tab.get_by_text("Diagnosis", exact=True).click()
    tab.get_by_text("Collapsed at step 37.").wait_for()
    settled(tab)
    advice = tab.get_by_test_id("stExpander").filter(has_text="Add a penalty to the reference policy")
    advice.get_by_role("tab", name="TRL").click()
    assert "EntrostatGRPOTrainer" in advice.get_by_test_id("stCode").first.inner_text()
    advice.get_by_role("tab", name="verl").click()
    pasted = advice.get_by_test_id("stCode").filter(has_text="main_ppo")
    pasted.wait_for()
    assert "actor_rollout_ref.actor.policy_loss.loss_mode=entrostat/kl_ref" in pasted.inner_text()
    advice.get_by_role("button", name="Evidence").click()
    tab.get_by_test_id("stPopoverBody").get_by_text("± ").first.wait_for()


def log_of_another_trainer(folder: Path, kind: str) -> Path:
    """Write a run whose entropy falls at step 37, as its trainer does; return the file."""
    rows = [(step, 0.6 if step < 37 else 0.1, 0.2 + step / 200) for step in range(60)]
    text = {
        "trainer_state.json": json.dumps(
            {"global_step": 59, "log_history": [{"step": s, "entropy": h, "reward": r} for s, h, r in rows]}
        ),
        "verl.log": "".join(f"step:{s} - actor/entropy:{h} - critic/score/mean:{r}\n" for s, h, r in rows),
        "chart.csv": "Step,a - actor/entropy,a - critic/score/mean\n" + "".join(f"{s},{h},{r}\n" for s, h, r in rows),
    }
    (folder / kind).write_text(text[kind])
    return folder / kind
