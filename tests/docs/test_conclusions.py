"""Pages that conclude something state their seeds, their errors, and what would have changed the conclusion."""

import re
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from entrostat import make

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = ("findings", "pi_control", "theory", "thermostat")
RANKED = ("equal_entropy", "evaluation", "leaderboard", "leaderboard_lm", "leaderboard_lm_2")
PAGES = (*RANKED, *MEASURED)
STATED = {
    "seeds": r"\bseeds?\b",
    "errors": r"±|standard error|\binterval|\b95%",
    "what would change it": r"\bwould\b|may\s+change\s+places",
}


def sections(page: str) -> list[str]:
    """Return the sections of second level."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8").split("\n## ")[1:]


@pytest.mark.parametrize("what", STATED)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_states_it(page, what):
    assert re.search(STATED[what], (DOCS / f"{page}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("what", STATED)
@pytest.mark.parametrize("section", sections("studies"), ids=lambda section: section.partition("\n")[0])
def test_every_study_states_it(section, what):
    assert re.search(STATED[what], section)


@pytest.mark.parametrize("page", ["equal_entropy", "leaderboard_lm", "leaderboard_lm_2"])
def test_every_number_of_a_table_has_an_error(page):
    """Either in the heading of its column or behind it."""
    for table in re.findall(r"(?:^\|.*\n)+", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE):
        header, _, *rows = (line.strip("|\n").split("|") for line in table.splitlines())
        measured = [i for i, name in enumerate(header) if re.search("entropy|reward|@|error", name)]
        assert measured
        for i in measured:
            assert "±" in header[i] or all("±" in row[i] for row in rows)


def test_the_default_mode_is_the_one_that_the_study_of_a_pretrained_model_chooses():
    (chosen,) = re.findall(r"the default is `(\w+)`", (DOCS / "findings.md").read_text(encoding="utf-8"))
    assert make("thermostat", target=0.5).parts[0].mode == chosen


def test_how_often_the_forecast_of_the_pretrained_study_was_right():
    """Signs and rank correlations, from the page's own table: rule, and forecast and outcome of two scores."""
    page = (DOCS / "findings.md").read_text(encoding="utf-8")
    table, _, said = page.partition("**Forecast**")[2].partition("The sign of the difference was as forecast in ")
    cells = [[re.findall(r"[+-]\d\.\d+", cell)[:1] for cell in row.split("|")[2:6]] for row in table.splitlines()]
    rows = [[float(cell) for (cell,) in row] for row in cells if len(row) == 4 and all(row)]
    said = " ".join(said.partition("\n\n")[0].split())
    chance, limits = float(re.search(r"stay within ±(\d\.\d+)", said)[1]), (DOCS / "predict.md").read_text("utf-8")
    beyond = []
    for name, forecast, outcome in (("avg@8", 0, 1), ("pass@8", 2, 3)):
        right = sum(row[forecast] * row[outcome] > 0 for row in rows)
        assert f"{right} of {len(rows)} in {name}" in said
        rho = spearmanr([row[forecast] for row in rows], [row[outcome] for row in rows]).statistic
        assert float(re.search(rf"([+-]\d\.\d+) in {name}", said)[1]) == pytest.approx(rho, abs=0.006)
        beyond += [name] if rho > chance else []
    assert ("Its order [cannot be told from\n  chance]" in limits) == (not beyond)
