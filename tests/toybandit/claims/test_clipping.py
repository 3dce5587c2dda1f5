"""What the probe of clipping counts, and what is left of the claims without the reuse of samples."""

import numpy as np
import pytest
import torch

from entrostat import Tokens, chain, make
from entrostat.surrogates.ratio_clip import PPO
from toybandit.claims.checks import rising
from toybandit.claims.clipping import ClipProbe, clipped, exchanged
from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies

EFFORT = Effort(instances=1, runs=4, states=16, rollouts=20)


def test_probe():
    """Four tokens of a fair coin, p = ½: flows are 0 there, so that p is moved to .6, H = .673 and Σp² = .52.

    Ratios are 1.3 and 1.1 for A = 1 and .7 and .9 for A = −1: the first and the third are stopped.
    """
    p = torch.tensor([0.6, 0.4], dtype=torch.float64)
    entropy, s2, s2l = -(p * p.log()).sum(), (p * p).sum(), (p * p * p.log()).sum()
    logp = p[[0, 1, 0, 1]].log()
    ratio = torch.tensor([1.3, 1.1, 0.7, 0.9], dtype=torch.float64)
    advantage = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    moments = {name: value.expand(4) for name, value in {"entropy": entropy, "s2": s2, "s2l": s2l}.items()}
    tokens = Tokens(logp=logp, old_logp=logp - ratio.log(), advantage=advantage, **moments)
    info = chain(make("ppo").surrogate, ClipProbe()).plan(tokens).info
    assert [float(info[f"{name} tokens"]) for name in ("high", "low", "positive")] == [1, 1, 2]
    assert float(info["high probability"]) == pytest.approx(0.6 / 1.3)
    assert float(info["low probability"]) == pytest.approx(0.6 / 0.7)
    flow = 0.6 * (np.log(0.6) + 0.6730117) - (0.36 * np.log(0.6) + 0.16 * np.log(0.4) + 0.6730117 * 0.52)
    assert float(info["high flow"]) == pytest.approx(-1.3 * flow, rel=1e-6)
    assert float(info["low flow"]) == pytest.approx(0.7 * flow, rel=1e-6)
    assert [float(info[f"{name} lowering"]) for name in ("high", "low")] == [1, 0]


def test_thresholds_do_nothing_on_policy():
    default, higher = (entropies(EFFORT, env="on", controller=name) for name in ("grpo", "clip_higher"))
    np.testing.assert_array_equal(default, higher)
    assert not rising(default[:, -1], higher[:, -1]).holds


def test_settings_start_from_the_same_policies():
    starts = [entropy[:, 0] for entropy in clipped(EFFORT).values()]
    assert all(np.array_equal(start, starts[0]) for start in starts)


def test_exchanged_bounds():
    assert exchanged(PPO.ratio_bounds)(PPO(eps_low=0.1, eps_high=0.3, dual_clip=9.0)) == pytest.approx((0.7, 1.1, 9.0))
