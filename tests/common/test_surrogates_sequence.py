"""gspo, luspo, gmpo and vespo on two sequences of 2 and 3 tokens, worked out by hand."""

from math import exp, log

import peers
import pytest
import torch
from helpers import sampled_tokens

from entrostat import Tokens, make

SEQ = torch.tensor([4, 4, 2, 2, 2])
LOG_RATIO = torch.tensor([0.1, 0.3, -0.6, 0.3, 0.0], dtype=torch.float64)
OLD = torch.full((5,), -2.0, dtype=torch.float64)
LOGP = OLD + LOG_RATIO
A = torch.tensor([2.0, 2.0, -3.0, -3.0, -3.0], dtype=torch.float64)
SHARE = [1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6]


def planned(spec, advantage=A, **settings):
    return make(spec, **settings).plan(Tokens(logp=LOGP, old_logp=OLD, advantage=advantage, seq_id=SEQ))


def test_gspo_inside_its_bounds():
    plan = planned("gspo", eps_low=0.5, eps_high=0.5)
    first, second = exp(0.2), exp(-0.1)
    each = [-2 * first] * 2 + [3 * second] * 3
    assert plan.token_loss(LOGP).tolist() == pytest.approx([x * s for x, s in zip(each, SHARE, strict=True)], rel=1e-12)
    # the gradient of −A·s in lp_t is −A·s/length, and sequences count the same
    expected = [-2 * first / 2 / 2] * 2 + [3 * second / 3 / 2] * 3
    assert plan.coefficients(LOGP)[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert not plan.clipped(LOGP).any()


def test_slopes_in_inference_mode_are_those_outside_it():
    expected = planned("gspo", eps_low=0.5, eps_high=0.5).coefficients(LOGP)[0]
    with torch.inference_mode():
        found = planned("gspo", advantage=A * 1, eps_low=0.5, eps_high=0.5).coefficients(LOGP * 1)[0]
    assert torch.equal(found, expected)


def test_gspo_stops_whole_sequences():
    plan = planned("gspo")  # both ratios are far outside 1 − 3e-4 and 1 + 4e-4
    assert plan.clipped(LOGP).all()
    assert not plan.coefficients(LOGP)[0].any()
    assert plan.loss(LOGP).item() == pytest.approx((-2 * (1 + 4e-4) + 3 * (1 - 3e-4)) / 2, rel=1e-12)
    assert planned("gspo", advantage=-A).coefficients(LOGP)[0].all()


def test_gspo_gradient_is_that_of_the_sequence_objective():
    logp = LOGP.clone().requires_grad_()
    objective = -2 * ((logp - OLD)[:2].mean()).exp() / 2 + 3 * ((logp - OLD)[2:].mean()).exp() / 2
    (expected,) = torch.autograd.grad(objective, logp)
    plan = planned("gspo", eps_low=0.5, eps_high=0.5)
    torch.testing.assert_close(plan.coefficients(LOGP)[0], expected, rtol=1e-12, atol=0)


def test_dual_clip_stops_a_sequence_that_grew_with_a_negative_advantage():
    """The ratio of the first is e^.2 = 1.22, where A is −2 now."""
    for bound, stopped in ((1.3, False), (1.2, True)):
        plan = planned("gspo", -A, eps_low=0.5, eps_high=0.5, dual_clip=bound)
        assert plan.clipped(LOGP).tolist() == [stopped] * 2 + [False] * 3
        assert (plan.coefficients(LOGP)[0][:2] == 0).tolist() == [stopped] * 2
        assert plan.token_loss(LOGP)[:2].sum().item() == pytest.approx(2 * min(bound, exp(0.2)) / 2, rel=1e-12)
    assert not planned("gspo", eps_low=0.5, eps_high=0.5, dual_clip=1.01).clipped(LOGP).any()  # A > 0: eps_high


def test_luspo_adds_up_the_tokens_of_a_sequence():
    """The loss of a sequence is −|y|·A·s, its gradient in each log π −A·s, and sequences count the same."""
    plan = planned("luspo", eps_low=0.5, eps_high=0.5)
    first, second = exp(0.2), exp(-0.1)
    assert plan.loss(LOGP).item() == pytest.approx((-2 * 2 * first + 3 * 3 * second) / 2, rel=1e-12)
    expected = [-2 * first / 2] * 2 + [3 * second / 2] * 3
    assert plan.coefficients(LOGP)[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert planned("luspo").clipped(LOGP).all()  # outside 1 − 2e-3 and 1 + 2.5e-3
    inside = OLD + LOG_RATIO / 100  # ratios e^.002 and e^−.001
    assert not planned("luspo").clipped(inside).any()


def test_gmpo():
    plan = planned("gmpo", eps=0.25)
    first = exp((0.1 + 0.25) / 2)  # A > 0: ratios from above
    second = exp((-0.25 + 0.3 + 0.0) / 3)  # A < 0: from below
    each = [-2 * first] * 2 + [3 * second] * 3
    assert plan.token_loss(LOGP).tolist() == pytest.approx([x * s for x, s in zip(each, SHARE, strict=True)], rel=1e-12)
    expected = [-first / 2, 0, 0, second / 2, second / 2]
    assert plan.coefficients(LOGP)[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert plan.clipped(LOGP).tolist() == [False, True, True, False, False]
    assert plan.clip_high.item() == pytest.approx(exp(0.25))
    assert plan.clip_low.item() == pytest.approx(exp(-0.25))


def test_gmpo_gradient_is_that_of_the_geometric_mean():
    logp = LOGP.clone().requires_grad_()
    ratio = (logp - OLD).exp()
    low, high = exp(-0.25), exp(0.25)
    objective = (
        -2 * ratio[:2].clamp(max=high).prod() ** (1 / 2) / 2 + 3 * ratio[2:].clamp(min=low).prod() ** (1 / 3) / 2
    )
    (expected,) = torch.autograd.grad(objective, logp)
    torch.testing.assert_close(planned("gmpo", eps=0.25).coefficients(LOGP)[0], expected, rtol=1e-12, atol=0)


def phi(log_w: float, k: float, lambda_: float) -> float:
    return exp(lambda_ + k * log_w - lambda_ * exp(log_w))


def test_vespo():
    """The sequences' log-ratios are .4 and −.3."""
    plan = planned("vespo")
    slopes = [-2 * phi(0.4, 2, 3) / 5] * 2 + [3 * phi(-0.3, 3, 2) / 5] * 3
    assert plan.coefficients(LOGP)[0].tolist() == pytest.approx(slopes, rel=1e-12)
    losses = [slope * lp for slope, lp in zip(slopes, LOGP.tolist(), strict=True)]
    assert plan.token_loss(LOGP).tolist() == pytest.approx(losses, rel=1e-12)
    slopes = [2 * phi(0.4, 1, 0.5) / 5] * 2 + [-3 * phi(-0.3, 0, 4) / 5] * 3
    plan = planned("vespo", -A, k_negative=1.0, lambda_negative=0.5, k_positive=0.0, lambda_positive=4.0)
    assert plan.coefficients(LOGP)[0].tolist() == pytest.approx(slopes, rel=1e-12)
    on_policy = planned("vespo").coefficients(OLD)[0]
    assert on_policy.tolist() == pytest.approx([-2 / 5] * 2 + [3 / 5] * 3, rel=1e-12)


def test_vespo_far_from_the_rollout_policy():
    """A token's log-ratio counts as ±20 at most, log w as at least log 1e-8; φ of e^20 is 0."""
    logp = OLD + torch.tensor([-30.0, 10.0, 20.0, 1.0, 0.0], dtype=torch.float64)
    plan = planned("vespo")
    expected = [-2 * phi(-10, 2, 3) / 5] * 2 + [0] * 3
    assert plan.coefficients(logp)[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert plan.clipped(logp).tolist() == [False, False, True, True, True]
    logp = OLD - torch.tensor([15.0, 15.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    assert plan.coefficients(logp)[0][0].item() == pytest.approx(-2 * phi(log(1e-8), 2, 3) / 5, rel=1e-12)


@pytest.mark.parametrize("moved", [0.05, 0.5, 5.0])
def test_trl_agrees_on_vespo(moved):
    grpo_trainer = pytest.importorskip("trl.trainer.grpo_trainer", reason="pip install trl")
    batch = peers.padded(1, moved)
    mask = batch["response_mask"]

    def theirs(logp):
        advantages = batch["advantages"][:, :1]
        gap = logp.detach() - batch["old_log_prob"]
        factor = grpo_trainer.GRPOTrainer.get_gamma_weights(advantages, gap, mask, None)
        return -(factor * advantages * logp * mask).sum() / mask.sum()

    torch.testing.assert_close(peers.ours("vespo", batch), peers.with_gradient(theirs, batch), rtol=1e-11, atol=1e-15)


def test_dropping_a_token_leaves_the_ratio_of_its_sequence():
    controller = make("gmpo+dmmpt", eps=0.25, tau=0.16, entropy_low=9.0)  # drops lp > log .16 = −1.83 where R ≥ 1
    fields = {"entropy": torch.ones(5).double(), "reward": torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0]).double()}
    plan = controller.plan(Tokens(logp=LOGP, old_logp=OLD, advantage=A, seq_id=SEQ, **fields))
    assert plan.weight.tolist() == [1, 0, 1, 1, 1]
    assert log(0.16) < LOGP[1]
    expected = planned("gmpo", eps=0.25).coefficients(LOGP)[0]
    torch.testing.assert_close(plan.coefficients(LOGP)[0], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("spec", ["gspo", "luspo", "gmpo", "vespo"])
def test_slices_hold_whole_sequences(spec):
    plan = planned(spec)
    plan.loss(LOGP[2:], index=slice(2, None))
    plan.loss(LOGP[[3, 2, 4]], index=torch.tensor([3, 2, 4]))
    for index in (slice(0, 1), slice(1, None), torch.tensor([0, 1, 2])):
        with pytest.raises(ValueError, match=f"'{spec}' needs whole sequences: a slice must not split one"):
            plan.loss(LOGP[index], index=index)
        with pytest.raises(ValueError, match=spec):
            plan.coefficients(LOGP[index], index=index)
    with pytest.raises(ValueError, match=rf"'{spec}' needs Tokens\.seq_id"):
        make(spec).plan(Tokens(logp=LOGP, old_logp=OLD, advantage=A))


def test_others_take_any_slice_whatever_their_aggregation():
    t = sampled_tokens(20)
    plan = make("ppo", aggregation="seq-mean-token-mean").plan(t)
    assert plan.seq_id is None
    assert plan.loss(t.logp[:3], index=slice(0, 3)).isfinite()


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("gspo", {"eps_low": -1.0}),
        ("gspo", {"dual_clip": 1.0}),
        ("luspo", {"eps_high": -0.1}),
        ("gmpo", {"eps": -0.1}),
        ("vespo", {"lambda_negative": 0.0}),
    ],
)
def test_bad_settings(spec, settings):
    with pytest.raises(ValueError, match=f"{spec}: {next(iter(settings))} must"):
        make(spec, **settings)
