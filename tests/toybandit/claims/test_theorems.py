"""Symbols, derivations and tests of the theorems, as the report prints them."""

import re
from pathlib import Path

import pytest

from toybandit.claims import CLAIMS
from toybandit.claims.report import derivation_of
from toybandit.claims.theorems import SYMBOLS, TESTS, Theorem, derived, symbols

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / TESTS
THEOREMS = list(dict.fromkeys(claim.theorem for claim in CLAIMS.values() if claim.theorem))


def test_every_test_file_belongs_to_one_theorem():
    files = [theorem.test for theorem in THEOREMS]
    assert sorted(files) == sorted(path.name for path in FOLDER.glob("test_*.py"))


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_derivations_are_short(theorem):
    assert 2 <= len(theorem.derivation) <= 4
    assert all(line.endswith(".") for line in theorem.derivation)


def test_lines_of_the_report():
    head, *lines = derivation_of("steer-thm1")
    assert head == (
        "- **Derivation** (STEER, theorem 1; tested in "
        "[test_steer_theorem_1.py](../tests/theory/test_steer_theorem_1.py)):"
    )
    assert len(lines) == 3
    assert derivation_of("clip-free") == [
        "- **Tested in** [test_clipping.py](../tests/toybandit/claims/test_clipping.py)"
    ]
    ours = Theorem(name="Ours", derivation=("It is so.",))
    assert derived(ours, "elsewhere", "..") == ["- **Derivation** (Ours):", "    - It is so."]
    assert derived(None, "elsewhere", "..") == []
    assert all(f"| {symbol} |" in symbols() for symbol in SYMBOLS)


def test_the_page_links_every_claim_to_a_test_that_exists():
    page = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    sections = {section.partition("\n")[0]: section for section in page.split("\n### ")[1:]}
    assert set(sections) == set(CLAIMS)
    for claim, section in sections.items():
        lines = derivation_of(claim)
        assert "\n".join(lines) in section
        assert (ROOT / "docs" / re.search(r"\]\((.+?)\)", lines[0])[1]).exists(), claim
    assert symbols() in page
