"""Pages that conclude something state their seeds, their errors, and what would have changed the conclusion."""

import re
from pathlib import Path

import pytest

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
