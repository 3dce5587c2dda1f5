import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import LocalReduce

reduce = LocalReduce()
scores = st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(-math.inf)), min_size=1, max_size=30)


@settings(derandomize=True, deadline=None)
@given(score=scores, k=st.integers(0, 35))
def test_top_k_takes_exactly_k_finite_scores_and_no_smaller_one(score, k):
    x = torch.tensor(score, dtype=torch.float64)
    tie = torch.linspace(0, 1, len(score), dtype=torch.float64)
    mask = reduce.top_k(x, k, tie)
    finite = sorted((s for s in score if s > -math.inf), reverse=True)
    assert sorted(x[mask].tolist(), reverse=True) == finite[:k]
    # among equal scores the smaller tie wins: the mask of each value is a prefix
    for value in set(finite):
        chosen = mask[x == value].tolist()
        assert chosen == sorted(chosen, reverse=True)


def test_top_k_of_each_run():
    x = torch.tensor([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    assert reduce.top_k(x, torch.tensor([1, 2])).tolist() == [[True, False, False], [False, True, True]]
    assert reduce.top_k(x[0], torch.tensor([1, 2])).tolist() == [[True, False, False], [True, False, True]]


def test_ties_are_only_asked_for_when_they_matter():
    def never():
        raise AssertionError("nothing is tied at the threshold")

    x = torch.tensor([3.0, 1.0, 1.0, 2.0])
    assert reduce.top_k(x, 2, never).tolist() == [True, False, False, True]
    assert reduce.top_k(x, 4, never).tolist() == [True] * 4
    assert reduce.top_k(x, 3, lambda: torch.tensor([0.0, 0.7, 0.2, 0.1])).tolist() == [True, False, True, True]


def test_large_k_is_selected_in_every_run():
    x = torch.randn(3, 500, generator=torch.Generator().manual_seed(0))
    for k in (17, 100, 500):
        mask = reduce.top_k(x, k)
        assert mask.sum(-1).tolist() == [k] * 3
        assert (torch.where(mask, x, torch.inf).amin(-1) > torch.where(mask, -torch.inf, x).amax(-1)).all()


def test_nothing_in_the_batch():
    empty = torch.empty(2, 0)
    assert reduce.top_k(empty, 3).shape == (2, 0)
    assert reduce.max(empty).tolist() == [-math.inf] * 2
    assert reduce.mean(empty).isnan().all()
    assert reduce.sum(empty).tolist() == [0, 0]


def test_sums_are_accumulated_in_float64():
    x = torch.cat([torch.tensor([2.0**24]), torch.ones(1000)])
    assert reduce.sum(x).item() == 2**24 + 1000
