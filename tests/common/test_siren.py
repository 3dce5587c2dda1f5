"""siren against penalties worked out by hand, and its gradient against autograd."""

from math import isnan

import pytest
import torch

from entrostat import StepStats, Tokens, make

INSIDE = [0.1, 0.5, 0.9, 0.2, 0.3, 1.1, 0.4, 0.0]
"""Entropies on the support: five tokens of one response, three of another."""
RESPONSE = [7, 7, 7, 7, 7, 3, 3, 3]


def tokens(inside=INSIDE) -> Tokens:
    n = len(inside)
    logp = torch.full((n,), -1.0, dtype=torch.float64)
    return Tokens(
        logp=logp,
        old_logp=logp,
        advantage=torch.ones(n, dtype=torch.float64),
        truncated_entropy=torch.tensor(inside, dtype=torch.float64),
        seq_id=torch.tensor(RESPONSE[:n]),
    )


def anchored(at: float, updates: int = 2, **settings):
    """siren after a first rollout whose tokens had this entropy in the mean."""
    controller = make("siren", **settings)
    controller.observe(StepStats(entropy=0.3))
    controller.observe(StepStats(entropy=0.3, planned={"siren/entropy": updates * at, "siren/updates": updates}))
    return controller


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({"tau": 0.8}, [2]),  # above the 4th of five; of three, none is above the 3rd
        ({"tau": 0.6}, [1, 2, 5]),
        ({"tau": 0.0}, [1, 2, 3, 4, 5, 6]),  # not the least of each
        ({"tau": 0.8, "per_response": False}, [5]),
        ({"tau": 0.5, "per_response": False}, [1, 2, 5, 6]),
        ({"tau": 0.0, "per_response": False}, list(range(8))),
    ],
)
def test_who_has_a_bonus(settings, chosen):
    coef = anchored(2.0, **settings).plan(tokens()).truncated_coef
    assert coef.nonzero()[:, 0].tolist() == chosen


def test_bonus_by_hand():
    """Mean of .5, .9 and 1.1 is .8333: 2·β·(1 − .8333)·8/3."""
    plan = anchored(1.0, tau=0.6, beta=0.05).plan(tokens())
    assert plan.truncated_coef.max() == pytest.approx(2 * 0.05 * (1 - 2.5 / 3) * 8 / 3)
    assert float(plan.info["siren/entropy"]) == pytest.approx(2.5 / 3)
    assert float(plan.info["siren/share"]) == pytest.approx(3 / 8)
    below = anchored(0.5, tau=0.6, beta=0.05).plan(tokens())
    assert below.truncated_coef.min() == pytest.approx(2 * 0.05 * (0.5 - 2.5 / 3) * 8 / 3)


@pytest.mark.parametrize("at", [0.4, 1.3])
def test_its_gradient_is_that_of_the_square(at):
    some = tokens()
    inside = some.truncated_entropy.clone().requires_grad_()
    chosen = torch.tensor([1, 2, 5])
    (expected,) = torch.autograd.grad(0.05 * (inside[chosen].mean() - at) ** 2, inside)
    plan = anchored(at, tau=0.6, beta=0.05).plan(some)
    (found,) = torch.autograd.grad(plan.loss(some.logp, truncated_entropy=inside), inside)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_the_anchor_is_the_first_rollouts_and_stays():
    controller = make("siren")
    first = controller.plan(tokens())
    assert (first.truncated_coef == 0).all()
    assert isnan(controller.metrics()["siren/anchor"])
    told = {key: value for key, value in first.info.items() if key.startswith("siren/")}
    controller.observe(StepStats(entropy=0.3, planned=told))
    assert float(controller.metrics()["siren/anchor"]) == pytest.approx(float(told["siren/entropy"]))
    controller.observe(StepStats(entropy=0.3, planned={"siren/entropy": 5.0, "siren/updates": 1.0}))
    assert float(controller.metrics()["siren/anchor"]) == pytest.approx(float(told["siren/entropy"]))


def test_nothing_is_uncertain_where_all_tokens_are_alike():
    plan = anchored(2.0).plan(tokens([0.5] * 8))
    assert (plan.truncated_coef == 0).all()
    assert not float(plan.info["siren/updates"])  # none of these is an anchor
    assert anchored(2.0, per_response=False, tau=0.5).plan(tokens([0.5] * 8)).truncated_coef.count_nonzero() == 4


def test_chains():
    with pytest.raises(ValueError, match="siren"):
        make("siren+adaptive_entropy")
    with pytest.raises(ValueError, match="truncated"):
        make("siren+truncated_entropy_bonus")
    assert make("siren").needs >= {"truncated_entropy", "seq_id"}
    assert "seq_id" not in make("siren", per_response=False).needs
