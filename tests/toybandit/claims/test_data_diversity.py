"""Sizes of data sets, and what similar prompts share."""

import numpy as np
import torch

from toybandit.claims import data_diversity
from toybandit.claims.data_diversity import PROMPTS, ROLLOUTS, SIZES, of_size, rollouts_of, rows, similar
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=3, states=1, rollouts=1)


def test_every_set_has_as_many_uses_of_prompts():
    assert {size * rollouts_of(size) for size in SIZES} == {PROMPTS * ROLLOUTS}


def test_a_table_has_the_numbers_of_a_tensor():
    assert rows(torch.tensor([[1.0, 2.0], [3.0, 4.0]])) == ((1.0, 2.0), (3.0, 4.0))


def test_more_uses_of_a_prompt_leave_less_entropy():
    assert (of_size(EFFORT, "on", 8, 60) < of_size(EFFORT, "on", 8, 6)).all()


def test_unlike_prompts_share_nothing_but_steps(monkeypatch):
    """Without a share, prompts are on their own, whether alike or not; with one, alike prompts move further."""
    monkeypatch.setattr(data_diversity, "ROLLOUTS", 10)
    apart, together, unlike = (similar(EFFORT, "on", *at) for at in ((0.0,), (0.3,), (0.3, False)))
    alone = similar(EFFORT, "on", 0.0, False)
    assert (together < apart).all()
    assert np.abs(unlike - alone).mean() < np.abs(together - apart).mean() / 4
