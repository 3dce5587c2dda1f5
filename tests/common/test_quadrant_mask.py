"""quadrant_mask on one token of each quadrant and some in between."""

import pytest
import torch

from entrostat import Tokens, make

P = torch.tensor([0.9, 0.1, 0.1, 0.9, 0.5, 0.8, 0.2, 0.9], dtype=torch.float64)
A = torch.tensor([1.0, 2.0, -1.0, -3.0, 1.0, 1.0, -1.0, 0.0], dtype=torch.float64)
"""Quadrants I to IV, one of none, .8 (not likely), .2 (still unlikely, III), and one without advantage."""
ALL = {"exploitation": 2.0, "exploration": 3.0, "suppression": 4.0, "correction": 5.0, "share": 1.0}


def tokens(entropy: float = 0.0) -> Tokens:
    return Tokens(logp=P.log(), old_logp=P.log(), advantage=A, entropy=torch.full_like(A, entropy))


def test_each_quadrant_has_its_weight():
    plan = make("quadrant_mask", **ALL).plan(tokens())
    assert plan.weight.tolist() == [2, 3, 4, 5, 1, 1, 4, 1]
    assert plan.keep.all()
    assert plan.info["quadrant_mask/changed"].item() == 5 / 8
    narrow = make("quadrant_mask", **ALL, likely=0.95, unlikely=0.05).plan(tokens())
    assert (narrow.weight == 1).all()


def test_cut_at_the_entropy():
    """e^(−1) = .368: .5 and .8 are likely too."""
    plan = make("quadrant_mask", **ALL, boundary="entropy").plan(tokens(entropy=1.0))
    assert plan.weight.tolist() == [2, 3, 4, 5, 2, 2, 4, 1]
    assert "entropy" in make("quadrant_mask", boundary="entropy").needs
    assert "entropy" not in make("quadrant_mask").needs


def test_a_weight_of_zero_drops():
    plan = make("quadrant_mask", share=1.0, denominator="kept").plan(tokens())
    assert plan.keep.tolist() == [False, *[True] * 7]
    assert plan.weight.tolist() == [0, *[1] * 7]
    assert plan.scale.item() == pytest.approx(1 / 7)


def test_a_share_of_the_tokens_is_drawn():
    many = Tokens(logp=torch.full((4000,), -0.1), old_logp=None, advantage=torch.ones(4000))
    controller = make("reinforce+quadrant_mask", share=0.25)
    first, again, other = (controller.plan(many, seed=seed).keep for seed in (0, 0, 1))
    assert 900 < (~first).sum() < 1100  # 100 are 3.65 standard deviations
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


ERRORS = [
    ({"likely": 0.3, "unlikely": 0.4}, "unlikely must not be above likely"),
    ({"exploitation": -1.0}, "exploitation must not be negative"),
    ({"boundary": "flow"}, "boundary must be one of probability, entropy"),
]


@pytest.mark.parametrize(("settings", "error"), ERRORS)
def test_bad_settings(settings, error):
    with pytest.raises(ValueError, match=f"quadrant_mask: {error}"):
        make("quadrant_mask", **settings)
