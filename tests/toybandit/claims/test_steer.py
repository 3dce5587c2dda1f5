"""Ranks and correlations of weighted tokens, and what an intervention changes."""

import numpy as np
import pytest
import torch

from entrostat import Tokens, chain, make
from entrostat.controllers.quadrant_mask import QuadrantMask
from toybandit.claims.registry import Effort
from toybandit.claims.steer import (
    ESTIMATES,
    INTERVENTIONS,
    SPREAD,
    as_predicted,
    better_than_cov,
    ranking,
    ranks,
    weighted_pearson,
)
from toybandit.instruments import weights


def test_ranks():
    """Shares of .2, .5 and .3 in the order 10, 20, 30: mid-ranks .1, .45 and .85."""
    x, share = torch.tensor([[20.0, 30.0, 10.0]]), torch.tensor([[0.5, 0.3, 0.2]])
    torch.testing.assert_close(ranks(x, share), torch.tensor([[0.45, 0.85, 0.1]]))


def test_pearson_weighs_as_repeating_does():
    x, y = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([3.0, 1.0, 2.0])
    repeated = np.corrcoef([1, 2, 2, 4], [3, 1, 1, 2])[0, 1]
    assert weighted_pearson(x, y, torch.tensor([0.25, 0.5, 0.25])).item() == pytest.approx(repeated)


def test_exact_flow_ranks_first():
    found = ranking(Effort(instances=1, runs=2, states=1, rollouts=1))
    assert min(found["MSE"], key=lambda name: found["MSE"][name].max()) == "exact"
    for metric in ("Pearson", "Spearman"):
        assert found[metric]["exact"].min() > 0.999
        assert all(found[metric][name].max() < 0.95 for name in ESTIMATES[1:])


def test_covariance_falls_behind_where_states_differ():
    effort = Effort(instances=1, runs=4, states=1, rollouts=1)
    alike, unlike = (ranking(effort, spread)["Pearson"] for spread in (0.0, SPREAD))
    assert unlike["Cov"].mean() < alike["Cov"].mean() - 0.05
    assert not better_than_cov(ranking(effort)).holds
    assert better_than_cov(ranking(effort, SPREAD)).holds


@pytest.mark.parametrize(("name", "token"), [("mask I", 0), ("double II", 1), ("mask III", 2), ("double IV", 3)])
def test_intervention_finds_its_quadrant(name, token):
    """Tokens of quadrants I to IV and one in between, all of them chosen."""
    p = torch.tensor([0.9, 0.1, 0.1, 0.9, 0.5], dtype=torch.float64)
    advantage = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    quadrant, factor, _ = INTERVENTIONS[name]
    rule = QuadrantMask(**weights(quadrant, factor), share=1.0)
    plan = chain(make("ppo").surrogate, rule).plan(Tokens(logp=p.log(), old_logp=p.log(), advantage=advantage))
    expected = torch.ones(5, dtype=torch.float64)
    expected[token] = factor
    torch.testing.assert_close(plan.weight.expand(5), expected)


def test_interventions_of_the_wrong_sign_are_seen():
    effects = {name: settings[2] * np.array([0.1, 0.11, 0.09]) for name, settings in INTERVENTIONS.items()}
    assert as_predicted(effects).holds
    assert not as_predicted({**effects, "mask I": -effects["mask I"]}).holds
    assert not as_predicted({**effects, "mask I": effects["mask I"] / 100}).holds
