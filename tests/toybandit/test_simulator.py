"""The simulator against itself in other batches, and what it should be exact about; plain loops: test_plain_loops."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from entrostat import Chain, list_controllers
from entrostat.numbers.support import Support, truncated_entropy
from toybandit import Config, simulate

SMALL = {"states": 6, "rollouts": 5, "passes": 3}
ARGS = {"clip_cov": {"k": 0.05, "omega_low": 0.2}, "kl_cov": {"k": 0.05}, "entropic": {"tau": 0.0}}


def test_shapes_and_ranges():
    trajectory = simulate(Config(controller="steer", **SMALL), range(3), predict=True)
    assert trajectory.entropy.shape == (3, 6)
    assert trajectory.reward.shape == trajectory.metrics["steer/omega_max"].shape == (3, 5)
    assert trajectory.predicted is not None
    assert trajectory.predicted.shape == (3, 5)
    assert trajectory.probabilities.shape == trajectory.success.shape == (3, 6, 16)
    np.testing.assert_allclose(trajectory.probabilities.sum(-1), 1.0, rtol=1e-14)
    p = trajectory.probabilities
    np.testing.assert_allclose(-(p * np.log(p)).sum(-1).mean(-1), trajectory.entropy[:, -1], rtol=1e-13)
    assert trajectory.seeds == (0, 1, 2)


def test_policies_are_kept():
    kept = simulate(Config(**SMALL), range(2), keep_policies=True)
    assert kept.policies is not None
    assert kept.policies.shape == (2, 6, 6, 16)
    entropy = -(kept.policies * np.log(kept.policies)).sum(-1).mean(-1)
    np.testing.assert_allclose(entropy, kept.entropy, rtol=1e-13)
    np.testing.assert_array_equal(kept.policies[:, -1], kept.probabilities)
    assert simulate(Config(**SMALL)).policies is None


def test_every_update_is_watched():
    seen = []
    watched = simulate(Config(**SMALL), range(2), watch=lambda tokens, plan: seen.append((tokens, plan)))
    assert len(seen) == 5 * 3
    for tokens, plan in seen:
        assert tokens.get("logp").shape == tokens.get("s2ll").shape == (2, 6 * 16)
        assert plan.weight.expand(2, 96).shape == (2, 96)
    np.testing.assert_array_equal(watched.entropy, simulate(Config(**SMALL), range(2)).entropy)


def test_every_update_has_a_number_of_its_own(monkeypatch):
    """So that no two of a run draw the same tokens."""
    made, plan = [], Chain.plan

    def spy(self, tokens, reduce, seed, step):
        made.append((seed.tolist(), step))
        return plan(self, tokens, reduce, seed, step)

    monkeypatch.setattr(Chain, "plan", spy)
    simulate(Config(states=2, rollouts=2, passes=3), [4, 9])
    assert made == [([4, 9], number) for number in range(6)]


def test_what_was_planned_is_summed_for_the_controller_and_averaged_for_the_record(monkeypatch):
    told, seen, observe = [], [], Chain.observe
    monkeypatch.setattr(Chain, "observe", lambda self, stats: told.append(stats) or observe(self, stats))
    config = Config(controller="steer", **SMALL)
    run = simulate(config, range(2), watch=lambda _, plan: seen.append(plan.info["steer/omega_max"]))
    sums = torch.stack(seen).reshape(5, 3, 2).sum(1)
    np.testing.assert_allclose(run.metrics["steer/omega_max"], sums.T / 3, rtol=1e-14)
    assert [(stats.step, stats.total_steps) for stats in told] == [(step, 5) for step in range(5)]
    assert told[0].planned == {}
    for stats, expected in zip(told[1:], sums, strict=False):
        torch.testing.assert_close(stats.planned["steer/omega_max"], expected, rtol=1e-14, atol=0)


def test_tokens_know_where_they_come_from():
    """The rollout's policy is that of its first pass; the reference is what the run began with."""
    seen = []
    simulate(Config(states=4, rollouts=2, passes=2), watch=lambda tokens, _: seen.append(tokens))
    for rollout in (seen[:2], seen[2:]):
        for tokens in rollout:
            assert torch.equal(tokens.old_logp, rollout[0].logp)
            assert torch.equal(tokens.rollout_logp, rollout[0].logp)
            assert torch.equal(tokens.old_entropy, rollout[0].entropy)
    assert torch.equal(seen[1].ref_logp, seen[0].logp)
    assert not torch.isclose(seen[2].ref_logp, seen[2].logp).all()


def test_runs_side_by_side_reset_their_own_references():
    """A reference that is the policy at every single update has no pull; one that is reset later pulls until then."""
    args, single = {"beta": 0.3, "reset_every": [0, 1, 4]}, SMALL | {"passes": 1, "rollouts": 8}
    run = simulate(Config(env="on", controller="kl_ref", controller_args=args, **single), [7, 7, 7])
    free = simulate(Config(env="on", controller="grpo", **single), [7])
    np.testing.assert_allclose(run.entropy[1], free.entropy[0], rtol=1e-12)
    apart = np.abs(run.entropy[2] - run.entropy[0]) > 1e-9
    assert not apart[:5].any()  # the first update with the new reference is that of rollout 4
    assert apart[5:].all()


@pytest.mark.parametrize("mode", ["anchor", "anchor+bonus"])
def test_the_reference_of_a_thermostat_is_the_start(mode):
    """A penalty to it, or what it leaves to the bonus, keeps the entropy above that of plain GRPO."""
    run = simulate(Config(controller="thermostat", controller_args={"mode": mode, "target": 2.9}, **SMALL), range(2))
    assert (run.metrics["thermostat/anchor"] > 0).all()
    plain = simulate(Config(controller="grpo", **SMALL), range(2))
    assert (run.entropy[:, -1] > plain.entropy[:, -1]).all()


def test_no_seeds():
    with pytest.raises(ValueError, match="seeds must name at least one run"):
        simulate(Config(), [])


@pytest.mark.parametrize("controller", list_controllers())
def test_a_run_alone_is_the_run_in_a_batch(controller):
    config = Config(controller=controller, controller_args=ARGS.get(controller, {}), **SMALL)
    together = simulate(config, [5, 11, 2])
    alone = simulate(config, [11])
    np.testing.assert_allclose(together.entropy[1:2], alone.entropy, rtol=0, atol=1e-12)
    np.testing.assert_allclose(together.probabilities[1:2], alone.probabilities, rtol=0, atol=1e-12)
    assert set(together.metrics) == set(alone.metrics)
    for name, values in alone.metrics.items():
        np.testing.assert_allclose(together.metrics[name][1:2], values, rtol=0, atol=1e-12, err_msg=name)


def test_hyperparameters_of_each_run():
    many = simulate(Config(controller="entropy_bonus", controller_args={"coef": [0.0, 0.1]}, **SMALL), [3, 3])
    for run, coef in enumerate((0.0, 0.1)):
        one = simulate(Config(controller="entropy_bonus", controller_args={"coef": coef}, **SMALL), [3])
        np.testing.assert_allclose(many.entropy[run], one.entropy[0], rtol=0, atol=1e-12)
    assert many.entropy[1, -1] > many.entropy[0, -1]


def test_flow_of_a_truncated_bonus_is_foretold():
    """Without advantages all of the change is the bonus's own: right to first order in the step."""
    args = {"coef": 0.5, "top_k": 3}
    environment = {"reward_right": 1.0, "reward_wrong": 1.0, "passes": 1, "states": 6, "rollouts": 1}
    errors = []
    for lr in (1e-2, 1e-3):
        config = Config(controller="truncated_entropy_bonus", controller_args=args, lr=lr, **environment)
        run = simulate(config, range(3), predict=True)
        change = run.entropy[:, -1] - run.entropy[:, 0]
        assert (change > 0).all()
        errors.append(np.abs(run.predicted[:, 0] - change).max() / np.abs(change).max())
    assert errors[0] < 0.01
    assert 5 < errors[0] / errors[1] < 20


def test_controllers_meet_the_same_bandits():
    first, second = (simulate(Config(controller=name, **SMALL), [0, 1]) for name in ("grpo", "clip_free"))
    assert np.array_equal(first.entropy[:, 0], second.entropy[:, 0])
    assert np.array_equal(first.success, second.success)
    assert not np.array_equal(first.entropy[:, -1], second.entropy[:, -1])


def test_kl_cov_without_reuse_is_plain_policy_gradient():
    kl_cov, free = (
        simulate(Config(env="on", controller=c, **SMALL | {"passes": 1}), [0]) for c in ("kl_cov", "clip_free")
    )
    np.testing.assert_allclose(kl_cov.entropy, free.entropy, rtol=0, atol=1e-13)


@pytest.mark.parametrize("controller", ["grpo", "entropy_bonus", "entropic", "opefo"])
def test_predicted_change_is_first_order(controller):
    """The gap between predicted and measured change of the first rollout falls with the square of the step."""
    gaps = []
    for lr in (1e-2, 1e-3):
        args = {"coef": 0.5} if controller == "entropy_bonus" else ARGS.get(controller, {})
        config = Config(controller=controller, controller_args=args, states=16, rollouts=1, lr=lr)
        trajectory = simulate(config, range(4), predict=True)
        assert trajectory.predicted is not None
        measured = np.diff(trajectory.entropy)
        assert np.abs(measured).mean() > 2e-5
        gaps.append(np.abs(trajectory.predicted - measured).mean())
    assert np.log10(gaps[0] / gaps[1]) == pytest.approx(2, abs=0.1)


def test_reward_is_that_of_the_policy():
    trajectory = simulate(Config(env="det", states=4, rollouts=1), [0])
    again = simulate(Config(env="det", states=4, rollouts=2), [0])
    expected = (trajectory.probabilities * trajectory.success).sum(-1).mean(-1)
    np.testing.assert_allclose(again.reward[:, 1], expected, rtol=1e-14)


def test_coupling_moves_states_without_signal():
    """With the kernel on, a state's logits also take the others' updates."""
    plain, coupled = (simulate(Config(coupling=c, states=2, rollouts=1, passes=1), [0]) for c in (0.0, 0.25))
    start = np.log(simulate(Config(states=2, rollouts=1, lr=1e-300), [0]).probabilities)

    def moved(trajectory):
        step = np.log(trajectory.probabilities) - start
        return step - step.mean(-1, keepdims=True)

    kernel = np.array([[1.0, 0.25], [0.25, 1.0]])
    np.testing.assert_allclose(moved(coupled), kernel @ moved(plain), rtol=0, atol=1e-13)


def test_single_precision():
    double, single = (simulate(Config(dtype=name, **SMALL), [0]) for name in ("float64", "float32"))
    assert double.entropy.dtype == single.entropy.dtype == np.float64
    np.testing.assert_allclose(single.entropy, double.entropy, rtol=0, atol=1e-5)
    assert not np.array_equal(single.entropy, double.entropy)


def test_adam_step_is_as_large_as_its_rate():
    config = Config(env="exact", update="adam", lr=0.05, rollouts=1)
    logits = np.log(simulate(config, [0]).probabilities)[0, 0]
    assert np.ptp(logits) == pytest.approx(0.1, rel=1e-5)  # one arm up, the others down


def test_on_rollout_reports_every_rollout():
    seen = []
    config = Config(controller="entropic", **SMALL)
    trajectory = simulate(config, range(2), on_rollout=lambda step, metrics: seen.append((step, metrics)))
    assert [step for step, _ in seen] == list(range(5))
    assert list(seen[0][1]) == ["entropy", "reward", "entropic/integral", "entropic/alpha"]
    for step, metrics in seen:
        assert metrics["entropy"] == pytest.approx(trajectory.entropy[:, step].mean(), rel=1e-14)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    simulate(Config(**SMALL), [0])
    assert torch.get_num_threads() == before


def test_a_run_goes_on_where_another_ended():
    """Outcomes are enumerated, so that luck has no part in it."""
    whole, first, last = (
        simulate(Config(gradient="exact", **SMALL | {"rollouts": rollouts}), range(2)) for rollouts in (5, 2, 3)
    )
    rest = simulate(last.config, range(2), start=first.logits)
    np.testing.assert_allclose(rest.entropy, whole.entropy[:, 2:], rtol=0, atol=1e-13)
    np.testing.assert_allclose(rest.probabilities, whole.probabilities, rtol=0, atol=1e-13)


@pytest.mark.parametrize("start", [np.zeros((1, 6, 16)), np.zeros((2, 6)), np.full((2, 6, 16), np.inf)])
def test_a_bad_start(start):
    with pytest.raises(ValueError, match=r"^start has [^\n]+$"):
        simulate(Config(**SMALL), range(2), start=start)


def test_rates_of_each_run():
    many = simulate(Config(lr=(0.1, 0.5), **SMALL), [3, 3], predict=True)
    for run, lr in enumerate((0.1, 0.5)):
        one = simulate(Config(lr=lr, **SMALL), [3], predict=True)
        np.testing.assert_allclose(many.entropy[run], one.entropy[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(many.predicted[run], one.predicted[0], rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="lr has 2 values for 3 runs"):
        simulate(Config(lr=(0.1, 0.5), **SMALL), range(3))


@pytest.mark.parametrize("env", ["noisy", "det"])
def test_exact_gradient_is_what_samples_give_on_average(env):
    """One strictly on-policy step of 4,000 responses against the expected one, both with A = R − ρ."""
    size = {"states": 2, "rollouts": 1, "passes": 1, "lr": 0.05}
    exact = simulate(Config(env=env, controller="reinforce", gradient="exact", **size), [0])
    sampled = simulate(Config(env=env, controller="reinforce", advantage="dr_grpo", group=4000, **size), [0])
    start = simulate(Config(env=env, **size | {"lr": 1e-300}), [0]).logits
    expected, found = exact.logits - start, sampled.logits - start
    assert np.abs(expected).max() > 1e-3
    assert np.abs(found - expected).max() < 0.05 * 4 / np.sqrt(4000)


def test_exact_gradient_climbs_the_expected_reward():
    run = simulate(Config(gradient="exact", controller="reinforce", states=8, rollouts=50, passes=1, lr=1.0), range(2))
    assert (np.diff(run.reward, axis=1) > 0).all()


@pytest.mark.parametrize(("bonus", "args"), [("entropy_bonus", {}), ("truncated_entropy_bonus", {"top_k": 3})])
def test_bonus_on_the_exact_gradient(bonus, args):
    """All arms are worth the same, so a step is the gradient of the bonus alone."""
    alike = {"reward_right": 0.5, "reward_wrong": 0.5, "states": 3, "rollouts": 1, "passes": 1}
    given = {"controller": f"reinforce+{bonus}", "controller_args": {"coef": 0.3, **args}}
    run = simulate(Config(gradient="exact", lr=0.1, **given, **alike), [5])
    start = torch.tensor(simulate(Config(lr=1e-300, **alike), [5]).logits, requires_grad=True)
    truncated_entropy(start, Support(**args)).sum().backward()
    np.testing.assert_allclose(run.logits - start.detach().numpy(), 0.1 * 0.3 * start.grad, rtol=0, atol=1e-14)


def test_natural_gradient_forgets_the_parametrisation():
    """Δz = η·(A − mean A): with the expected gradient every arm's logit moves by its own advantage."""
    config = Config(gradient="exact", update="npg", controller="reinforce", states=3, rollouts=1, passes=1, lr=0.1)
    start = simulate(Config(states=3, rollouts=1, lr=1e-300), [5])
    run = simulate(config, [5])
    q = run.success
    step = 0.1 * (q - q.mean(-1, keepdims=True))
    np.testing.assert_allclose(run.logits - start.logits, step, rtol=0, atol=1e-12)


def test_device():
    with pytest.raises(ValueError, match="device must be one of cpu, cuda; got 'tpu'"):
        Config(device="tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device 'cuda' is not available here: use cpu"):
            simulate(Config(device="cuda", **SMALL), [0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("controller", ["grpo", "clip_cov", "thermostat", "entropic"])
def test_a_gpu_gives_the_same_run(controller):
    cpu, cuda = (simulate(Config(controller=controller, device=d, **SMALL), range(2)) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(cuda.entropy, cpu.entropy, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_seeds_out_of_range(seed):
    with pytest.raises(ValueError, match="seeds must be between 0 and"):
        simulate(Config(env="noisy", rollouts=1), seeds=(0, seed))


def test_passes_that_are_watched_are_not_compiled():
    from toybandit.simulator import _Simulation

    def compiled(**asked):
        watched = {"predict": False, "diagnostics": False, "keep_policies": False, "watch": None, "start": None}
        simulation = _Simulation(Config(env="noisy", states=4), (0,), *(watched | asked).values())
        simulation.compile()
        return simulation.fast is not None

    assert compiled()
    assert not compiled(predict=True)
    assert not compiled(diagnostics=True)
    assert not compiled(watch=lambda *seen: None)


@pytest.mark.parametrize("env", ["noisy", "episodes"])
def test_label_noise_is_in_what_training_sees_and_not_in_what_is_recorded(env):
    """The first rollout, before any update: same policy and same recorded reward, other rewards in the tokens."""
    seen = []
    config = Config(env=env, states=4, rollouts=3, passes=1)
    clean, noisy = (
        simulate(replace(config, label_noise=e), [1, 2], watch=lambda tokens, plan: seen.append(tokens.get("reward")))
        for e in (None, 0.4)
    )
    assert 0.2 < float((seen[0] != seen[3]).double().mean()) < 0.6
    np.testing.assert_array_equal(clean.success, noisy.success)
    np.testing.assert_array_equal(clean.reward[:, 0], noisy.reward[:, 0])
    np.testing.assert_allclose(noisy.metrics["reward_seen"], 0.2 * noisy.reward + 0.4, rtol=1e-14)
    assert "reward_seen" not in clean.metrics
    assert not np.array_equal(clean.logits, noisy.logits)


def test_label_noise_of_zero_is_none():
    config = Config(states=4, rollouts=5)
    one, other = (simulate(c, [3]) for c in (config, replace(config, label_noise=0.0)))
    np.testing.assert_array_equal(one.logits, other.logits)
    assert one.metrics.keys() == other.metrics.keys()


def test_label_noise_shortens_the_expected_step():
    """With noise e the expected gradient is 1 − 2e of the clean one; with e = .5 nothing is learnt."""
    clean = simulate(Config(env="exact", rollouts=50, lr=0.3))
    noisy = simulate(Config(env="exact", rollouts=50, lr=0.5, label_noise=0.2))
    np.testing.assert_allclose(noisy.logits, clean.logits, rtol=1e-10)
    assert np.abs(simulate(Config(env="exact", rollouts=50, label_noise=0.5)).logits).max() < 1e-13
