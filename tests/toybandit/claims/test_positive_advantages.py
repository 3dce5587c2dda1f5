"""Flows by the sign of the advantage: which tokens they count, and their shares on-policy."""

import pytest
import torch

from entrostat import Tokens, chain, make
from toybandit.claims.positive_advantages import SignProbe, flows, observed
from toybandit.claims.registry import Effort


def test_probe_leaves_clipped_tokens_out():
    """Two tokens of a coin with p = .6: A = 1 at a ratio of 1.1, and A = −1 at .7, which the lower bound stops."""
    p = torch.tensor([0.6, 0.4], dtype=torch.float64)
    entropy, s2, s2l = -(p * p.log()).sum(), (p * p).sum(), (p * p * p.log()).sum()
    logp = p[[0, 0]].log()
    ratio = torch.tensor([1.1, 0.7], dtype=torch.float64)
    moments = {name: value.expand(2) for name, value in {"entropy": entropy, "s2": s2, "s2l": s2l}.items()}
    advantage = torch.tensor([1.0, -1.0], dtype=torch.float64)
    tokens = Tokens(logp=logp, old_logp=logp - ratio.log(), advantage=advantage, **moments)
    info = chain(make("ppo").surrogate, SignProbe()).plan(tokens).info
    flow = 0.6 * (p[0].log() + entropy) - (s2l + entropy * s2)
    assert float(info["positive flow"]) == pytest.approx(float(-1.1 * flow / 2))
    assert float(info["negative flow"]) == 0


def test_on_policy_a_sign_has_its_share_of_the_step():
    """1 − ρ for A > 0, as weights by the sign of A cannot turn the expected step; both lower the entropy."""
    effort = Effort(instances=1, runs=8, states=48, rollouts=30)
    positive, negative = flows(effort, "on-policy")
    assert max(positive.max(), negative.max()) < 0
    share = (positive / (positive + negative)).mean()
    assert share == pytest.approx(1 - observed(effort, "on-policy").reward.mean(), abs=0.05)
