import pytest
import torch

from entrostat import Tokens, make

A = torch.tensor([2.0, 2.0, -1.0, -1.0, 0.0], dtype=torch.float64)
H = torch.tensor([0.5, 5.0, 0.5, 5.0, 3.0], dtype=torch.float64)


def advantage(**settings):
    zero = torch.zeros_like(A)
    plan = make("entropy_advantage", **settings).plan(Tokens(logp=zero, old_logp=zero, advantage=A, entropy=H))
    assert plan.weight.expand(5).tolist() == [1] * 5
    return plan.advantage.tolist()


def test_by_hand():
    # .4·H, at most |A|/2: .2, 2 → 1, .2, 2 → .5, 1.2 → 0
    assert advantage() == pytest.approx([2.2, 3.0, -0.8, -0.5, 0.0], rel=1e-15)
    assert advantage(alpha=1.0, kappa=4.0) == pytest.approx([2.5, 2.5, -0.75, -0.75, 0.0], rel=1e-15)


def test_parts_that_follow_see_the_shaped_advantage():
    """The bonus of .5 flips no sign, but what follows acts on the new numbers: here on their covariance with log π."""
    logp = torch.tensor([-1.0, -3.0, -1.0, -1.0, -1.0], dtype=torch.float64)
    t = Tokens(logp=logp, old_logp=logp, advantage=A, entropy=H)
    settings = {"k": 0.2, "omega_low": -9.0, "omega_high": 9.0}
    shaped = Tokens(logp=logp, old_logp=logp, advantage=make("entropy_advantage").plan(t).advantage, entropy=H)
    found = make("entropy_advantage+kl_cov", k=0.2).plan(t)
    assert torch.equal(found.kl_coef, make("kl_cov", k=0.2).plan(shaped).kl_coef)
    assert torch.equal(make("entropy_advantage+opefo").plan(t).weight, make("opefo").plan(shaped).weight)
    assert make("entropy_advantage+clip_cov", **settings).plan(t).weight.eq(0).sum() == 1


@pytest.mark.parametrize("settings", [{"kappa": 1.0}, {"alpha": -0.1}])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must"):
        make("entropy_advantage", **settings)
