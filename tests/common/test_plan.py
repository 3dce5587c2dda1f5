"""Slices add up, and the coefficients are the gradient."""

import pytest
import torch
from helpers import sampled_tokens

from entrostat import StepStats, make

CONTROLLERS = [
    ("ppo", {}),
    ("ppo", {"dual_clip": 1.5}),
    ("ppo", {"aggregation": "seq-mean-token-mean"}),
    ("ppo", {"aggregation": "seq-mean-token-sum"}),
    ("clip_higher", {}),
    ("clip_lower", {}),
    ("clip_tighter", {}),
    ("clip_free", {}),
    ("reinforce", {}),
    ("clip_cov", {"k": 0.1, "omega_low": -9.0, "omega_high": 9.0, "denominator": "kept"}),
    ("kl_cov", {"k": 0.2}),
    ("entropy_bonus", {}),
    ("adaptive_entropy", {"target": 5.0}),
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
    ("clip_higher+steer+entropic", {"tau": 0.2, "target": 0.5}),
    ("kl_cov+entropy_bonus+positive_reweight", {"coef": 0.1}),
]
IDS = [f"{spec}-{'-'.join(map(str, s.values()))}" for spec, s in CONTROLLERS]


def planned(spec, settings, tokens, **kwargs):
    controller = make(spec, **settings)
    controller.observe(StepStats(entropy=0.9, step=6, total_steps=8, epoch=2, epochs=3))
    return controller.plan(tokens, **kwargs)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_slices_add_up_to_the_whole(spec, settings):
    t = sampled_tokens(2, 60)
    plan = planned(spec, settings, t)
    whole = plan.loss(t.logp, t.entropy)
    assert whole.shape == (2,)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    for parts in (1, 2, 3, 60):
        pieces = [plan.loss(t.logp[..., i], t.entropy[..., i], i) for i in order.tensor_split(parts)]
        torch.testing.assert_close(sum(pieces), whole, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_coefficients_are_the_finite_differences_of_the_loss(spec, settings):
    t = sampled_tokens(40, seed=3)
    plan = planned(spec, settings, t)
    d_logp, d_entropy = plan.coefficients(t.logp, t.entropy)
    h = 1e-6
    numeric = (plan.token_loss(t.logp + h, t.entropy) - plan.token_loss(t.logp - h, t.entropy)) / (2 * h)
    torch.testing.assert_close(d_logp, numeric, rtol=1e-7, atol=1e-10)
    numeric = (plan.token_loss(t.logp, t.entropy + h) - plan.token_loss(t.logp, t.entropy - h)) / (2 * h)
    expected = torch.zeros_like(numeric) if d_entropy is None else d_entropy
    torch.testing.assert_close(expected, numeric, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(("spec", "settings"), CONTROLLERS, ids=IDS)
def test_inactive_tokens_have_no_gradient(spec, settings):
    t = sampled_tokens(2, 60)
    plan = planned(spec, settings, t)
    d_logp, d_entropy = plan.coefficients(t.logp, t.entropy)
    touched = d_logp != 0 if d_entropy is None else (d_logp != 0) | (d_entropy != 0)
    active = plan.active()
    assert not (touched & ~active).any()
    assert touched.any()
    if spec in ("ppo", "reinforce"):
        assert torch.equal(active, t.advantage != 0)


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
    with pytest.raises(ValueError, match="logp has 20 tokens where the plan's slice has 8"):
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
        "entropic": {"target": grid, "tau": grid},
        "steer": {"mapping": "linear", "lambda_max": 1 + grid},
        "opefo": {"variant": "static", "lambda_static": grid},
    }
    for spec, settings in together.items():
        c = make(spec, **settings)
        c.observe(StepStats(entropy=torch.tensor([0.3, 0.3, 0.3])))
        losses = c.plan(t, seed=torch.tensor([4, 5, 6])).loss(t.logp, t.entropy)
        for run in range(3):
            own = {k: float(v[run]) if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
            alone = type(t)(**{k: v if v is None or v.ndim == 1 else v[run] for k, v in vars(t).items()})
            c = make(spec, **own)
            c.observe(StepStats(entropy=torch.tensor(0.3)))
            loss = c.plan(alone, seed=4 + run).loss(alone.logp, alone.entropy)
            torch.testing.assert_close(losses[run], loss, rtol=1e-12, atol=0)
