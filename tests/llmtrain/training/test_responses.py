"""Metrics of whole responses, by hand and on several ranks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtrain.process.ranks import Ranks
from llmtrain.training.responses import length_metrics, response_covariance


class Two(Ranks):
    """One rank of two; what the other holds is known."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def gather(self, items):
        return items + self.other

    def total(self, x):
        return 2 * x


def test_the_covariance_by_hand():
    """Means of log p: -1 and -3 for prompt 0, with A 1 and -1: Cov 1; -2 and -2 for prompt 1: Cov 0. Mean 1/2."""
    logp = torch.tensor([-1.5, -0.5, -3.0, -2.0, -1.0, -2.0, -3.0])
    found = response_covariance(
        logp, torch.tensor([2, 1, 1, 3]), torch.tensor([1.0, -1.0, 0.5, -0.5]), torch.tensor([0, 0, 1, 1]), Ranks()
    )
    assert found == pytest.approx(0.5)


def test_a_group_may_be_divided_over_ranks():
    """This rank has -1 with A 1, the other -3 with A -1, of prompt 4; no response to prompts 0 to 3 is left."""
    one = torch.tensor([1])
    found = response_covariance(torch.tensor([-1.0]), one, torch.tensor([1.0]), 4 * one, Two([[-3.0, -1.0, 4.0]]))
    assert found == pytest.approx(1.0)


def test_no_response_has_no_covariance():
    none = torch.zeros(0)
    assert math.isnan(response_covariance(none, none.long(), none, none.long(), Ranks()))


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 0), st.floats(-3, 3), st.integers(1, 4)), min_size=1, max_size=12))
def test_in_one_group_it_is_that_of_numpy(rows):
    x, a, sizes = zip(*rows, strict=True)
    logp = torch.tensor([value for value, _, size in rows for _ in range(size)], dtype=torch.float64)
    group = torch.zeros(len(rows), dtype=torch.long)
    found = response_covariance(logp, torch.tensor(sizes), torch.tensor(a, dtype=torch.float64), group, Ranks())
    assert found == pytest.approx(np.cov(x, a, bias=True)[0, 1], abs=1e-9)


def test_lengths_by_hand():
    lengths, correct = torch.tensor([2, 4, 9]), torch.tensor([1.0, 1.0, 0.0])
    for ranks in (Ranks(), Two([])):
        assert length_metrics(lengths, correct, ranks) == {
            "response_length": 5,
            "response_length/max": 9,
            "response_length/correct": 3,
            "response_length/wrong": 9,
        }
    assert "response_length/wrong" not in length_metrics(lengths, torch.ones(3), Ranks())
