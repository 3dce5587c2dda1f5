"""The published course: its lessons are the explorer's, and a phone shows each with its control and its answer."""

import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from telephone import PHONE, is_on_the_screen, telephone

from entrostat_app.entrostat_command import main
from entrostat_app.publish import course_page
from entrostat_app.publish.whole_page import page as whole
from entrostat_app.shared import bandit
from entrostat_app.shared.palette import COLOURS
from entrostat_app.views.learn.lessons import LESSONS, NEITHER, SEEDS
from toybandit import simulate

CLIP = 2
"""Number of the lesson that is simulated fastest."""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Path of the whole published course."""
    folder = tmp_path_factory.mktemp("published") / "page"
    assert main(["publish", "--course", "--out", str(folder)]) == 0
    return folder / "index.html"


@pytest.fixture(scope="module")
def clip():
    """Entries of the lesson on clipping."""
    return list(course_page.entries(LESSONS[CLIP - 1]))


@pytest.fixture(scope="module")
def alone(clip, tmp_path_factory):
    """Path of a page with the lesson on clipping alone."""
    path = tmp_path_factory.mktemp("alone") / "index.html"
    path.write_text(whole([course_page.section(CLIP, clip)]))
    return path


def test_every_entry_is_the_lesson_at_its_value(clip):
    lesson = LESSONS[CLIP - 1]
    values = lesson.positions
    assert [entry["value"] for entry in clip] == [f"{value:g}" for value in values]
    for value, entry in zip(values[::5], clip[::5], strict=True):
        runs = lesson.simulate(value)
        assert (entry["right"], entry["verdict"]) == (lesson.right(runs), lesson.verdict(runs))
        entropy, reward = entry["panels"]
        for name, line in zip(lesson.names, entropy["series"], strict=True):
            run = runs[name].entropy
            assert line["y"][-1] == pytest.approx(run[:, -1].mean(), rel=1e-3)
            assert (line["low"][0], line["high"][0]) == pytest.approx((run[:, 0].min(), run[:, 0].max()), rel=1e-3)
            assert (line["x"][0], line["x"][-1]) == (0, run.shape[1] - 1)
        assert [line["style"] for line in reward["series"]] == [0, 1]
    assert clip[0]["right"] == NEITHER


def test_every_position_of_the_explorers_slider_is_there():
    for lesson in LESSONS:
        values = lesson.positions
        assert (values[0], values[-1]) == (lesson.move.low, lesson.move.high)
        assert lesson.move.default in values


def test_the_answer_is_there_without_the_script(clip):
    text = whole([course_page.section(CLIP, clip), course_page.end()])
    at = LESSONS[CLIP - 1].positions.index(LESSONS[CLIP - 1].move.default)
    assert f'aria-live="polite">{clip[at]["verdict"]}</p>' in text
    assert 'href="https://arxiv.org/pdf/2503.14476#nameddest=subsection.3.1"' in text
    assert "llmtrain diagnose" in text


@pytest.mark.long
@pytest.mark.slow
def test_links_lead_from_lesson_to_lesson(page):
    text = page.read_text()
    names = [course_page.name(number) for number in range(1, len(LESSONS) + 2)]
    assert re.findall('<section id="(.*?)"', text) == names
    inner = re.findall(r'href="#([^"]*)"', text)
    assert set(inner) == set(names)
    assert inner[: len(names)] == names
    others = set(re.findall(r'\b(?:src|href)="([^#"][^"]*)"', text))
    assert {place for place in others if not place.startswith("https://arxiv.org/pdf/")} == {"data:,"}
    assert not re.findall(r"@import|url\(", text)


@pytest.mark.long
@pytest.mark.slow
def test_a_student_opens_the_course_on_a_telephone(browser, page):
    """Control and answer are on the first screen of each lesson; predict, move, answer; on to the end."""
    with telephone(browser, page) as tab:
        for number, lesson in enumerate(LESSONS, 1):
            part = tab.locator(f"#{course_page.name(number)}")
            runs = lesson.simulate(lesson.move.high)
            slider, answer = part.get_by_role("slider").first, part.get_by_text("Answer", exact=True)
            for shown in (part.get_by_role("heading"), slider, answer):
                assert is_on_the_screen(shown), lesson.title
            told = part.get_by_role("status")
            assert not told.is_visible()
            part.get_by_label(lesson.right(runs), exact=True).check()
            answer.tap()
            curve = part.locator("svg.curves path.line.s1").first
            before = curve.get_attribute("d")
            slider.focus()
            tab.keyboard.press("End")
            assert told.inner_text() == f"As predicted. {lesson.verdict(runs)}"
            assert curve.get_attribute("d") != before
            part.get_by_role("link", name="Next").tap()
            assert tab.url.endswith(f"#{course_page.name(number + 1)}")
        assert tab.get_by_role("heading", name="Now on your own log").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("others", [{}, {"passes": 1, "lr": 2.0}])
def test_the_page_simulates_the_lesson_on_clipping_as_toybandit_does(browser, alone, others):
    tab = browser.new_page()
    tab.goto(alone.as_uri())
    lesson = LESSONS[CLIP - 1]
    for position, value in list(enumerate(lesson.positions))[::5]:
        runs = {
            name: simulate(bandit.config_at({**values, **others}), SEEDS) for name, values in lesson.runs(value).items()
        }
        live = "JSON.parse(document.querySelector('section script').textContent).live"
        found = tab.evaluate(f"([at, others]) => lived({live}, at, others)", [position, others])
        assert (found["right"], found["verdict"]) == (lesson.right(runs), lesson.verdict(runs))
        for panel, measure in zip(found["panels"], ("entropy", "reward"), strict=True):
            for line, run in zip(panel["series"], runs.values(), strict=True):
                expected = getattr(run, measure)
                for key, of in (("y", np.mean), ("low", np.min), ("high", np.max)):
                    np.testing.assert_allclose(line[key], of(expected, 0), rtol=0, atol=1e-9)
    tab.close()


def test_every_slider_of_a_simulated_lesson_moves_its_curves(browser, alone):
    tab = browser.new_page(viewport=PHONE)
    tab.goto(alone.as_uri())
    curve, values = tab.locator("svg.curves path.line.s1").first, tab.locator(".value")
    for slider in tab.get_by_role("slider").all():
        before, shown = curve.get_attribute("d"), values.all_inner_texts()
        slider.focus()
        tab.keyboard.press("Home")
        assert curve.get_attribute("d") != before
        assert values.all_inner_texts() != shown
    assert tab.get_by_role("slider").count() == 3
    tab.close()


def test_a_linked_word_lights_up_its_part_of_the_picture(browser, alone):
    tab = browser.new_page(viewport={"width": 1000, "height": 1200})
    tab.goto(alone.as_uri())
    seen = "parts => parts.map(part => getComputedStyle(part).opacity)"
    lines, panels = tab.locator("svg.curves .line"), tab.locator("svg.curves")
    assert lines.evaluate_all(seen) == ["1"] * 4
    tab.locator(".more [data-part='1']").hover()
    assert lines.evaluate_all(seen) == ["0.15", "1"] * 2
    colour = lines.nth(1).evaluate("line => getComputedStyle(line).stroke")
    assert colour == "rgb({}, {}, {})".format(*bytes.fromhex(COLOURS[1][1:]))
    tab.locator(".more [data-part=H]").hover()
    assert panels.evaluate_all(seen) == ["1", "0.15"]
    tab.close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_finding(browser, page, scheme):
    context = browser.new_context(viewport=PHONE, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.get_by_text("Answer", exact=True).first.click()
    found = Axe().run(tab).response["violations"]
    assert [(v["id"], node["html"][:160]) for v in found for node in v["nodes"]] == []
    context.close()
