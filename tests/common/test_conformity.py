"""docs/conformity.md is what its script writes, names every name, and holds for the installed peers, measured anew."""

import json
import warnings
from pathlib import Path

import conformity
import pytest

from entrostat.about.description import KINDS, names

ROOT = Path(__file__).parents[2]
INSTALLED = [c for c in conformity.COMPARISONS if not c.clone]


def test_the_page_is_what_the_script_writes():
    results = json.loads((ROOT / "docs/data/conformity.json").read_text())
    assert list(results) == [conformity.identity(c) for c in conformity.COMPARISONS]
    assert (ROOT / "docs" / "conformity.md").read_text() == conformity.markdown(results)


def test_every_name_is_on_the_page():
    text = (ROOT / "docs" / "conformity.md").read_text()
    for kind in KINDS:
        for name in names(kind):
            assert any(f"{before}{name}{after}" in text for before in "`+" for after in "` +"), name


@pytest.mark.parametrize("comparison", INSTALLED, ids=conformity.identity)
def test_installed_peers_agree(comparison):
    pytest.importorskip(comparison.peer.split()[0].lower())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss, gradient = comparison.measure()
    assert loss < comparison.tolerance
    assert gradient is None or gradient < comparison.tolerance


def test_what_is_not_rounding_has_a_reason():
    results = json.loads((ROOT / "docs/data/conformity.json").read_text())
    for c in conformity.COMPARISONS:
        assert c.reason or all(x is None or x < conformity.ROUNDING for x in results[conformity.identity(c)]), c.key
