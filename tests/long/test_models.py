"""Every family of transformers that generates text is right, or refused: docs/models.md. `make test-long` runs it."""

import pytest
from benchmarks.model_families import FAMILIES
from benchmarks.models import PAGE, try_family
from benchmarks.models_under_vllm import own_families, try_apart

pytestmark = [pytest.mark.long, pytest.mark.slow]
WRONG = ("gradients differ", "sampled with other log-probabilities")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_right_or_refused(family):
    row = try_family(family)
    said = [*row.layouts.values(), row.sampling]
    assert not [reason for reason in said if reason.startswith(WRONG)]
    known = next((line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{family}` | ")), "")
    if row.right:
        assert "| right |" in known, f"{family} is right: python -m benchmarks.models"


@pytest.mark.parametrize("family", own_families())
def test_a_family_under_vllm(family):
    known = next((line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{family}` | ")), "")
    under = known.split(" | ")[6:7]
    if under in (["right"], ["no"]):
        assert (under == ["right"]) == (try_apart(family) == ""), f"{family}: python -m benchmarks.models"


def test_a_hundred_families_are_right():
    assert int(PAGE.read_text().partition(" of ")[0].split()[-1]) >= 100
