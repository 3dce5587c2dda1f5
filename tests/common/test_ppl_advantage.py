from math import sqrt

import pytest
import torch

from entrostat import Tokens, make

OLD = torch.tensor([-1.0, -3.0, -4.0, -6.0], dtype=torch.float64)  # log PPL 2, 4, 6: scores −1, 0, 1
SEQ = torch.tensor([9, 9, 1, 5])
A = torch.tensor([1.0, 1.0, -1.0, 1.0], dtype=torch.float64)


def weights(old=OLD, seq=SEQ, **settings):
    t = Tokens(logp=old, old_logp=old, advantage=A[: len(old)], seq_id=seq)
    return make("ppl_advantage", **settings).plan(t).weight.tolist()


def test_by_hand():
    assert weights() == pytest.approx([1.01, 1.01, 1.0, 0.99], rel=1e-14)
    assert weights(alpha=0.5) == [1.2, 1.2, 1.0, 0.8]
    assert weights(alpha=0.5, weight_min=0.1, weight_max=3.0) == pytest.approx([1.5, 1.5, 1, 0.5], rel=1e-14)


def test_the_deviation_is_unbiased_and_over_responses():
    z = 1 / sqrt(2)  # of −1 and 1: deviation √2, one response as long as it may be
    found = weights(OLD[[0, 1, 1, 3]], torch.tensor([1, 1, 1, 2]), alpha=0.1)
    assert found == pytest.approx([1 + 0.1 * z] * 3 + [1 - 0.1 * z], rel=1e-14)


def test_a_response_of_infinite_perplexity_is_no_part_of_the_score():
    impossible = torch.tensor([-torch.inf], dtype=torch.float64)
    t_old, seq = torch.cat([OLD, impossible]), torch.tensor([9, 9, 1, 5, 2])
    t = Tokens(logp=t_old, old_logp=t_old, advantage=torch.ones(5).double(), seq_id=seq)
    found = make("ppl_advantage").plan(t).weight.tolist()
    assert found == pytest.approx([1.01, 1.01, 1.0, 0.99, 0.8], rel=1e-14)


def test_equal_responses_and_a_single_one():
    assert weights(OLD[:2], SEQ[:2]) == [1, 1]
    assert weights(torch.full((4,), -2.0).double()) == [1, 1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_means_that_differ_by_rounding_are_equal(dtype):
    for lengths in ([3, 3, 3], [3, 7, 5], [1, 2, 3], [16, 1, 9]):
        seq = torch.arange(3).repeat_interleave(torch.tensor(lengths))
        for value in (-0.1, -0.7, -2.772588722239781, -1e-9):
            old = torch.full((len(seq),), value, dtype=dtype)
            t = Tokens(logp=old, old_logp=old, advantage=torch.ones_like(old), seq_id=seq)
            assert (make("ppl_advantage", alpha=0.5).plan(t).weight == 1).all(), (lengths, value)


def test_small_differences_are_scored():
    assert weights(-2 + OLD * 1e-9) == pytest.approx(weights(), rel=1e-6)


def test_bad_bounds():
    with pytest.raises(ValueError, match="weight_min must lie between 0 and weight_max"):
        make("ppl_advantage", weight_min=1.5)
