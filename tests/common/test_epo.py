"""epo around an average of 1 nat by hand, its gradient, and that of the published penalty."""

import math

import pytest
import torch
from helpers import sampled_tokens

from entrostat import StepStats, Tokens, make

H = torch.tensor([0.4, 1.0, 1.6, 1.8], dtype=torch.float64)
IDS = {"seq_id": torch.tensor([3, 3, 8, 8]), "turn_id": torch.tensor([0, 1, 0, 0])}
BAND = {"form": "linear", "coef": 0.1, "low": 0.5, "high": 1.5, "smooth": 0.5, "penalty": 2.0}


def coefficients(seen=(0.5, math.nan, 1.5), entropy=H, **settings) -> list[float]:
    controller = make("epo", **BAND | settings)
    for x in seen:
        controller.observe(StepStats(entropy=x))
    t = Tokens(logp=-entropy, old_logp=-entropy, advantage=torch.zeros_like(entropy), entropy=entropy, **IDS)
    plan = controller.plan(t)
    assert plan.weight.unique().tolist() == [1]
    return plan.entropy_coef.expand(4).tolist()


def test_the_bonus_falls_above_the_band_and_rises_below():
    assert coefficients() == pytest.approx([0.2, 0.1, 0.0, 0.0])
    assert coefficients(penalty=4.0) == pytest.approx([0.3, 0.1, -0.1, -0.1])
    assert coefficients(low=0.0, high=2.0) == pytest.approx([0.1] * 4)


def test_the_average_is_over_all_rollouts():
    controller = make("epo")
    for entropy, mean in ((1.0, 1.0), (2.0, 1.5), (math.inf, 1.5), (0.3, 1.1)):
        controller.observe(StepStats(entropy=entropy))
        assert controller.metrics()["epo/average"].item() == pytest.approx(mean)
    assert controller.metrics()["epo/rollouts"].item() == 3


def test_there_is_no_penalty_before_the_first_rollout():
    assert coefficients(seen=()) == pytest.approx([0.1] * 4)


def test_a_turn_is_judged_by_its_mean():
    """Turns of .4, 1 and (1.4 + 1.8)/2 = 1.6, of which the last is above the band as a whole."""
    h = torch.tensor([0.4, 1.0, 1.4, 1.8], dtype=torch.float64)
    assert coefficients(entropy=h) == pytest.approx([0.2, 0.1, 0.1, 0.0])
    assert coefficients(entropy=h, per="turn") == pytest.approx([0.2, 0.1, 0.0, 0.0])


def test_early_turns_have_no_penalty():
    h = torch.tensor([0.4, 0.4, 1.6, 1.8], dtype=torch.float64)
    assert coefficients(entropy=h, first_turn=1.0) == pytest.approx([0.1, 0.2, 0.1, 0.1])


@pytest.mark.parametrize("form", ["linear", "constant"])
def test_gradient_of_the_loss_as_it_is_written(form):
    """coef·(P − H) with P in autograd; the constant P, as the released code has it, leaves the bonus alone."""
    t = sampled_tokens(80)
    controller = make("epo", coef=0.3, low=0.8, high=1.1, smooth=0.7, penalty=1.5, form=form)
    controller.observe(StepStats(entropy=1.2))
    plan = controller.plan(t)
    h = t.entropy.clone().requires_grad_()
    below, above = 0.8 * 1.2 - h, h - 1.1 * 1.2
    outside = (below > 0) | (above > 0)
    penalty = 1.5 * (below.clamp(min=0) + above.clamp(min=0)) if form == "linear" else torch.where(outside, 1.5, 0.0)
    (0.3 * (0.7 * penalty - h)).mean().backward()
    torch.testing.assert_close(plan.coefficients(t.logp, t.entropy)[1], h.grad, rtol=1e-12, atol=0)
    assert plan.info["epo/outside"].item() == outside.double().mean().item()
    alone = make("entropy_bonus", coef=0.3).plan(t).coefficients(t.logp, t.entropy)[1]
    assert torch.allclose(h.grad, alone) == (form == "constant")


def test_released_settings_are_the_bonus_alone():
    t = sampled_tokens(40)
    released = make("epo", "released")
    released.observe(StepStats(entropy=0.01))
    assert released.plan(t).entropy_coef.unique().tolist() == [0.001]


ERRORS = [
    ({"low": 1.2, "high": 0.8}, "low must not be above high"),
    ({"coef": -1.0}, "coef must not be negative"),
    ({"per": "response"}, "per must be one of token, turn"),
    ({"form": "square"}, "form must be one of linear, constant"),
]


@pytest.mark.parametrize(("settings", "error"), ERRORS)
def test_bad_settings(settings, error):
    with pytest.raises(ValueError, match=f"epo: {error}"):
        make("epo", **settings)
