"""The claims in a language model, judged again from the measurements beside their page."""

import json
from pathlib import Path

import pytest

from llmtrain.studies import claims_page  # noqa: F401 (registers the claims)
from llmtrain.studies.claim_measurements import load
from llmtrain.studies.claim_registry import CLAIMS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", sorted(DOCS.glob("claims_lm*.md")), ids=lambda path: path.stem)
def test_verdicts_follow_from_the_measurements(page):
    folder, text = page.with_suffix(""), page.read_text()
    measured = load(folder / "measured.json.gz")
    written = json.loads((folder / "claims.json").read_text())
    assert written
    for one in written:
        record = CLAIMS[one["name"]](measured, power=True)
        assert record.verdict == one["verdict"]
        assert record.mutated == one["mutated"]
        for margin in record.margins:
            assert margin.values == pytest.approx(one["margins"][margin.name]["seeds"], abs=2e-4)
        assert f"## {one['name']}\n\n**{one['verdict'].capitalize()}.**" in text
