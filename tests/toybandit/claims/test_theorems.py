"""Symbols, derivations and tests of the theorems, as the report prints them."""

from pathlib import Path

import pytest

from toybandit.claims import CLAIMS
from toybandit.claims.theorems import SYMBOLS, TESTS, THEOREM_OF, THEOREMS, derived, symbols

FOLDER = Path(__file__).parents[3] / TESTS


def test_every_test_file_belongs_to_one_theorem():
    files = [theorem.test for theorem in THEOREMS]
    assert sorted(files) == sorted(path.name for path in FOLDER.glob("test_*.py"))


def test_claims_are_known_and_belong_to_one_theorem():
    named = [claim for theorem in THEOREMS for claim in theorem.claims]
    assert len(named) == len(set(named)) == len(THEOREM_OF)
    assert set(named) <= set(CLAIMS)


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_derivations_are_short(theorem):
    assert 2 <= len(theorem.derivation) <= 4
    assert all(line.endswith(".") for line in theorem.derivation)


def test_lines_of_the_report():
    head, *lines = derived("steer-thm1", "..")
    assert head == (
        "- **Derivation** (STEER, theorem 1; tested in "
        "[test_steer_theorem_1.py](../tests/theory/test_steer_theorem_1.py)):"
    )
    assert len(lines) == 3
    assert derived("clip-free", "..") == []
    assert all(f"| {symbol} |" in symbols() for symbol in SYMBOLS)
