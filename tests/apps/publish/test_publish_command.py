"""`entrostat publish`: the file it writes, its folder, and the page in Chromium at the width of a phone."""

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from telephone import PHONE, is_on_the_screen, telephone

from entrostat_app.entrostat_command import main

ROOT = Path(__file__).parents[3]
CLAIM = ("publish", "--claim", "thm1-centred.shift=0.5")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Path of a published page that starts where the claim fails."""
    folder = tmp_path_factory.mktemp("published") / "page"
    assert main([*CLAIM, "--out", str(folder)]) == 0
    return folder / "index.html"


def data(text: str) -> list[dict]:
    """Return the data of each section."""
    return [json.loads(part) for part in re.findall(r'<script type="application/json">(.*?)</script>', text)]


def test_the_page_is_one_file_that_names_no_other(page):
    text = page.read_text()
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    assert not re.findall(r"https?:|//[a-z]|@import|url\(", text)
    assert re.findall(r'\b(?:src|href)="([^"]*)"', text) == ["data:,"]
    assert "default-src 'none'" in text


def test_the_verdict_is_there_without_the_script(page):
    text = page.read_text()
    (section,) = data(text)
    entry = section["entries"][int(re.search(r'<input type="range"[^>]* value="(\d+)"', text)[1])]
    assert (entry["value"], entry["holds"]) == ("0.5", False)
    assert f"<strong>Fails here:</strong> {entry['because']}" in text
    assert "Under the policy gradient, a state&#x27;s entropy changes by about" in text
    assert not re.search("<!--[A-Z]+-->", text)


def test_several_claims_are_sections_with_links(tmp_path):
    out = tmp_path / "page"
    assert (
        main(["publish", "--claim", "thm1-centred.shift=0", "--claim", "lemma1-remainder.arms", "--out", str(out)]) == 0
    )
    text = (out / "index.html").read_text()
    assert re.findall('<section id="(.*?)"', text) == ["thm1-centred.shift", "lemma1-remainder.arms"]
    assert re.findall('href="#(.*?)"', text) == ["thm1-centred.shift", "lemma1-remainder.arms"]
    assert [len(section["entries"]) for section in data(text)] == [41, 5]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["publish"], "name what to publish, such as --claim thm1-centred.shift=0.5"),
        ([*CLAIM, "--claim", "thm1-centred.shift=1"], "--claim thm1-centred.shift is given twice"),
        (["publish", "--claim", "thm1-centred.shift=9"], "shift must be between -2 and 2, not 9"),
        (["publsh"], "unknown command 'publsh'"),
    ],
)
def test_errors_are_one_line(args, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_replaced_only_on_request(page, capsys):
    page.write_text(page.read_text().replace("Fails here", "Changed"))
    assert main([*CLAIM, "--out", str(page.parent)]) == 2
    assert "pass --overwrite" in capsys.readouterr().err
    assert main([*CLAIM, "--out", str(page.parent), "--overwrite"]) == 0
    assert "Fails here" in page.read_text()


@pytest.mark.parametrize("name", ["notes.md", "index.html"])
def test_files_of_others_are_kept(name, tmp_path, capsys):
    (tmp_path / name).write_text("mine")
    assert main([*CLAIM, "--out", str(tmp_path), "--overwrite"]) == 2
    assert f"contains {name}, which this command did not write" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "page").write_text("mine")
    assert main([*CLAIM, "--out", str(tmp_path / "page")]) == 2
    assert "is a file: name a folder" in capsys.readouterr().err


def test_the_command_is_installed_with_the_other_commands(capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    module, _, name = project["project"]["scripts"]["entrostat"].partition(":")
    assert getattr(import_module(module), name) is main
    assert main(["--help"]) == 0
    assert main(["describe", "thermostat"]) == 0
    printed = capsys.readouterr().out
    assert "entrostat publish --claim" in printed
    assert "thermostat (controller)" in printed
    assert main(["--version"]) == 0


def test_a_teacher_opens_the_page_on_a_telephone(browser, page):
    """From the failing value of the link to the one value at which the claim holds, and back."""
    with telephone(browser, page) as tab:
        verdict, slider = tab.get_by_role("status"), tab.get_by_role("slider", name="Mean of the advantage, E[A]")
        for part in (verdict, slider):
            assert is_on_the_screen(part)
            assert part.bounding_box()["y"] >= tab.get_by_role("img").bounding_box()["y"]
        assert tab.evaluate("scrollY") == 0
        (section,) = data(page.read_text())
        entries = {entry["value"]: entry for entry in section["entries"]}
        assert verdict.inner_text() == f"Fails here: {entries['0.5']['because']}"
        curve = tab.locator("path.measured[d*=L]")
        first = curve.get_attribute("d")
        slider.focus()
        for _ in range(5):
            tab.keyboard.press("ArrowLeft")
        assert slider.get_attribute("aria-valuetext") == "0"
        assert verdict.inner_text() == f"Holds here: {entries['0']['because']}"
        assert tab.get_by_text("All assumptions are met, and the claim holds.").is_visible()
        assert curve.get_attribute("d") != first
        tab.keyboard.press("ArrowLeft")
        assert verdict.inner_text() == f"Fails here: {entries['-0.1']['because']}"
        assert tab.get_by_text("Assumption broken: E[A] = 0.").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_finding(browser, page, scheme):
    context = browser.new_context(viewport=PHONE, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.goto(page.as_uri())
    red = int(re.findall(r"\d+", tab.evaluate("getComputedStyle(document.body).backgroundColor"))[0])
    assert (red < 60) == (scheme == "dark")
    assert Axe().run(tab).response["violations"] == []
    context.close()
