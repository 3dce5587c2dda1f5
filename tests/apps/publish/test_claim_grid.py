"""Grid of a claim's trial: its positions, its numbers and its errors."""

import numpy as np
import pytest

from entrostat_app.publish.claim_grid import LARGEST, Grid, parse, rounded
from toybandit.claims import CLAIMS


def test_every_entry_is_the_trial_at_its_value():
    grid = parse("thm1-centred.shift=0.5")
    entries = list(grid.entries())
    assert [entry["value"] for entry in entries] == [f"{value:g}" for value in grid.values]
    for value, entry in zip(grid.values, entries, strict=True):
        outcome = CLAIMS["thm1-centred"].live.run(shift=value)
        assert (entry["holds"], entry["because"]) == (outcome.holds, outcome.because)
        for name in ("x", "predicted", "measured"):
            np.testing.assert_allclose(entry[name], getattr(outcome, name), rtol=1e-5, atol=0)
    assert [entry["value"] for entry in entries if entry["holds"]] == ["0"]
    assert entries[0]["broken"] == ["Assumption broken: E[A] = 0"]
    assert entries[0]["meaning"].startswith("The claim needs this assumption")


def test_the_slider_has_the_positions_of_the_explorer():
    np.testing.assert_allclose(parse("thm1-centred.shift").values, np.arange(-20, 21) / 10, atol=1e-12)


def test_a_start_between_the_positions_is_one_of_them():
    grid = parse("thm1-centred.shift=0.55")
    assert grid.values[grid.values.index(0.5) : grid.values.index(0.6) + 1] == [0.5, 0.55, 0.6]


def test_without_a_value_it_starts_where_the_claim_does():
    assert parse("thm1-centred.shift").start == CLAIMS["thm1-centred"].live.start["shift"]


def test_choices_and_switches_have_a_position_each():
    assert parse("lemma1-remainder.arms=1000").values == ["2", "16", "64", "1000", "50000"]
    switch = parse("windup.anti_windup=false")
    assert (switch.values, switch.start) == ([False, True], False)


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_control_has_a_grid(claim):
    case = CLAIMS[claim].live
    for parameter in case.trial.parameters:
        grid = Grid(case=case, parameter=parameter, start=case.start[parameter.key])
        assert grid.start in grid.values
        assert [parameter.checked(value) for value in grid.values] == grid.values
        assert len(set(grid.values)) == len(grid.values) <= LARGEST
        if parameter.low is not None:
            assert (grid.values[0], grid.values[-1]) == (parameter.low, parameter.high)


def test_numbers_are_short_and_finite():
    assert rounded(np.array([1 / 3, -0.0, 1e-12 / 3, np.nan, np.inf])) == [0.333333, 0.0, 3.33333e-13, None, None]
    assert str(rounded(np.array([-0.0]))[0]) == "0.0"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("thm1-centerd.shift=0.5", "'thm1-centerd'; .*thm1-centred"),
        ("thm1-centerd", "'thm1-centerd'; .*thm1-centred"),
        ("thm1-centred", "thm1-centred.rule: rule, shift, "),
        ("thm1-centred.shif=0.5", "'shif'; .*shift"),
        ("thm1-centred.shift=5", "shift .*-2 and 2, not 5"),
        ("thm1-centred.shift=abc", "shift .*'abc'"),
        ("thm1-centred.arms=2.5", "arms .*whole number, not 2.5"),
        ("lemma1-remainder.arms=3", "arms .*2, 16, 64, 1000, 50000, not '3'"),
    ],
)
def test_what_cannot_be_published_is_said_in_one_line(text, names):
    with pytest.raises(ValueError, match=f"^--claim {text}: [^\n]*{names}[^\n]*$"):
        parse(text)


def test_the_dot_in_a_claims_name_belongs_to_it():
    grid = parse("thm4.2-p-control.kp=2")
    assert (grid.case.claim, grid.parameter.key, grid.start) == ("thm4.2-p-control", "kp", 2.0)
