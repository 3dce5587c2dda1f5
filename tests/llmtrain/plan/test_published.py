from dataclasses import replace

import pytest

from llmtrain.plan.cost import make_plan
from llmtrain.plan.plan_presets import get_preset
from llmtrain.plan.published import LENGTH_SHARES, PUBLISHED, estimate, ratio


@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: run.preset)
def test_the_estimate_lies_below_the_fact_and_within_a_factor_of_six(run):
    ratios = [ratio(run, share) for share in LENGTH_SHARES]
    assert ratios == sorted(ratios)
    assert ratios[0] > 1 / 6
    assert ratios[-1] < 1


def test_presets_assume_the_middle_length():
    run = PUBLISHED[0]
    assert make_plan(get_preset(run.preset).config).gpu_hours == pytest.approx(ratio(run) * run.gpu_hours)
    assert estimate(run, 1 / 4).config.mean_response_length == 2048


def test_the_arithmetic_alone_cannot_exceed_the_fact():
    """8 FLOP per parameter and token at the peak of 64 H20 is a lower bound for every estimate."""
    plan = estimate(PUBLISHED[0], 1 / 4)
    bound = 8 * plan.layout.model.body_matmul * plan.layout.tokens / (64 * 148e12)
    assert bound < sum(plan.training.values()) < 4 * bound


def test_a_run_that_cannot_be_is_not_estimated():
    with pytest.raises(ValueError, match="mean_response_length"):
        estimate(replace(PUBLISHED[0]), 1.0)
