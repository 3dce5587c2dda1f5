import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrostat as es
from entrostat.settings.schedules import PerRun, is_schedule, per_run, plain, plain_target, schedule


def values(schedule, steps, total=None, initial=1.0):
    pairs = [schedule.at(step, total) for step in steps]
    return [number + share * initial for number, share in pairs]


def test_linear_goes_straight_and_stays():
    found = es.linear(0.65, 0.15, steps=400)
    assert values(found, [0, 100, 200, 400, 900]) == pytest.approx([0.65, 0.525, 0.4, 0.15, 0.15])


def test_cosine_is_half_a_period():
    found = es.cosine(0.65, 0.15, steps=400)
    quarter = 0.15 + 0.5 * (1 + math.cos(math.pi / 4)) / 2
    assert values(found, [0, 100, 200, 400, 401]) == pytest.approx([0.65, quarter, 0.4, 0.15, 0.15])


def test_piecewise_keeps_a_value_until_the_next():
    found = es.piecewise({200: 0.3, 0: 0.45})
    assert values(found, [0, 199, 200, 10_000]) == [0.45, 0.45, 0.3, 0.3]


def test_without_steps_the_end_is_the_last_rollout_step():
    found = es.linear(1.0, 0.5)
    assert values(found, [0, 2, 4], total=5) == [1.0, 0.75, 0.5]
    assert values(found, [0], total=1) == [1.0]
    with pytest.raises(ValueError, match=r"^linear\(1, 0.5\) without steps needs StepStats.total_steps"):
        found.at(3)


def test_relative_values_are_shares_of_the_first_entropy():
    assert values(schedule("0.4x"), [0, 7], initial=2.0) == [0.8, 0.8]
    assert values(es.linear("1x", "0.4x", steps=4), [0, 2, 4], initial=2.0) == pytest.approx([2.0, 1.4, 0.8])
    assert values(es.linear("1x", 0.5, steps=4), [0, 2, 4], initial=2.0) == pytest.approx([2.0, 1.25, 0.5])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("linear(0.65, 0.15, 400)", es.linear(0.65, 0.15, steps=400)),
        (" linear( .65,0.15 , steps=400 ) ", es.linear(0.65, 0.15, steps=400)),
        ("cosine(1x, 0.4x)", es.cosine("1x", "0.4x")),
        ("piecewise(0: 0.45, 200: 0.3)", es.piecewise({0: 0.45, 200: 0.3})),
        ("piecewise({0: .45, 200: .30})", es.piecewise({0: 0.45, 200: 0.3})),
        ("0.4x", es.piecewise({0: "0.4x"})),
        ("4e-1 x", es.piecewise({0: "0.4x"})),
    ],
)
def test_text_stands_for_a_schedule(text, same):
    assert is_schedule(text)
    assert schedule(text) == same
    assert schedule(str(same)) == same


NUMBERS = st.floats(-1e6, 1e6)


@settings(deadline=None, max_examples=60)
@given(
    kind=st.sampled_from([es.linear, es.cosine]),
    ends=st.tuples(NUMBERS, NUMBERS),
    steps=st.integers(1, 10**6),
    at=st.floats(0, 2e6),
)
def test_values_stay_between_the_ends_and_text_loses_nothing(kind, ends, steps, at):
    found = kind(*ends, steps=steps)
    (value,) = values(found, [at])
    slack = 1e-9 * max(map(abs, ends))
    assert min(ends) - slack <= value <= max(ends) + slack
    assert schedule(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "linear(0.6)",
        "linear(0.6, 0.1, 0)",
        "linear(0.6, 0.1, -5)",
        "linear(0.6, 0.1, 2.5)",
        "linear(0.6, 0.1, 4, 5)",
        "linear(0.6, nan, 4)",
        "linear(0.6, inf, 4)",
        "linear(0.6, a, 4)",
        "linear(0.6, 0.1, 4",
        "piecewise(5: 0.3)",
        "piecewise(0: 0.3, 0: 0.4)",
        "piecewise(0.3)",
        "piecewise()",
        "cubic(0.6, 0.1, 4)",
    ],
)
def test_other_text_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=r"^'.*' is no schedule") as caught:
        schedule(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [True, math.nan, math.inf, "a"])
def test_wrong_values_are_refused(wrong):
    with pytest.raises(ValueError, match="a value of a schedule is a"):
        es.linear(wrong, 0.1, steps=4)


def test_side_by_side():
    found = per_run([0.3, "linear(0.6, 0.2, 4)", "0.5x"])
    assert isinstance(found, PerRun)
    assert found.at(2) == ([0.3, 0.4, 0.0], [0.0, 0.0, 0.5])
    assert found.relative


def test_settings_hold_text():
    given_settings = {"target": es.linear(0.6, 0.2, steps=4), "kp": [1.0, es.piecewise({0: 2})], "mode": "bonus"}
    expected = {"target": "linear(0.6, 0.2, 4)", "kp": [1.0, "2"], "mode": "bonus"}
    assert plain(given_settings) == expected


def test_targets_of_configurations():
    given_targets = [0.4, "0.4", None, "0.4x", es.linear(1, 0.5, steps=4), "warm"]
    assert [plain_target(target) for target in given_targets] == [0.4, 0.4, None, "0.4x", "linear(1, 0.5, 4)", "warm"]


def test_torch_is_not_imported():
    code = "import sys, entrostat; entrostat.linear(1, 0, steps=3); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
