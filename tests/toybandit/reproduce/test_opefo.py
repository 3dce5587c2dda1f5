"""OPEFO, figures 2, 4 and 5 and table 2. Training runs are those of QUICK effort: 24 states, 80 rollouts, 2 seeds."""

import pytest

from toybandit.reproduce import OUT_OF_REACH
from toybandit.reproduce.opefo import balance, entropy_flow, training_dynamics, variants
from toybandit.reproduce.registry import QUICK

pytestmark = pytest.mark.slow


def test_response_length_is_out_of_reach():
    assert {"opefo-4c", "opefo-table-1"} <= set(OUT_OF_REACH)


def test_the_exact_flow_accounts_for_the_entropy_and_equation_6_does_not(drawn_from_its_table):
    data = entropy_flow(QUICK)
    for name in ("GRPO", "on-policy"):
        measured = data.numbers[f"measured, {name}"]
        assert measured < -0.5
        assert data.numbers[f"net, exact, {name}"] / measured == pytest.approx(1, abs=0.2)
        assert data.numbers[f"net, paper, {name}"] / measured > 5
    for estimate in ("exact", "paper"):
        assert data.numbers[f"upper, {estimate}"] > 0 > data.numbers[f"lower, {estimate}"]
    assert drawn_from_its_table(entropy_flow, data)


def test_opefo_drives_the_entropy_up(drawn_from_its_table):
    data = training_dynamics(QUICK)
    start = data.numbers["OPEFO, start"]
    assert data.numbers["OPEFO"] > start > data.numbers["OPEFO, exact"] > data.numbers["strict on-policy"] + 0.2
    assert data.numbers["OPEFO, reward"] < data.numbers["OPEFO, exact, reward"] < data.numbers["GRPO, reward"]
    assert drawn_from_its_table(training_dynamics, data)


def test_the_balance_stays_positive(drawn_from_its_table):
    data = balance(QUICK)
    assert data.numbers["flow of eq. 6, rollouts above 0"] == 1
    assert data.numbers["flow of eq. 6, mean"] > 0.1  # the paper's mean is .001
    assert drawn_from_its_table(balance, data)


def test_only_the_exact_balance_has_no_net_flow_and_only_in_small_steps(drawn_from_its_table):
    data = variants(QUICK)
    start = data.numbers["start"]
    small = {name: data.numbers[f"{name}, entropy, η = 0.1"] - start for name in ("GRPO", "OPEFO", "exact")}
    assert abs(small["exact"]) < 0.05
    assert small["OPEFO"] > 0.05
    assert small["GRPO"] < -0.2
    assert data.numbers["exact, entropy, η = 1"] < start - 0.2
    assert data.numbers["static, entropy, η = 1"] == pytest.approx(data.numbers["GRPO, entropy, η = 1"], abs=0.05)
    assert drawn_from_its_table(variants, data)
