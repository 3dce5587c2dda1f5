"""Starts and bounds under which Clip-Higher can raise the entropy."""

import pytest
import torch

from entrostat import policy_stats
from toybandit.claims.ensembles import random_logits
from toybandit.claims.registry import Effort
from toybandit.claims.rising_entropy import NARROW, SIZE, SURE, WIDE, gain, under
from toybandit.claims.runs import entropies

PAPERS = 0.3657
"""Entropy of the paper's model before training, appendix E.2."""


def test_the_sure_start_has_the_papers_entropy():
    entropy = policy_stats(random_logits(4000, 16, SURE, "sure start")).entropy
    assert float(entropy.mean()) == pytest.approx(PAPERS, abs=0.03)


def test_with_one_update_the_bounds_do_nothing(monkeypatch):
    for name, value in (("rollouts", 6), ("states", 8)):
        monkeypatch.setitem(SIZE, name, value)
    effort = Effort(instances=2, runs=3, states=1, rollouts=1)
    found = [under(effort, eps_high, SURE, 1) for eps_high in (0.2, NARROW, WIDE)]
    assert all((entropy == found[0]).all() for entropy in found)
    once = entropies(effort, env="noisy", logit_std=SURE, passes=1, states=8, rollouts=6)
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(once))


def test_gain_is_end_minus_start():
    assert gain(torch.tensor([[1.0, 5.0, 3.0]]).numpy()).tolist() == [2.0]
