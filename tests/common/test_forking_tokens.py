import pytest
import torch

from entrostat import Tokens, make

A = torch.ones(10, dtype=torch.float64)
H = torch.tensor([0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.5, 0.0], dtype=torch.float64)


def kept(entropy=H, **settings):
    plan = make("forking_tokens", **settings).plan(
        Tokens(logp=-A.abs(), old_logp=-A.abs(), advantage=A, entropy=entropy)
    )
    assert torch.equal(plan.keep, plan.weight == 1)
    assert plan.info["forking_tokens/dropped"].item() == pytest.approx(1 - plan.keep.double().mean().item())
    return plan.keep.nonzero()[:, 0].tolist()


def test_by_hand():
    assert kept() == [1, 3]
    assert kept(share=0.39) == [1, 3, 5]
    assert kept(share=0.01) == [1]
    assert kept(share=1.0) == list(range(10))


def test_tokens_that_tie_at_the_threshold_are_all_kept():
    assert kept(torch.tensor([1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).double()) == [0, 1, 2, 3]


def test_dropped_tokens_count_in_the_mean_unless_told():
    t = Tokens(logp=-A.abs(), old_logp=-A.abs(), advantage=A, entropy=H)
    assert make("forking_tokens").plan(t).scale.item() == pytest.approx(0.1)
    assert make("forking_tokens", denominator="kept").plan(t).scale.item() == pytest.approx(0.5)


def test_bad_share():
    with pytest.raises(ValueError, match=r"share must lie in \(0, 1\]"):
        make("forking_tokens", share=0.0)
