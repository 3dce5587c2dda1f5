"""Published runs: the words and curves are those of page Runs, in Chromium at the width of a phone too."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from telephone import PHONE, is_on_the_screen, telephone

from entrostat.logs.runlog import RunLog
from entrostat_app.entrostat_command import main
from entrostat_app.publish import runs_page
from entrostat_app.views.runs import run_curves, winners

STEPS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with two experiments of three seeds, equal but for chance, and a log of TRL that earns more."""
    root = tmp_path_factory.mktemp("logs") / "runs"
    rng = np.random.default_rng(0)
    for name in ("grpo", "<b>clip"):
        for seed in range(3):
            log = RunLog(root / name / f"seed-{seed}", {"seed": seed, "steps": STEPS, "controller": name}, seed)
            ahead = 0.02 * rng.standard_normal()
            for step in range(STEPS):
                entropy = 1.2 * np.exp(-step / 15) + 0.05 * rng.random()
                log.log(step, {"entropy": entropy, "reward": 0.5 + ahead + 0.01 * rng.random()})
            log.close()
    history = [{"step": s, "entropy": 1.2 - s / 100, "reward": 0.9 + 0.01 * rng.random()} for s in range(STEPS)]
    (root / "trl").mkdir()
    (root / "trl" / "trainer_state.json").write_text(json.dumps({"global_step": STEPS, "log_history": history}))
    return root


def published(tmp_path: Path, *args: str) -> Path:
    """Return the path of a page with these parts."""
    assert main(["publish", *args, "--out", str(tmp_path / "page")]) == 0
    return tmp_path / "page" / "index.html"


@pytest.fixture(scope="module")
def compared(folder, tmp_path_factory):
    """Path of a page that compares all three."""
    runs = [str(folder / name) for name in ("grpo", "<b>clip", "trl/trainer_state.json")]
    return published(tmp_path_factory.mktemp("compared"), "--compare", *runs)


def test_runs_are_found_in_folders_and_files(folder):
    logs = runs_page.found([folder / "grpo", folder / "trl" / "trainer_state.json"])
    assert [log.name for log in logs] == ["grpo/seed-0", "grpo/seed-1", "grpo/seed-2", "trl/trainer_state.json"]
    assert [log.name for log in runs_page.found([folder / "grpo" / "seed-1"])] == ["seed-1"]
    assert len(runs_page.found([folder], folder)) == 7


def test_the_words_are_those_of_page_runs(folder, compared):
    groups = run_curves.experiments(runs_page.found([folder / "grpo", folder / "<b>clip", folder / "trl"]))
    lines = run_curves.curves(groups, "reward", "step", 0)
    sentence = winners.sentence("Reward", winners.ends(groups, lines, "reward"))
    assert "highest in trl" in sentence
    text = compared.read_text()
    assert sentence.replace("<", "&lt;").replace(">", "&gt;") in text
    assert "<b>" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"https?:|//[a-z]|@import|url\(", text)


def test_equal_runs_cannot_be_told_apart(folder, tmp_path):
    text = published(tmp_path, "--compare", str(folder / "grpo"), str(folder / "<b>clip")).read_text()
    assert re.search(r"Reward: highest in [^.]*, 0\.\d+ ± [^.]*\.\d+\. Cannot be told apart from it: ", text)


@pytest.mark.parametrize("weight", [0.0, 0.6])
def test_lines_and_bands_are_those_of_page_runs(browser, folder, compared, weight):
    groups = run_curves.experiments(runs_page.found([folder / "grpo", folder / "<b>clip", folder / "trl"]))
    tab = browser.new_page()
    tab.goto(compared.as_uri())
    pictures = json.loads(tab.locator("section script").text_content())["pictures"]
    for number, metric in enumerate(("entropy", "reward")):
        expected = run_curves.curves(groups, metric, "step", weight)
        found = tab.evaluate("([lines, w]) => lines.map((line) => drawn(line, w))", [pictures[0][number], weight])
        for line, smooth in zip(found, expected, strict=True):
            np.testing.assert_allclose(line["y"], smooth.smooth.mean(0), rtol=1e-3)
            if len(smooth.smooth) > 1:
                np.testing.assert_allclose(line["low"], smooth.smooth.min(0), rtol=1e-3)
                np.testing.assert_allclose(line["high"], smooth.smooth.max(0), rtol=1e-3)
            assert (line.get("raw") is not None) == (weight > 0)
    tab.close()


def test_a_telephone_shows_the_verdict_and_the_controls_move_the_picture_only(browser, compared):
    with telephone(browser, compared) as tab:
        verdict, metric, slider = tab.get_by_role("status"), tab.get_by_label("Metric"), tab.get_by_role("slider")
        for part in (verdict, metric):
            assert is_on_the_screen(part)
        assert verdict.inner_text().startswith("Entropy: highest in ")
        metric.select_option("Reward")
        words = verdict.inner_text()
        assert words.startswith("Reward: highest in trl")
        lines = tab.locator("svg.curves path.line")
        before = lines.evaluate_all("lines => lines.map((line) => line.getAttribute('d'))")
        slider.focus()
        tab.keyboard.press("End")
        assert lines.evaluate_all("lines => lines.map((line) => line.getAttribute('d'))") != before
        tab.get_by_role("checkbox", name="grpo").uncheck()
        assert lines.count() == len(before) - 1 == 2
        assert verdict.inner_text() == words


def test_the_index_has_every_experiment_with_its_curve(browser, folder, tmp_path):
    path = published(tmp_path, "--runs", str(folder))
    context = browser.new_context(viewport=PHONE)
    tab = context.new_page()
    tab.goto(path.as_uri())
    assert tab.get_by_role("heading", level=1).inner_text() == "7 runs, 3 experiments"
    names = tab.get_by_role("heading", level=2).all_inner_texts()
    assert set(names) == {"grpo/seed, 3 runs", "<b>clip/seed, 3 runs", "trl/trainer_state.json"}
    metric, first = tab.get_by_label("Metric"), tab.locator("article").first
    for part in (metric, first):
        assert is_on_the_screen(part)
    curve = first.locator("path.line")
    before, told = curve.get_attribute("d"), first.inner_text()
    metric.select_option("Reward")
    assert curve.get_attribute("d") != before
    assert first.inner_text() != told
    assert tab.locator("svg.curves path.line").count() == 3
    context.close()


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["--compare", "nowhere"], "nowhere does not exist"),
        (["--compare", "empty"], "empty holds no run"),
        (["--runs", "empty"], "empty holds no run"),
        (["--compare", "many"], "--compare takes 8 experiments at most, not 9"),
    ],
)
def test_what_cannot_be_published_is_said_in_one_line(args, names, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for number in range(9):
        log = RunLog(tmp_path / "many" / str(number), {"lr": number}, 0)
        log.log(0, {"entropy": 1.0})
        log.close()
    assert main(["publish", *args]) == 2
    error = capsys.readouterr().err
    assert names in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page").exists()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_finding(browser, compared, scheme):
    context = browser.new_context(viewport=PHONE, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.goto(compared.as_uri())
    found = Axe().run(tab).response["violations"]
    assert [(v["id"], node["html"][:160]) for v in found for node in v["nodes"]] == []
    context.close()
