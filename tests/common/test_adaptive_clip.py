"""adaptive_clip by hand: how k moves, where it stays, and that it bounds the ratio."""

from dataclasses import replace
from math import inf, nan

import pytest
import torch

from entrostat import StepStats, Tokens, make


def tokens() -> Tokens:
    """Ratios .3, .5, 2 and 3, two of them with A > 0, of tokens with π_old = .2."""
    old = torch.full((4,), 0.2, dtype=torch.float64).log()
    logp = old + torch.tensor([0.3, 0.5, 2.0, 3.0], dtype=torch.float64).log()
    return Tokens(logp=logp, old_logp=old, advantage=torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64))


def moved(entropies, **settings):
    controller = make("adaptive_clip", **settings)
    found = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
        found.append(float(controller.metrics()["adaptive_clip/k"]))
    return controller, found


def test_k_moves_by_the_sign_of_the_error_and_stays_in_its_bounds():
    readings = [0.5, 0.2, 0.1, 0.3, nan, 0.2, 0.29, 0.5]
    assert moved(readings, k_max=0.7)[1] == [0, 0.25, 0.5, 0.5, 0.5, 0.7, 0.7, pytest.approx(0.45)]


def test_the_ratio_is_bounded():
    """[.4, 2.5] at first, and .25 more above with every rollout below the target: then the ratio 3 lies within."""
    controller = make("adaptive_clip")
    for upper in (2.5, 2.75, 3.25):
        plan = controller.plan(tokens())
        assert [float(plan.clip_low), float(plan.clip_high)] == pytest.approx([0.4, upper])
        assert plan.clipped(tokens().logp).tolist() == [True, False, False, upper < 3]
        for _ in range(1 if upper == 2.5 else 2):
            controller.observe(StepStats(entropy=0.0))


@pytest.mark.parametrize(("dual_clip", "stopped"), [(50.0, False), (inf, False), (1.5, True)])
def test_the_outer_clip(dual_clip, stopped):
    given = replace(tokens(), advantage=-torch.ones(4, dtype=torch.float64))
    plan = make("adaptive_clip", dual_clip=dual_clip).plan(given)
    assert plan.clipped(given.logp).tolist() == [True, False, stopped, stopped]


def test_a_chain_saves_and_restores_k():
    controller, found = moved([0.0, 0.0])
    other = make("adaptive_clip+steer")
    with pytest.raises(ValueError, match="state is of controllers"):
        other.load_state_dict(make("steer").state_dict())
    again = make("adaptive_clip")
    again.load_state_dict(controller.state_dict())
    assert float(again.metrics()["adaptive_clip/k"]) == found[-1] == 0.5
    assert float(again.plan(tokens()).clip_high) == pytest.approx(3.0)


def test_runs_have_targets_of_their_own():
    controller = make("adaptive_clip", target=torch.tensor([0.1, 0.6]))
    controller.observe(StepStats(entropy=torch.tensor([0.3, 0.3])))
    assert controller.metrics()["adaptive_clip/k"].tolist() == [0, 0.25]


def test_two_that_set_the_bounds():
    with pytest.raises(ValueError, match="'adaptive_clip' and 'bapo' contradict each other: both set the clip bounds"):
        make("bapo+adaptive_clip")
    with pytest.raises(ValueError, match=r"eps"):
        make("adaptive_clip", eps=1.0)
