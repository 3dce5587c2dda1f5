"""Entropies of a run whose sampling temperature moved are not compared, by the verdict or by the law."""

import pytest

from entrostat.logs.diagnosis.facts import measure
from entrostat.logs.doubts import heated


def log(heats):
    """Return rows whose entropy follows the temperature alone, and a reward that follows it."""
    return [
        {"step": i, "temperature": heat, "entropy": 1.2 * (heat - 0.2), "reward": 0.8 - 0.1 * heat}
        for i, heat in enumerate(heats)
    ]


def test_a_fall_with_the_temperature_is_no_collapse():
    facts = measure(log([1.5 - 0.012 * i for i in range(100)]))
    assert "moved from 1.5 to 0.312" in facts.incomparable
    assert facts.entropy is None
    assert facts.law is None
    assert facts.no_law == facts.incomparable
    assert facts.happened.first is None


@pytest.mark.parametrize("heats", [[0.7] * 100, [1.0, 1.04] * 50])
def test_a_temperature_that_stays_changes_nothing(heats):
    rows = log(heats)
    without = [{name: x for name, x in row.items() if name != "temperature"} for row in rows]
    assert measure(rows).incomparable == ""
    assert measure(rows).entropy == measure(without).entropy


def test_the_reason_names_both_ends():
    assert heated([1.0, 1.2]).startswith("the sampling temperature moved from 1 to 1.2,")
    assert heated([1.0, 1.0]) == heated([]) == ""
