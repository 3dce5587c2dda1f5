"""thermostat with mode anchor and anchor+bonus: a solved penalty on the divergence from the reference policy."""

from dataclasses import replace

import pytest
import torch
from helpers import sampled_tokens
from hypothesis import given, settings
from hypothesis import strategies as st
from thermostat_scene import Bandit, closed_loop, flow_of, mean_bonus_flow, observed

from entrostat import CompositionWarning, StepStats, Tokens, entropy_change, make, policy_stats
from entrostat.controllers.thermostat import anchor_flow

MODES = ["anchor", "anchor+bonus"]
SEEDS = st.integers(0, 10**6)


def one_token(advantage: float, reference: float = 0.5) -> Tokens:
    """The first of two actions, drawn from p = (¾, ¼); its probability under the reference policy is `reference`."""
    s = policy_stats(torch.tensor([[3.0, 1.0]], dtype=torch.float64).log())
    moments = {name: getattr(s, name) for name in ("entropy", "s2", "s2l", "s2ll")}
    ref_logp, advantages = (torch.tensor([x], dtype=torch.float64) for x in (reference, advantage))
    return Tokens(logp=s.logp[:, 0], old_logp=s.logp[:, 0], ref_logp=ref_logp.log(), advantage=advantages, **moments)


def flatter(tokens: Tokens, entropy_of: float = 0.5) -> Tokens:
    """Tokens whose reference gives each sampled token a probability nearer to ½: a penalty raises their entropy."""
    return replace(tokens, ref_logp=entropy_of * tokens.logp)


# Coefficient ------------------------------------------------------------------------------------------------------


def test_coefficient_by_hand():
    """p = ¾, H = .562335: ∂k2/∂lp = ln 1.5 = .405465, p(lp + H) − (S2L + H·S2) = .205990 − .102995, R = −.405465·w·(…).

    The slope of the penalty pushes lp down, so R = +.405465·.102995 = .0417609. Wanted are .1·(.85 − .8) = .005.
    """
    controller = observed(0.8, mode="anchor", target=0.85)
    plan = controller.plan(one_token(0.0))
    assert float(plan.info["thermostat/base_flow"]) == 0.0
    assert float(plan.ref_coef) == pytest.approx(0.005 / 0.0417609, rel=1e-5)
    assert float(plan.info["thermostat/anchor"]) == float(plan.ref_coef)
    assert plan.ref_estimator == "k2"
    assert plan.entropy_coef is None


def test_coefficient_covers_the_flow_of_the_other_terms():
    """With A = 1 the policy gradient lowers the entropy by .102995 per unit of step."""
    plan = observed(0.8, mode="anchor", target=0.85, anchor_max=5.0).plan(one_token(1.0))
    assert float(plan.info["thermostat/base_flow"]) == pytest.approx(-0.102995, rel=1e-5)
    assert float(plan.ref_coef) == pytest.approx((0.005 + 0.102995) / 0.0417609, rel=1e-5)
    assert float(flow_of(plan, one_token(1.0))) == pytest.approx(0.005, rel=1e-9)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=SEEDS, actions=st.integers(2, 20), spread=st.floats(0.1, 4))
def test_mean_flow_over_actions_is_that_of_the_divergence(seed, actions, spread):
    """Finite differences of H along the negative gradient of KL(π ‖ π_ref) in the logits."""
    generator = torch.Generator().manual_seed(seed)
    z, other = spread * torch.randn(2, actions, generator=generator, dtype=torch.float64)
    reference = other.log_softmax(-1)
    logits = z.clone().requires_grad_()
    logp = logits.log_softmax(-1)
    (slope,) = torch.autograd.grad((logp.exp() * (logp - reference)).sum(), logits)
    h = 1e-5
    measured = (policy_stats(z - h * slope).entropy - policy_stats(z + h * slope).entropy) / (2 * h)
    s = policy_stats(z)
    shared = {name: getattr(s, name).expand(actions) for name in ("entropy", "s2", "s2l", "s2ll")}
    tokens = Tokens(logp=s.logp, old_logp=s.logp, ref_logp=reference, advantage=torch.zeros_like(z), **shared)
    found = (s.logp.exp() * anchor_flow(tokens)).sum()
    assert float(found) == pytest.approx(float(measured), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spec", ["thermostat", "clip_higher+steer+thermostat", "entropy_bonus+kl_cov+thermostat"])
@settings(derandomize=True, deadline=None, max_examples=20)
@given(seed=SEEDS)
def test_predicted_change_is_the_measured_one(spec, mode, seed):
    bandit = Bandit(seed)
    tokens = flatter(bandit.tokens())
    plan = observed(0.8, spec, mode=mode, target=0.85).plan(tokens)
    predicted, gradient = float(plan.info["thermostat/flow"]), bandit.gradient(plan)
    assert predicted == pytest.approx(float(flow_of(plan, tokens)), rel=1e-9, abs=1e-14)
    lr = 1e-5
    measured = (bandit.entropy(-lr * gradient) - bandit.entropy(lr * gradient)) / (2 * lr)
    assert measured == pytest.approx(predicted, rel=1e-5, abs=1e-7)


# Signs and limits -------------------------------------------------------------------------------------------------


def test_default_while_the_penalty_does_not_raise_the_entropy():
    """Reference equal to the policy, so that R = 0; and sharper, so that R < 0."""
    for reference in (0.75, 0.9):
        plan = observed(0.8, mode="anchor", target=0.85, anchor_default=0.03).plan(one_token(0.0, reference))
        assert float(plan.ref_coef) == 0.03
        tokens = one_token(0.0, reference)
        assert float(flow_of(plan, tokens)) == pytest.approx(0.03 * float(anchor_flow(tokens)), abs=1e-15)
        assert float(plan.info["thermostat/flow"]) == pytest.approx(float(flow_of(plan, tokens)), abs=1e-15)


def test_no_penalty_while_the_entropy_is_above_the_target():
    plan = observed(0.8, mode="anchor", target=0.5).plan(one_token(0.0))
    assert float(plan.ref_coef) == 0.0
    assert float(plan.info["thermostat/flow"]) == 0.0


def test_the_penalty_leaves_a_fall_towards_a_far_target_to_the_task():
    """The task lowers the entropy by .103, more than rate, and a tenth of the way to the target is .2."""
    far = {"target": 0.5, "rate": 0.02}
    for mode, reads in ({"mode": "anchor"}, "ref_coef"), ({"mode": "bonus", "one_sided": True}, "entropy_coef"):
        plan = observed(2.5, **mode, **far).plan(one_token(1.0))
        assert float(getattr(plan, reads)) == 0.0
        assert float(plan.info["thermostat/flow"]) == pytest.approx(-0.102995, rel=1e-5)
    assert float(observed(2.5, mode="bonus", **far).plan(one_token(1.0)).info["thermostat/bonus"]) > 0


def test_penalty_is_bounded_and_the_flow_says_what_is_left():
    given = {"mode": "anchor", "target": 3.0, "k": 1.0, "rate": torch.inf, "anchor_max": 0.25}
    plan = observed(0.8, **given).plan(one_token(0.0))
    assert float(plan.ref_coef) == 0.25
    assert float(plan.info["thermostat/flow"]) == pytest.approx(0.25 * 0.0417609, rel=1e-5)
    low = observed(0.8, **{**given, "anchor_max": 0.002}).plan(one_token(0.0, 0.75))
    assert float(low.ref_coef) == 0.002  # the default is bounded too


def test_a_wanted_flow_within_reach_needs_no_bonus():
    plan = observed(0.8, mode="anchor+bonus", target=0.85).plan(one_token(0.0))
    alone = observed(0.8, mode="anchor", target=0.85).plan(one_token(0.0))
    assert torch.equal(plan.ref_coef, alone.ref_coef)
    assert abs(float(plan.entropy_coef)) < 1e-12


@pytest.mark.parametrize(
    ("target", "reference", "coef"),
    [(3.0, 0.5, 0.25), (0.5, 0.5, 0.0), (0.85, 0.9, 0.01)],
    ids=["beyond the limit", "above the target", "sharper reference"],
)
def test_the_bonus_gives_what_the_penalty_cannot(target, reference, coef):
    given = {"target": target, "k": 1.0, "rate": 0.05, "anchor_max": 0.25}
    tokens = one_token(0.0, reference)
    plan = observed(0.8, mode="anchor+bonus", **given).plan(tokens)
    assert float(plan.ref_coef) == coef
    wanted = max(min(target - 0.8, 0.05), -0.05)
    assert float(flow_of(plan, tokens)) == pytest.approx(wanted, rel=1e-9)
    assert float(plan.info["thermostat/flow"]) == pytest.approx(wanted, rel=1e-9)
    assert float(plan.info["thermostat/base_flow"]) == 0.0
    rest = wanted - coef * float(anchor_flow(tokens))
    assert float(plan.entropy_coef) == pytest.approx(rest / float(mean_bonus_flow(tokens)), rel=1e-9)


def test_one_sided_bonus_beside_a_penalty_is_never_negative():
    plan = observed(0.8, mode="anchor+bonus", target=0.5, one_sided=True).plan(one_token(0.0))
    assert float(plan.entropy_coef) == float(plan.ref_coef) == 0.0


# Runs, schedules, chains ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_runs_side_by_side_are_runs_alone(mode):
    """The second is at its limit, and the third has no use for a penalty."""
    t = flatter(sampled_tokens(3, 40))
    own = {
        "target": [0.875, 9.0, 0.25],
        "rate": [0.03125, torch.inf, 0.125],
        "anchor_max": [1.0, 0.25, 0.5],
        "anchor_default": [0.0, 0.125, 0.5],
    }
    together = observed(0.8, mode=mode, **{name: torch.tensor(values).double() for name, values in own.items()}).plan(t)
    for i in range(3):
        one = Tokens(**{name: x if x is None or x.ndim == 1 else x[i] for name, x in vars(t).items()})
        alone = observed(0.8, mode=mode, **{name: values[i] for name, values in own.items()}).plan(one)
        torch.testing.assert_close(together.ref_coef[i], alone.ref_coef, rtol=1e-9, atol=1e-12)
        for name, value in alone.info.items():
            torch.testing.assert_close(together.info[name].expand(3)[i], value, rtol=1e-9, atol=1e-12)


def test_target_follows_a_schedule_and_state_round_trip_is_exact():
    first, second = (make("thermostat", mode="anchor", target="cosine(0.9, 0.5, 10)") for _ in range(2))
    closed_loop(first, 0.4, 5)
    second.load_state_dict(first.state_dict())
    at_step_4 = 0.9 - 0.4 * (1 - 0.30901699437494745) / 2
    assert float(second.parts[0].target) == pytest.approx(at_step_4, rel=1e-9)
    t = flatter(sampled_tokens(50))
    for controller in (first, second):
        controller.observe(StepStats(entropy=0.6, planned={"thermostat/flow": 0.01, "thermostat/updates": 1.0}))
    assert torch.equal(first.plan(t).ref_coef, second.plan(t).ref_coef)


@pytest.mark.parametrize("mode", MODES)
def test_it_needs_a_reference(mode):
    assert "ref_logp" in make("thermostat", mode=mode).needs
    assert "ref_logp" not in make("thermostat").needs
    with pytest.raises(ValueError, match=r"'thermostat' needs Tokens\.ref_logp"):
        make("thermostat", mode=mode).plan(replace(sampled_tokens(10), ref_logp=None))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other", ["kl_ref", "lp_reg"])
def test_another_penalty_is_refused(mode, other):
    message = f"'{other}' and 'thermostat' contradict each other: both penalise the divergence from a policy"
    with pytest.raises(ValueError, match=message):
        make(f"{other}+thermostat", mode=mode)
    make(f"{other}+thermostat")


def test_actuators_of_other_loops():
    with pytest.raises(ValueError, match="both closed loops on the entropy bonus"):
        make("adaptive_entropy+thermostat", mode="anchor+bonus")
    with pytest.warns(CompositionWarning, match=r"'thermostat' \(the penalty to the reference policy\)"):
        make("adaptive_entropy+thermostat", mode="anchor")


def test_penalty_on_the_reference_is_in_the_flow_of_weights():
    """A fixed penalty beside mode reweight counts as a term that weights leave alone."""
    t = flatter(sampled_tokens(80))
    plan = observed(0.8, "kl_ref+thermostat", beta=0.1, estimator="k2", mode="reweight", target=0.85).plan(t)
    assert float(entropy_change.planned(t, plan).total.sum()) == pytest.approx(0.005, rel=1e-9)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"anchor_max": 0.0}, "anchor_max must be positive"),
        ({"anchor_default": -0.1}, "anchor_default must not be negative"),
        ({"mode": "anchored"}, "mode must be one of bonus, reweight, both, anchor, anchor\\+bonus"),
    ],
)
def test_bad_settings(setting, message):
    with pytest.raises(ValueError, match=message):
        make("thermostat", **setting)
