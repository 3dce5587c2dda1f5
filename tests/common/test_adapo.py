"""adapo against numbers worked out by hand."""

from math import nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import CompositionWarning, StepStats, Tokens, make

BELOW, ABOVE = 0.4, 0.6


def widths(entropies, **settings) -> list[float]:
    controller = make("adapo", **{"target": 0.5, **settings})
    found = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
        found.append(float(controller.surrogate.width))
    return found


def test_the_width_is_multiplied_below_the_target_and_divided_above():
    settings = {"eps_high": 0.2, "factor": 2.0, "eps_min": 0.08, "eps_max": 0.5}
    assert widths([BELOW] * 3, **settings) == pytest.approx([0.4, 0.5, 0.5])
    assert widths([ABOVE] * 3, **settings) == pytest.approx([0.1, 0.08, 0.08])
    assert widths([BELOW, nan, ABOVE, 0.5], **settings) == pytest.approx([0.4, 0.4, 0.2, 0.2])


def test_the_published_target_is_the_initial_entropy():
    settings = {"target": "1x", "eps_high": 0.2, "factor": 2.0}
    assert widths([1.5, 1.4, 1.6], **settings) == pytest.approx([0.2, 0.4, 0.2])
    assert str(make("adapo").surrogate.schedules["target"]) == "1x"


def test_only_the_upper_bound_moves():
    """Log-ratios .3 and −.3 of tokens with A = ±1: at E = .2 both successes and failures stop, at E = .4 no success."""
    logp = torch.tensor([-1.0, -1.0], dtype=torch.float64)
    old = logp - torch.tensor([0.3, -0.3], dtype=torch.float64)
    tokens = Tokens(logp=logp, old_logp=old, advantage=torch.tensor([1.0, -1.0], dtype=torch.float64))
    controller = make("adapo", target=0.5, eps_high=0.2, factor=2.0)
    assert controller.plan(tokens).clipped(logp).tolist() == [True, True]
    controller.observe(StepStats(entropy=BELOW))
    assert controller.plan(tokens).clipped(logp).tolist() == [False, True]


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.01, 3))
def test_the_width_stays_within_its_limits(entropies, start):
    assert all(0.01 <= width <= 3 for width in widths(entropies, eps_high=start))


def test_its_state_is_restored():
    one, other = make("adapo", target=0.5), make("adapo", target=0.5)
    one.observe(StepStats(entropy=BELOW))
    other.load_state_dict(one.state_dict())
    assert other.surrogate.width == one.surrogate.width == 0.28 * 1.3


def test_both_rules_of_the_paper_run_together():
    with pytest.warns(CompositionWarning, match="one entropy"):
        make("adapo+repo_r", **{"adapo.target": 0.5, "repo_r.target": 0.5})
    with pytest.raises(ValueError, match="both set the clip bounds"):
        make("adapo+bapo")


def test_bad_settings():
    with pytest.raises(ValueError, match="eps_high must lie between eps_min and eps_max"):
        make("adapo", eps_high=5.0)
