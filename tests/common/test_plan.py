"""Slices add up, and the coefficients are the gradient."""

from dataclasses import replace
from math import log

import pytest
import torch
from helpers import PLANNED, sampled_tokens

from entrostat import StepStats, Tokens, make
from entrostat.by_name import REGISTRY
from entrostat.plan import rounding

VARIANTS = [
    ("ppo", {}),
    ("ppo", {"dual_clip": 1.5}),
    ("ppo", {"aggregation": "seq-mean-token-mean"}),
    ("ppo", {"aggregation": "seq-mean-token-sum"}),
    ("clip_higher", {}),
    ("clip_lower", {}),
    ("clip_tighter", {}),
    ("clip_free", {}),
    ("reinforce", {}),
    ("cispo", {"eps_low": 0.3, "eps_high": 0.3}),
    ("ce_gppo", {}),
    ("ce_gppo", {"beta_low": 0.0, "beta_high": 0.3}),
    ("ce_gppo", {"dual_clip": 1.1}),
    ("dcpo", {}),
    ("dcpo", {"dual_clip": 1.1}),
    ("sapo", {}),
    ("adaptive_clip", {"target": 5.0, "eps": 0.1}),
    ("aspo", {}),
    ("aspo", {"dual_clip": 1.1}),
    ("dppo", {"delta": 0.05}),
    ("dppo", {"delta": 0.05, "ratio_max": 1.1, "tau": 0.1}),
    ("dppo_kl", {"delta": 0.01}),
    ("ipo", {"delta": 0.05, "tau": 0.1}),
    ("dro", {"beta": 0.5}),
    ("gspo", {"eps_low": 0.05, "eps_high": 0.05}),
    ("gspo", {"aggregation": "token-mean", "eps_low": 0.05, "eps_high": 0.05}),
    ("gspo", {"dual_clip": 1.01, "eps_low": 0.05, "eps_high": 0.05}),
    ("luspo", {"eps_low": 0.05, "eps_high": 0.05}),
    ("gmpo", {"eps": 0.2}),
    ("vespo", {"aggregation": "seq-mean-token-mean"}),
    ("flexible_clip", {"variant": "did", "eps": 0.05}),
    ("flexible_clip", {"variant": "wide_lower"}),
    ("bapo", {"share": 0.6}),
    ("clip_cov", {"k": 0.1, "omega_low": -9.0, "omega_high": 9.0, "denominator": "kept"}),
    ("kl_cov", {"k": 0.2}),
    ("entropy_bonus", {}),
    ("adaptive_entropy", {"target": 5.0}),
    ("adaptive_entropy_trl", {"target": 5.0, "initial": 0.5}),
    ("repo_r", {"zeta": 0.3, "adaptive": False}),
    ("repo_r", {"zeta": -0.3, "zeta_max": 0.5}),
    ("adapo", {"target": 5.0, "eps_high": 0.05}),
    ("aer", {"target": 5.0, "delta": 0.1, "coef_max": 0.5}),
    ("papo", {"target": 5.0}),
    ("arbitrary_entropy", {"target": 5.0}),
    ("papo", {"target": 0.5, "gamma": 1.0, "estimator": "sampled"}),
    ("positive_reweight", {"variant": "stage"}),
    ("positive_reweight", {"variant": "epoch"}),
    ("positive_reweight", {"target": 0.5}),
    ("steer", {}),
    ("steer", {"mapping": "linear"}),
    ("steer", {"mapping": "binary"}),
    ("steer", {"estimator": "exact"}),
    ("opefo", {}),
    ("opefo", {"estimator": "exact"}),
    ("opefo", {"variant": "static"}),
    ("opefo", {"variant": "plus_only"}),
    ("opefo", {"variant": "minus_only"}),
    ("entropic", {"tau": 0.2, "target": 0.5}),
    ("entropic", {"auto": True, "target": 0.5}),
    ("thermostat", {"target": 0.5}),
    ("thermostat", {"mode": "reweight"}),
    ("thermostat", {"mode": "both", "target": 1.2}),
    ("thermostat", {"mode": "reweight", "price": "flow", "target": 1.2}),
    ("thermostat", {"mode": "anchor", "target": 1.2}),
    ("thermostat", {"mode": "anchor+bonus", "target": 1.2}),
    ("kl_ref+thermostat", {"beta": 0.1, "mode": "reweight"}),
    ("entropic", {"tau": 0.0, "target": 0.1, "kp": 5.0, "alpha_max": 4.0}),  # weights of both signs
    ("kl_ref", {"beta": 0.1}),
    ("kl_ref", {"beta": 0.1, "estimator": "k1"}),
    ("kl_ref", {"beta": 0.1, "estimator": "k2"}),
    ("lp_reg", {"share": 0.4}),
    ("lp_reg", {"share": 0.4, "among_negative": True}),
    ("siren", {"beta": 0.5, "tau": 0.5}),
    ("siren", {"beta": 0.5, "tau": 0.3, "per_response": False}),
    ("stare", {"target": 1.0, "share": 0.3, "positive": 1.4}),
    ("stare", {"target": 1.0, "share": 0.3, "both_signs": True, "delta": 0.1}),
    ("positive_only", {}),
    ("negative_only", {"denominator": "kept"}),
    ("random_positive_clip", {"k": 0.2}),
    ("entropy_advantage", {}),
    ("unlikeliness", {}),
    ("unlikeliness", {"advantage": "rloo"}),
    ("unlikeliness", {"advantage": "reinforce_pp"}),
    ("gtpo", {"alpha": 0.5}),
    ("gtpo", {"into": "advantage"}),
    ("edge", {}),
    ("ppl_advantage", {"alpha": 0.1}),
    ("position_advantage", {}),
    ("rollout_correction", {"cap": 1.1}),
    ("rollout_correction", {"mode": "token_mask", "cap": 1.2}),
    ("rollout_correction", {"mode": "sequence_truncate", "cap": 1.1}),
    ("rollout_correction", {"mode": "geometric_mask", "floor": 0.95, "cap": 1.1}),
    ("clip_b", {"mu": 0.5}),
    ("clip_b", {"mu": 0.5, "signs": "both", "denominator": "kept"}),
    ("clip_v", {"mu": 0.3, "k": 0.1}),
    ("clip_v", {"mu": 0.3, "k": 1.0, "denominator": "kept"}),
    ("quadrant_mask", {"share": 1.0}),
    ("quadrant_mask", {"exploitation": 0.5, "suppression": 0.0, "share": 0.5, "boundary": "entropy"}),
    ("aem", {}),
    ("aem", {"among": "response", "lam": 2.0}),
    ("epo", {"coef": 0.1, "low": 0.8, "high": 1.2}),
    ("epo", {"coef": 0.1, "low": 0.8, "high": 1.2, "per": "turn", "first_turn": 1.0}),
    ("epo", {"coef": 0.1, "form": "constant"}),
    ("opsm", {"delta": 0.05}),
    ("opsm", {"delta": 0.05, "sampler": "rollout"}),
    ("rollout_correction", {"mode": "sequence_mask", "cap": 1.5, "denominator": "kept"}),
    ("forking_tokens", {}),
    ("aepo", {"target": 0.5}),
    ("dmmpt", {"tau": 0.3, "entropy_low": 1.0}),
    ("entropy_ratio_clip", {"ratio_low": 0.8, "ratio_high": 1.2}),
    ("truncated_entropy_bonus", {"coef": 0.1}),
    ("entrocraft", {"target": 0.5}),
    ("entrocraft", {"target": 0.5, "anneal": -2.0}),
    ("entrocraft", {"target": 0.5, "outside": "score"}),
    ("forking_tokens+entropy_bonus", {"share": 0.4, "tokens": "kept"}),
    ("gspo+steer+entropy_bonus+kl_ref", {"eps_low": 0.05, "eps_high": 0.05, "beta": 0.1}),
    ("unlikeliness+positive_reweight", {"lambda_init": 0.5}),
    ("clip_higher+steer+entropic", {"tau": 0.2, "target": 0.5}),
    ("kl_cov+entropy_bonus+positive_reweight", {"coef": 0.1}),
]
CONTROLLERS = [*VARIANTS, *((name, {}) for name in sorted(REGISTRY) if name not in dict(VARIANTS))]
"""Settings worth trying, and the defaults of every controller that has none of them."""
IDS = [f"{spec}-{'-'.join(map(str, s.values()))}" for spec, s in CONTROLLERS]


def planned(spec, settings, tokens, **kwargs):
    controller = make(spec, **settings)
    controller.observe(StepStats(entropy=0.9, step=6, total_steps=8, epoch=2, epochs=3, planned=PLANNED))
    return controller.plan(tokens, **kwargs)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_slices_add_up_to_the_whole(spec, settings):
    t = sampled_tokens(2, 60)
    plan = planned(spec, settings, t)

    def loss(i):
        h = t.truncated_entropy[..., i]
        return plan.loss(t.logp[..., i], t.entropy[..., i], i, truncated_entropy=h)

    whole = plan.loss(t.logp, t.entropy, truncated_entropy=t.truncated_entropy)
    assert whole.shape == (2,)
    generator = torch.Generator().manual_seed(1)
    if make(spec, **settings).surrogate.across_sequences:
        order = torch.arange(60).reshape(15, 4)[torch.randperm(15, generator=generator)]
    else:
        order = torch.randperm(60, generator=generator)
    for parts in (1, 2, 3, len(order)):
        pieces = [loss(i.flatten()) for i in order.tensor_split(parts)]
        torch.testing.assert_close(sum(pieces), whole, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_coefficients_are_the_finite_differences_of_the_loss(spec, settings):
    """Stop-gradients are held where they are while log π moves."""
    t = sampled_tokens(40, seed=3)
    plan = planned(spec, settings, t)

    def slope(**moved):
        h = 1e-6
        at = {"logp": t.logp, "entropy": t.entropy, "truncated_entropy": t.truncated_entropy}
        up, down = ({**at, **{k: at[k] + sign * h for k in moved}} for sign in (1, -1))
        return (plan.token_loss(**up, frozen=t.logp) - plan.token_loss(**down, frozen=t.logp)) / (2 * h)

    d_logp, d_entropy = plan.coefficients(t.logp, t.entropy)
    d_truncated = plan.truncated_coefficient()
    torch.testing.assert_close(d_logp, slope(logp=True), rtol=1e-7, atol=1e-10)
    for name, found in (("entropy", d_entropy), ("truncated_entropy", d_truncated)):
        expected = torch.zeros_like(d_logp) if found is None else found
        torch.testing.assert_close(expected, slope(**{name: True}), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_coefficients_are_the_gradient_beyond_the_limit_of_the_log_ratio(spec, settings):
    t = sampled_tokens(60, seed=4)
    away = torch.tensor([-30.0, -21.0, -1.0, 0.0, 1.0, 21.0, 30.0]).double().repeat(9)[:60]
    t = replace(t, logp=t.logp + away.clamp(max=0), old_logp=t.logp - away.clamp(min=0))
    t = replace(t, ref_logp=t.logp + away.roll(1))
    plan = planned(spec, settings, t)
    logp, entropy, truncated = (x.clone().requires_grad_() for x in (t.logp, t.entropy, t.truncated_entropy))
    loss = plan.loss(logp, entropy, truncated_entropy=truncated)
    (expected,) = torch.autograd.grad(loss, logp)
    torch.testing.assert_close(plan.coefficients(t.logp, t.entropy)[0], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("old", ["equal", "finite"])
@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_a_token_without_probability_spoils_no_other(spec, settings, old):
    """k2 alone pulls that token back without bound."""
    t = sampled_tokens(60, dtype=torch.float32)
    alone = torch.arange(60) == 7
    hit = {"logp": t.logp.masked_fill(alone, -torch.inf), "advantage": t.advantage.masked_fill(alone, -1.0)}
    if old == "equal":
        hit["old_logp"] = t.old_logp.masked_fill(alone, -torch.inf)
    t = replace(t, **hit)
    plan = planned(spec, settings, t)
    d_logp, d_entropy = plan.coefficients(t.logp, t.entropy)
    assert d_logp[~alone].isfinite().all()
    assert d_logp[~alone].any()
    assert d_entropy is None or d_entropy.isfinite().all()
    assert d_logp.isfinite().all() or plan.ref_estimator == "k2"
    assert plan.scale.isfinite().all()
    assert plan.weight.isfinite().all()
    loss = plan.token_loss(t.logp, t.entropy, truncated_entropy=t.truncated_entropy)
    assert loss[~alone].isfinite().all()
    assert not loss.isnan().any()


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_inactive_tokens_have_no_gradient(spec, settings):
    t = sampled_tokens(2, 60)
    plan = planned(spec, settings, t)
    found = (*plan.coefficients(t.logp, t.entropy), plan.truncated_coefficient())
    touched = torch.stack([x != 0 for x in found if x is not None]).any(0)
    active = plan.active()
    assert not (touched & ~active).any()
    assert touched.any()
    if spec in ("ppo", "reinforce"):
        assert torch.equal(active, t.advantage != 0)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_clipped_tokens_have_no_policy_gradient_and_the_others_one(spec, settings):
    t = sampled_tokens(2, 60, seed=1)
    plan = replace(planned(spec, settings, t), entropy_coef=None, kl_coef=None, ref_coef=None)
    pushed = plan.weight * plan.advantage != 0
    d_logp, _ = plan.coefficients(t.logp)
    assert torch.equal(plan.clipped(t.logp)[pushed], (d_logp == 0)[pushed])


def test_clipped_tokens_are_those_without_policy_gradient():
    t = sampled_tokens(500)
    plan = planned("ppo", {"dual_clip": 1.1}, t)
    moving = t.advantage != 0
    d_logp, _ = plan.coefficients(t.logp)
    assert torch.equal(plan.clipped(t.logp)[moving], (d_logp == 0)[moving])
    assert 0.1 < plan.clipped(t.logp).double().mean() < 0.9


def test_index_may_be_a_slice_a_mask_or_positions():
    t = sampled_tokens(20)
    plan = planned("clip_higher", {}, t)
    mask = torch.arange(20) >= 12
    expected = plan.loss(t.logp[12:], index=slice(12, None))
    assert plan.loss(t.logp[mask], index=mask) == expected
    assert plan.loss(t.logp[12:], index=torch.arange(12, 20)) == expected


def test_wrong_number_of_tokens():
    t = sampled_tokens(20)
    with pytest.raises(ValueError, match="logp has 20 tokens, but the plan's slice has 8"):
        planned("ppo", {}, t).loss(t.logp, index=torch.arange(8))


def test_the_plan_has_no_gradient_and_planning_no_effect():
    t = sampled_tokens(20)
    controller = make("steer+entropic", target=0.5)
    before = controller.state_dict()
    t.logp.requires_grad_()
    plan = controller.plan(t)
    assert not plan.weight.requires_grad
    assert controller.state_dict() == before


def test_hyperparameters_of_runs_broadcast():
    """A chain with one value for each run equals chains of their own."""
    t = sampled_tokens(3, 50)
    grid = torch.tensor([0.05, 0.2, 0.4], dtype=torch.float64)
    together = {
        "clip_higher+steer": {"eps_high": grid, "lambda_min": grid},
        "clip_cov": {"k": grid, "omega_low": -9.0, "omega_high": 9.0},
        "kl_cov": {"k": grid, "beta": grid},
        "entropy_bonus": {"coef": grid},
        "forking_tokens+entropy_bonus": {"share": grid, "coef": grid, "tokens": "kept"},
        "opsm": {"delta": grid / 10},
        "clip_b": {"mu": 3 * grid, "signs": "both"},
        "clip_v": {"mu": 3 * grid, "k": grid},
        "quadrant_mask": {"exploitation": grid, "correction": 2 * grid, "share": 2 * grid, "likely": 1 - grid},
        "aem": {"lam": 3 * grid},
        "epo": {
            "coef": grid,
            "smooth": grid,
            "penalty": grid,
            "low": 1 - grid,
            "high": 1 + grid,
            "first_turn": 4 * grid,
        },
        "rollout_correction": {"mode": "token_mask", "floor": 1 - grid, "cap": 1 + grid},
        "entropic": {"target": grid, "tau": grid},
        "steer": {"mapping": "linear", "lambda_max": 1 + grid},
        "opefo": {"variant": "static", "lambda_static": grid},
        "cispo": {"eps_low": grid, "eps_high": grid},
        "ce_gppo": {"beta_low": grid, "beta_high": grid, "dual_clip": 1 + grid},
        "dcpo": {"eps_low": grid, "eps_high": grid, "ratio_max": 1 + grid, "dual_clip": 1 + grid},
        "sapo": {"tau_positive": grid, "tau_negative": grid},
        "aspo": {"eps_low": grid, "eps_high": grid, "dual_clip": 1 + grid},
        "adaptive_clip": {"target": 5 * grid, "eps": grid, "delta": grid, "dual_clip": 1 + grid},
        "bapo": {"share": 0.4 + grid, "low": grid, "high": 1 + grid, "step_low": grid, "step_high": 1 - grid},
        "dppo": {"delta": grid / 5, "ratio_max": 1 + grid, "tau": grid},
        "dppo_kl": {"delta": grid / 20},
        "ipo": {"delta": grid / 5, "tau": grid},
        "dro": {"beta": grid},
        "gspo": {"eps_low": grid, "eps_high": grid},
        "luspo": {"eps_low": grid, "eps_high": grid, "dual_clip": 1 + grid},
        "gmpo": {"eps": grid},
        "vespo": {"k_positive": grid, "lambda_positive": grid, "k_negative": grid, "lambda_negative": grid},
        "flexible_clip": {"eps": grid, "upper_slope": -grid, "upper_start": grid, "lower_slope": -grid},
        "repo_r": {"target": grid, "zeta": grid, "zeta_min": grid / 10, "zeta_max": 2 * grid},
        "adaptive_entropy_trl": {"target": grid, "delta": grid / 10, "initial": grid},
        "adapo": {"target": grid, "eps_low": grid, "eps_high": grid, "factor": 1 + grid, "eps_max": 1 + grid},
        "aer": {"target": 1 + grid, "rho": grid, "delta": grid / 10, "coef_max": grid},
        "papo": {"target": grid, "band": grid, "gamma": grid},
        "arbitrary_entropy": {"target": grid, "gap_max": grid, "correct": grid},
        "kl_ref": {"beta": grid},
        "lp_reg": {"share": grid, "beta": grid},
        "siren": {"beta": grid},
        "stare": {
            "target": 1 + grid,
            "share": grid,
            "positive": 1 + grid,
            "negative": 1 - grid,
            "negative_min": grid,
            "both_signs": True,
            "delta": grid / 10,
        },
        "random_positive_clip": {"k": grid},
        "entropy_advantage": {"alpha": grid, "kappa": 1 + grid},
        "unlikeliness": {"beta": grid},
        "gtpo": {"alpha": grid},
        "edge": {"entropy_floor": grid},
        "ppl_advantage": {"alpha": grid, "weight_max": 1 + grid},
        "position_advantage": {"gamma": grid, "slope": 10 * grid, "limit": grid},
        "forking_tokens": {"share": grid},
        "aepo": {"target": grid, "band": grid / 10},
        "entrocraft": {"target": grid, "band": grid / 10, "anneal": grid, "wrong_reward": -grid, "outside": "score"},
        "dmmpt": {"tau": grid, "entropy_low": 5 * grid},
        "entropy_ratio_clip": {"ratio_low": 1 - grid, "ratio_high": 1 + grid},
        "truncated_entropy_bonus": {"coef": grid},
    }
    for spec, settings in together.items():
        c = make(spec, **settings)
        c.observe(StepStats(entropy=torch.tensor([0.3, 0.3, 0.3]), step=2, total_steps=5, planned=PLANNED))
        plan = c.plan(t, seed=torch.tensor([4, 5, 6]))
        losses = plan.loss(t.logp, t.entropy, truncated_entropy=t.truncated_entropy)
        for run in range(3):
            own = {k: float(v[run]) if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
            alone = type(t)(**{k: v if v is None or v.ndim == 1 else v[run] for k, v in vars(t).items()})
            c = make(spec, **own)
            c.observe(StepStats(entropy=torch.tensor(0.3), step=2, total_steps=5, planned=PLANNED))
            plan = c.plan(alone, seed=4 + run)
            loss = plan.loss(alone.logp, alone.entropy, truncated_entropy=alone.truncated_entropy)
            torch.testing.assert_close(losses[run], loss, rtol=1e-12, atol=0)


def plain_plan(**settings):
    """Return a plan of four tokens at log π = log π_old = −3, advantages 0, 0, 1 and −1, scales of 1/4."""
    old = torch.full((4,), -3.0, dtype=torch.float64)
    advantage = torch.tensor([0.0, 0.0, 1.0, -1.0], dtype=torch.float64)
    return make("ppo", **settings).plan(Tokens(logp=old, old_logp=old, advantage=advantage)), old


def test_terms_of_two_parts_add_up():
    plan, old = plain_plan()
    first, second = torch.tensor([0.0, 0.5, 0.0, 0.5]).double(), torch.tensor([0.0, 0.25, 0.5, 0.0]).double()
    for add, coef in (
        (plan.add_entropy_bonus, "entropy_coef"),
        (plan.add_kl, "kl_coef"),
        (plan.add_truncated_bonus, "truncated_coef"),
    ):
        assert torch.equal(getattr(add(first), coef), first)
        once = add(first, first_info=old)
        both = getattr(once, add.__name__)(second, second_info=old)
        assert getattr(both, coef).tolist() == [0.0, 0.75, 0.5, 0.5]
        assert both.info.keys() == {*plan.info, "first_info", "second_info"}
        assert add(second).active().tolist() == [False, True, True, True]
    assert plan.add_kl(second).token_loss(old).tolist() == [0.0, 0.0, -0.25, 0.25]
    assert plan.add_ref_kl(second, old, "k1").active().tolist() == [False, True, True, True]
    with pytest.raises(ValueError, match="already has a penalty"):
        plan.add_ref_kl(first, old, "k1").add_ref_kl(second, old, "k1")


@pytest.mark.parametrize(("spec", "expected"), [("ppo", True), ("steer", True), ("gspo", False), ("gmpo", False)])
def test_which_plans_take_any_slice(spec, expected):
    assert make(spec).plan(sampled_tokens(20)).elementwise == expected


def test_an_entropy_that_a_bonus_needs_is_asked_for():
    plan, old = plain_plan()
    for call in (plan.add_entropy_bonus(old).loss, plan.add_entropy_bonus(old).coefficients):
        with pytest.raises(ValueError, match="this plan has a bonus on the entropy: pass entropy to loss"):
            call(old)
    with pytest.raises(ValueError, match="bonus on the truncated entropy: pass truncated_entropy to loss"):
        plan.add_truncated_bonus(old).loss(old)


def test_a_ratio_at_its_bound_is_not_beyond_it():
    plan, old = plain_plan(eps_low=0.0, eps_high=0.0)
    assert not plan.clipped(old).any()
    assert not plan.changed(dual_clip=torch.ones(1).double()).clipped(old).any()
    assert plan.coefficients(old)[0].tolist() == [0.0, 0.0, -0.25, 0.25]


def test_only_tokens_with_a_direction_and_a_ratio_are_clipped():
    plan, old = plain_plan()
    assert plan.clipped(old + torch.tensor([1, -1, 1, -1])).tolist() == [False, False, True, True]
    turned = plan.reweight(torch.tensor([1, 1, 0, -1]))
    assert turned.clipped(old + 1).tolist() == [False, False, True, True]
    assert (~plan.changed(old_logp=None).clipped(old)).all()


def test_a_gap_within_rounding_has_no_direction():
    """16 units of float64's rounding, 2^−52, times 1 + |log π_old| = 4, are 64 of them; bf16 counts as fp32."""
    plan, old = plain_plan()
    pulled = plan.shape(torch.zeros(4).double()).add_kl(torch.ones(4).double())
    logp = old + torch.tensor([64, -64, 66, -66]) * 2.0**-52
    assert pulled.coefficients(logp)[0].tolist() == [0.0, 0.0, 0.25, -0.25]
    assert (pulled.token_loss(logp) > 0).tolist() == [False, False, True, True]
    assert rounding(old.bfloat16()) == rounding(old.float()) == 2.0**-19


def test_a_token_that_was_dropped_stays_dropped():
    t = sampled_tokens(1, 3)
    once = make("grpo").plan(t).drop(torch.tensor([True, False, False]))
    twice = once.drop(torch.tensor([False, True, False]))
    assert twice.keep.tolist() == [False, False, True]
    assert (twice.weight != 0).tolist() == [False, False, True]


def test_a_penalty_is_only_of_tokens_with_a_coefficient():
    """kl_ref with β = .5, on the second of two tokens alone; k3 of log ratio log 2 is ½ − 1 + log 2."""
    old = torch.zeros(2, dtype=torch.float64)
    t = Tokens(logp=old, old_logp=old, ref_logp=old - log(2), advantage=old)
    plan = make("kl_ref", beta=0.5).plan(t)
    halved = replace(plan, ref_coef=plan.ref_coef * torch.tensor([0.0, 1.0], dtype=torch.float64))
    kl = 0.5 - 1 + log(2)
    assert float(halved.loss(old)) == pytest.approx(0.5 * kl / 2, rel=1e-12)
    assert float(plan.loss(old)) == pytest.approx(0.5 * kl, rel=1e-12)


BONUSES = {"entropy_bonus": "entropy", "thermostat": "entropy", "truncated_entropy_bonus": "truncated_entropy"}


@pytest.mark.parametrize(("spec", "name"), BONUSES.items())
def test_an_entropy_that_the_bonus_cannot_move_is_refused(spec, name):
    """Such a bonus was trained without (huggingface/trl#6140, #6625; MikeWangWZHL/PAPO#20)."""
    t = sampled_tokens(6)
    plan, logp = make(spec).plan(t), t.logp.clone().requires_grad_()
    held = {x: getattr(t, x).clone().requires_grad_() for x in ("entropy", "truncated_entropy")}
    loss = plan.loss(logp, held["entropy"], truncated_entropy=held["truncated_entropy"])
    assert torch.autograd.grad(loss, held[name])[0].any()
    still = {**held, name: held[name].detach()}
    said = f"^{name} has no gradient, and this plan has a bonus on it: compute it from the logits as logp"
    with pytest.raises(ValueError, match=said):
        plan.loss(logp, still["entropy"], truncated_entropy=still["truncated_entropy"])
    plan.loss(logp.detach(), still["entropy"], truncated_entropy=still["truncated_entropy"])
    with torch.no_grad():
        plan.loss(logp, still["entropy"], truncated_entropy=still["truncated_entropy"])
    for wrong in (held[name].mean(), held[name][:, None], held[name][:3]):
        given = {**held, name: wrong}
        with pytest.raises(ValueError, match=rf"^{name} has shape .*; expected one for each token, \(6,\)"):
            plan.loss(logp, given["entropy"], truncated_entropy=given["truncated_entropy"])


def test_an_entropy_without_a_bonus_is_not_looked_at():
    t = sampled_tokens(6)
    make("clip_higher").plan(t).loss(t.logp.clone().requires_grad_(), t.entropy).backward()
