"""The explorer in Chromium with what strangers send: scripts in names, files of a gigabyte, ten sessions at once."""

import json
from pathlib import Path

import pytest
from probed_runs import write

from entrostat.logs.runlog import RunLog
from entrostat_app.browser.headless import server, settled

pytestmark = pytest.mark.slow
EVIL = "<img src=x onerror=hit()><script>hit()</script>"
"""Calls `hit` if a browser takes it for HTML."""
MARKED = "[a](javascript:hit()) ![b](http://evil.example/b.png) <b onmouseover=hit()>c</b>"
"""The same by Markdown, which also may not load a picture."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A folder of runs whose names, settings, metrics, prompts and tokens are scripts."""
    folder = tmp_path_factory.mktemp("hostile")
    write(folder / "probes", evil=EVIL)
    for name in ("<img src=x onerror=hit()>", "[a](javascript:hit())"):
        log = RunLog(folder / name, {"steps": 4, "controller": EVIL, MARKED: MARKED}, seed=0)
        for step in range(4):
            log.log(step, {"entropy": 1.0 - step / 8, "reward": 0.5, EVIL: 1.0, MARKED: 2.0})
            log.sample(step, prompt=EVIL, response=MARKED, reward=1.0, tokens=[EVIL, MARKED], entropy=[1.0, 2.0])
        log.close()
    return folder


@pytest.fixture(scope="module")
def place(hostile):
    with server(hostile) as url:
        yield url


@pytest.fixture
def watched(tab):
    """A tab that counts calls of `hit` and what it asks other machines for."""
    tab.hits, tab.asked = [], []
    tab.expose_function("hit", lambda *_: tab.hits.append(1))
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("dialog", lambda dialog: (tab.hits.append(dialog.message), dialog.dismiss()))
    return tab


SHOWN = "document.body.innerText.includes('onerror') || document.body.innerText.includes('javascript:')"


def look(tab, url: str) -> None:
    """Open a page, and point at all that can be pointed at."""
    tab.goto(url)
    tab.wait_for_selector("h1")
    settled(tab)
    for element in tab.locator("b, a[href^=javascript]").all():
        if element.is_visible():
            element.dispatch_event("mouseover")
            element.dispatch_event("click")


@pytest.mark.parametrize("page", ["runs", "probes"])
def test_scripts_in_runs_are_text(watched, place, page):
    look(watched, f"{place}/{page}")
    watched.wait_for_function(SHOWN)
    assert watched.hits == []
    assert [url for url in watched.asked if not url.startswith((place, "data:", "blob:"))] == []
    assert watched.locator("img[src=x], script:text('hit')").count() == 0


def test_scripts_in_the_headers_of_a_dropped_table_are_text(watched, place, tmp_path):
    file = tmp_path / "<img src=x onerror=hit()>.csv"
    file.write_text(f'step,entropy,"{EVIL}","{MARKED}"\n' + "".join(f"{i},{1 - i / 9},1,2\n" for i in range(6)))
    look(watched, f"{place}/runs")
    watched.get_by_text("Bring your own run").click()
    watched.locator("input[type=file]").set_input_files(file)
    watched.get_by_text("onerror=hit()>.csv").first.wait_for(state="attached")
    settled(watched)
    assert watched.hits == []
    assert watched.locator("img[src=x]").count() == 0


def test_a_file_of_a_gigabyte_is_refused_and_the_page_goes_on(tab, place, tmp_path):
    large = tmp_path / "large.jsonl"
    with large.open("wb") as file:
        file.write(b'{"step": 0, "entropy": 1.0}\n')
        file.truncate(2**30)
    look(tab, f"{place}/runs")
    tab.get_by_text("Bring your own run").click()
    tab.locator("input[type=file]").set_input_files(large)
    tab.get_by_text("File must be").first.wait_for()
    small = tmp_path / "small.jsonl"
    small.write_text("".join(json.dumps({"step": i, "entropy": 1 - i / 9}) + "\n" for i in range(6)))
    tab.locator("input[type=file]").set_input_files(small)
    tab.get_by_text("small.jsonl").first.wait_for()
    settled(tab)
    assert tab.locator("[data-testid=stException]").count() == 0


def test_ten_sessions_at_once_keep_their_own_settings(browser, place):
    """Each has another number of states; none shows another's, and none fails."""
    contexts = [browser.new_context() for _ in range(10)]
    tabs = [context.new_page() for context in contexts]
    try:
        for number, tab in enumerate(tabs):
            tab.goto(f"{place}/?states={number + 2}&rollouts=20&passes=2", wait_until="commit")
        for tab in tabs:
            tab.wait_for_selector("[data-testid=stVegaLiteChart]", timeout=120_000)
        for number, tab in enumerate(tabs):
            settled(tab, 120.0)
            assert tab.get_by_role("slider", name="States").get_attribute("aria-valuetext") == str(number + 2)
            assert tab.locator("[data-testid=stException]").count() == 0
    finally:
        for context in contexts:
            context.close()
