"""Shared features: the tabular limit, gradients against autograd, a run in plain loops, pass@k by enumeration."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit import Config, simulate
from toybandit.episodes import solved
from toybandit.features import Features, directions, in_weights, logits_of

LIMIT = 0.0175
"""Norm of a gradient, between those of the run."""
SMALL = Config(env="features", rollouts=6, pool=64, held_out=8)


@settings(max_examples=20, deadline=None)
@given(
    env=st.sampled_from(["noisy", "on", "pure", "det", "coupled", "episodes"]),
    controller=st.sampled_from(["grpo", "clip_cov", "entropy_bonus", "kl_ref"]),
    update=st.sampled_from(["sgd", "adam"]),
    more=st.integers(0, 5),
)
def test_a_table_is_the_limit(env: str, controller: str, update: str, more: int) -> None:
    if env == "coupled":
        update = "sgd"  # a table adds the others' steps, features the others' gradients: the same without Adam
    table = Config(env=env, states=8, rollouts=6, controller=controller, update=update)
    features = table.environment().rows + more
    ours, theirs = simulate(replace(table, features=features), (3, 4)), simulate(table, (3, 4))
    for name in ("entropy", "reward", "logits", "success"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-12)


def test_directions_are_unit_vectors_and_orthogonal_where_they_can_be() -> None:
    few, all_but_one = directions(50, 3), directions(50, 49)
    np.testing.assert_allclose(np.linalg.norm(few, axis=1), 1)
    np.testing.assert_array_equal(directions(50, 80), np.eye(50))
    overlap = all_but_one @ all_but_one.T - np.eye(50)
    assert np.abs(overlap).max() < 0.2  # a little short of a table, states share a little
    assert np.abs(few @ few.T - np.eye(50)).max() > 0.9


def test_gradient_in_weights_is_autograd_s() -> None:
    draws = torch.Generator().manual_seed(0)
    of_row, weights = torch.randn(7, 3, generator=draws).double(), torch.randn(2, 3, 5, generator=draws).double()
    weights.requires_grad_()
    entropy = torch.distributions.Categorical(logits=torch.einsum("nw,rwk->rnk", of_row, weights)).entropy()
    (wanted,) = torch.autograd.grad(entropy.sum(), weights)
    logits = logits_of(weights.detach(), of_row).requires_grad_()
    (in_logits,) = torch.autograd.grad(torch.distributions.Categorical(logits=logits).entropy().sum(), logits)
    torch.testing.assert_close(in_weights(in_logits, of_row, slice(0, 7), 3), wanted, rtol=0, atol=1e-14)


def test_gradient_of_a_part_of_a_table_is_zero_elsewhere() -> None:
    part = torch.ones(1, 2, 3)
    whole = in_weights(part, None, slice(2, 4), 6)
    assert whole.sum(-1).tolist() == [[0, 0, 3, 3, 0, 0]]


@pytest.mark.parametrize("update", ["sgd", "adam"])
def test_a_run_is_one_in_plain_torch(update: str) -> None:
    """The same samples, trained by torch's own optimizer, autograd and clipping, one mini-batch after another."""
    config = replace(SMALL, update=update, lr=0.05)
    config = replace(config, momentum=0.5 if update == "sgd" else None, max_grad_norm=LIMIT)
    seen = []
    run = simulate(config, (5,), watch=lambda tokens, plan: seen.append((tokens, plan)))
    environment = config.environment()
    features = Features(environment, torch.tensor([5]), torch.float64)
    theta = features.weights[0].clone().requires_grad_()
    half, nodes, group = environment.states // 2, environment.nodes, environment.group
    states = half
    if update == "adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam([theta], lr=0.05, betas=(0.9, 0.95), eps=1e-8 / states)
    else:
        optimizer = torch.optim.SGD([theta], lr=0.05 * states, momentum=0.5)
    clipped = 0
    for number, (tokens, _) in enumerate(seen):
        first = features.turn(number // 2).start + number % 2 * half * nodes
        of_row = features.of_row[first : first + half * nodes]
        node = torch.arange(nodes).repeat(half * group)
        prompt = torch.arange(half).repeat_interleave(group * nodes)
        logp_all = torch.log_softmax(of_row @ theta, -1)[prompt * nodes + node]
        # The arm of a token is the one with its probability; the drawn arms are not in the tokens.
        now, old, advantage = (x[0].clone() for x in (tokens.logp, tokens.old_logp, tokens.advantage))
        arm = (logp_all - now.unsqueeze(-1)).abs().argmin(-1)
        logp = logp_all.gather(-1, arm.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(logp.detach(), now, rtol=0, atol=1e-10)
        ratio = (logp - old).exp()
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        loss = -torch.where(advantage < 0, torch.maximum(surrogate, 3 * advantage), surrogate).mean()
        optimizer.zero_grad()
        loss.backward()
        assert theta.grad is not None
        norm = float(theta.grad.norm())  # clip_grad_norm_ adds 1e-6 to it
        clipped += norm > LIMIT
        theta.grad *= min(1, LIMIT / norm)
        optimizer.step()
    assert 0 < clipped < len(seen), clipped
    np.testing.assert_allclose(run.weights[0], theta.detach().numpy(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("length", "branching"), [(1, 1), (3, 1), (3, 2)])
def test_solved_is_the_sum_over_all_responses(length: int, branching: int) -> None:
    environment = replace(SMALL, length=length, branching=branching, arms=3).environment()
    draws = torch.Generator().manual_seed(1)
    p = torch.rand(1, environment.nodes, 3, generator=draws).double().softmax(-1)
    success = torch.rand(1, environment.nodes, 3, generator=draws).double()
    total = 0.0
    for arms in product(range(3), repeat=length):
        first, within, chance = 0, 0, 1.0
        for depth, arm in enumerate(arms):
            node = first + within
            chance *= float(p[0, node, arm] * success[0, node, arm])
            first, within = first + branching**depth, within * branching + arm % branching
        total += chance
    assert float(solved(p, success, environment)) == pytest.approx(total, rel=1e-12)


def test_held_out_prompts_are_judged_by_the_final_weights() -> None:
    run = simulate(SMALL, (0, 1))
    assert run.held_out is not None
    assert run.held_out.rollouts.tolist() == [0, 1, 2, 3, 4, 5, 6]
    features = Features(SMALL.environment(), torch.tensor([0, 1]), torch.float64)
    for number in (0, 1):
        of_row = features.of_row[features.unseen].numpy()
        z = of_row @ run.weights[number]
        p = np.exp(z - z.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        right = (p * features.right[number, features.unseen].numpy()).sum(-1).reshape(8, -1).prod(-1)
        np.testing.assert_allclose(run.held_out.solved[number, -1], right, rtol=0, atol=1e-14)
        assert run.held_out.pass_at(8)[number, -1] == pytest.approx((1 - (1 - right) ** 8).mean(), abs=1e-14)
    assert (run.held_out.pass_at(8) > run.held_out.pass_at(1)).all()


@pytest.mark.parametrize("joint", [True, False])
def test_held_out_results_follow_the_rule_of_the_reward(joint: bool) -> None:
    """Without a step the prompts held out are as hard as those in training, by the same rule."""
    config = replace(SMALL, joint=joint, rollouts=1, lr=1e-9, held_out=256, pool=256, states=256, mini_batches=1)
    run = simulate(config, range(4))
    assert run.held_out is not None
    assert run.held_out.pass_at(1)[:, -1].mean() == pytest.approx(run.reward.mean(), abs=0.03)


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_pass_at_k_needs_draws(k: float) -> None:
    run = simulate(replace(SMALL, rollouts=1))
    assert run.held_out is not None
    with pytest.raises(ValueError, match="whole number of at least 1"):
        run.held_out.pass_at(k)


def test_saved_numbers_have_those_of_held_out_prompts(tmp_path) -> None:
    run = simulate(SMALL)
    run.save(tmp_path / "run.npz")
    saved = np.load(tmp_path / "run.npz")
    assert run.held_out is not None
    np.testing.assert_array_equal(saved["held_out/solved"], run.held_out.solved)
    np.testing.assert_array_equal(saved["weights"], run.weights)


def test_shared_features_have_no_flow_of_their_own() -> None:
    assert simulate(SMALL, predict=True).predicted is None
    assert simulate(Config(env="noisy", rollouts=2), predict=True).predicted is not None


def test_any_sampled_environment_has_its_exact_form() -> None:
    run = simulate(Config(env="episodes", gradient="exact", length=1, branching=1, rollouts=2))
    assert run.config.environment().enumerated


def test_runs_depend_on_their_own_seed_alone() -> None:
    together, alone = simulate(SMALL, (2, 7)), simulate(SMALL, (7,))
    np.testing.assert_allclose(together.weights[1], alone.weights[0], rtol=0, atol=1e-12)


def test_prompts_take_turns() -> None:
    features = Features(SMALL.environment(), torch.tensor([0]), torch.float64)
    nodes = SMALL.environment().nodes
    assert [features.turn(step).start // nodes for step in range(4)] == [0, 32, 0, 32]
    assert len(features.of_row) == (64 + 8) * nodes


def test_what_cannot_be_predicted_is_drawn_for_each_prompt() -> None:
    """With d far below the rows, right arms that follow from features repeat where features do; others do not."""
    alike = {}
    for known in (0.0, 1.0):
        config = replace(SMALL, predictable=known, right_tilt=0.0, features=1, coupling=0.0, held_out=512)
        right = Features(config.environment(), torch.tensor([0]), torch.float64).right[0]
        alike[known] = float(right.double().mean(0).max())
    assert alike[1.0] > 0.4  # one feature: a row has the arm that its sign says
    assert alike[0.0] < 0.3  # of four arms each is right as often


@pytest.mark.parametrize("setting", ["pool", "held_out", "predictable", "skill"])
def test_settings_of_features_need_them(setting: str) -> None:
    with pytest.raises(ValueError, match=f"{setting} needs shared features"):
        Config(env="noisy", **{setting: 64 if setting in ("pool", "held_out") else 0.5})


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"success": ((0.5,) * 4,)}, "leave success out"),
        ({"right_logit": 1.0}, "leave right_logit out"),
        ({"update": "npg"}, "sgd or adam"),
        ({"coupling": 1.0}, "below 1"),
        ({"features": 0}, "features must be at least 1"),
        ({"pool": 0}, "pool must be at least 1"),
        ({"skill": -1.0}, "skill must not be negative"),
        ({"momentum": 0.9}, "momentum must be 0 with adam"),
        ({"pool": 33}, "multiple of the 32 states"),
        ({"mini_batches": 5}, "divisor of 32"),
        ({"features": 256, "length": 24, "pool": 1 << 14}, "lower one of them"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Config(env="features", **given)


def test_mini_batches_have_no_natural_gradient() -> None:
    with pytest.raises(ValueError, match="mini_batches must be 1 with npg; got 2"):
        Config(env="noisy", update="npg", mini_batches=2)


def test_mini_batches_of_a_table_are_whole_updates_of_their_own_states() -> None:
    whole, halves = Config(env="on", states=8, rollouts=5), Config(env="on", states=8, rollouts=5, mini_batches=2)
    np.testing.assert_allclose(simulate(whole).logits, simulate(halves).logits, rtol=0, atol=1e-12)


def test_a_run_goes_on_from_its_weights() -> None:
    first = simulate(replace(SMALL, rollouts=2), (1,))
    again = simulate(replace(SMALL, rollouts=2), (1,), start=first.weights)
    assert again.held_out is not None
    assert first.held_out is not None
    np.testing.assert_array_equal(again.held_out.solved[:, 0], first.held_out.solved[:, -1])
