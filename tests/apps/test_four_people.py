"""A student, an engineer, a teacher and a manager reach their end on the first screen, while the console is silent."""

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from entrostat.logs.runlog import RunLog
from entrostat_app.browser.headless import settled

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow
LAPTOP, TELEPHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
FIGURE = "[data-testid=stVegaLiteChart] svg"


@pytest.fixture(params=[LAPTOP])
def screen(request, browser):
    """Yield a tab of this size that may not write warnings or errors to its console."""
    context = browser.new_context(viewport=request.param)
    tab, said = context.new_page(), []
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text) if message.type in ("warning", "error") else None)
    yield tab
    assert said == []
    context.close()


def visit(screen: "Page", place: str) -> None:
    screen.goto(place)
    screen.wait_for_selector("h1")
    settled(screen)


def assert_on_screen(screen: "Page", *parts: "Locator") -> None:
    """Raise AssertionError unless all of each part is on the screen, which has not been scrolled."""
    for part in parts:
        part.wait_for()
        box, size = part.bounding_box(), screen.viewport_size
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= size["height"], part
        assert box["x"] + box["width"] <= size["width"], part


def test_a_student_predicts_and_is_answered(screen, url):
    """No curve before the prediction, and the place of the curves is as high then as with them."""
    visit(screen, f"{url}/learn")
    question = screen.get_by_test_id("stRadioGroup")
    assert_on_screen(screen, question)
    assert screen.locator(FIGURE).count() == 0
    place = screen.locator(".st-key-room-stage").bounding_box()
    screen.get_by_text("thermostat", exact=True).first.click()
    figure = screen.locator(FIGURE)
    figure.wait_for()
    settled(screen)
    slider = screen.get_by_role("slider", name="Target of the thermostat")
    assert_on_screen(screen, question, slider, screen.get_by_text("As predicted."), figure)
    drawn = figure.bounding_box()
    assert place["y"] <= drawn["y"]
    assert drawn["y"] + drawn["height"] <= place["y"] + place["height"]


def test_an_engineer_opens_a_run_and_reads_its_verdict(screen, url, runs):
    log = RunLog(runs / "sweeps-of-november" / "grpo", {"steps": 60, "controller": "grpo"}, seed=0)
    for step in range(60):
        log.log(step, {"entropy": 0.6 if step < 37 else 0.1, "reward": 0.2 + step / 200})
    log.close()
    try:
        visit(screen, f"{url}/runs?runs=sweeps-of-november/grpo")
        verdict = screen.get_by_role("heading", name="Entropy fell from 0.6 nats to 0.1 by step 37.")
        figure = screen.locator(FIGURE)
        assert_on_screen(screen, verdict, figure, figure.get_by_text("fell 37"))
        assert screen.get_by_test_id("stSidebar").get_by_text("grpo", exact=True).count() == 1
    finally:
        shutil.rmtree(runs / "sweeps-of-november")


@pytest.mark.parametrize("screen", [LAPTOP, TELEPHONE], indirect=True)
def test_a_teacher_opens_a_link_to_a_claim_with_its_setting(screen, url):
    visit(screen, f"{url}/theorems?claim=thm1-centred&thm1-centred.shift=0.4")
    sentence = screen.get_by_role("heading", name="Under the policy gradient, a state's entropy changes by")
    slider = screen.get_by_role("slider", name="Mean of the advantage")
    assert_on_screen(screen, sentence, screen.get_by_text("Fails here"), slider)
    assert slider.get_attribute("aria-valuetext") == "0.40"
    assert "thm1-centred" not in screen.locator("[data-testid=stMain]").inner_text()
    if screen.viewport_size == LAPTOP:
        assert_on_screen(screen, screen.locator(FIGURE))
    slider.focus()
    for _ in range(4):
        screen.keyboard.press("ArrowLeft")
    screen.get_by_text("Holds here").wait_for()
    screen.wait_for_url(lambda address: "shift" not in address)
    assert "claim" not in screen.url  # it is the first one


def test_a_manager_reads_hours_and_money_and_changes_the_price(screen, url):
    visit(screen, f"{url}/plan")
    hours, cost = (screen.get_by_test_id("stMetric").filter(has_text=re.compile(name)) for name in ("^Hours", "^Cost"))
    price = screen.get_by_role("spinbutton", name="Price")
    assert_on_screen(screen, hours, cost, price, screen.locator(FIGURE))
    low, high = map(number, re.findall(r"[\d,]+", cost.inner_text()))
    price.fill("5")
    price.press("Enter")
    cost.filter(has_text=f"${2 * low:,.0f}"[:3]).wait_for()
    settled(screen)
    dearer = list(map(number, re.findall(r"[\d,]+", cost.inner_text())))
    assert dearer == pytest.approx([2 * low, 2 * high], abs=2)


def test_a_student_sees_the_whole_policy_in_the_playground(screen, url):
    visit(screen, f"{url}/?view=Playground")
    assert_on_screen(screen, screen.locator(FIGURE).last, screen.get_by_role("slider", name=re.compile("State s")))


def number(text: str) -> float:
    return float(text.replace(",", ""))
