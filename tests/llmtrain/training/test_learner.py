"""The learner's update: right, and the same however the mini-batch is cut."""

from dataclasses import replace

import pytest
import torch

from entrostat import get_advantage, make
from llmtrain.data.prompts import encode_all
from llmtrain.kernels import HeadStats
from llmtrain.policy.engine import NonFiniteError, TorchEngine
from llmtrain.policy.model import load
from llmtrain.policy.policy import Policy
from llmtrain.process.clock import Clock
from llmtrain.rollout.hf import HFRollout
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import GuardConfig
from llmtrain.tasks import get_task
from llmtrain.training.guard import Guard
from llmtrain.training.learner import Experience, Learner

SPECS = ["grpo", "gspo", "clip_cov", "kl_cov", "steer", "opefo", "entropy_bonus", "clip_higher+steer+entropic"]
SETTINGS = {"clip_cov": {"k": 0.1, "omega_low": -9.0, "omega_high": 9.0}, "kl_cov": {"k": 0.2}}


@pytest.fixture(scope="module")
def scene(small):
    """A model in float64, and a scored rollout of it after which it moved a little."""
    model, tokenizer = load(small.model.path)
    task = get_task(small)
    rollout = HFRollout(model, tokenizer, max_new_tokens=12, generator=torch.Generator().manual_seed(0))
    problems = task.train_batch(0, 8, seed=0)
    rollouts = rollout.generate(encode_all(tokenizer, [p.prompt for p in problems]), 4)
    model.double()
    policy = Policy(model)
    batch = Batch.of(rollouts)
    reward = torch.rand(len(batch), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    reward[8:12] = 0.5  # a group without a signal
    stats = policy.all_stats(batch, 512)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.02 * torch.randn(p.shape, generator=torch.Generator().manual_seed(2), dtype=p.dtype)
    advantage = get_advantage("grpo")(reward, rollouts.prompt_index)
    experience = Experience.of(batch, stats, reward, advantage, rollouts.prompt_index, torch.arange(len(batch)))
    return small, model, policy, experience


def gradient(scene, spec: str, budget: int) -> torch.Tensor:
    small, model, policy, experience = scene
    config = replace(small.optim, micro_batch_tokens=budget, max_grad_norm=1e9)
    model.zero_grad()
    controller = make(spec, **SETTINGS.get(spec, {}))
    current = policy.all_stats(experience.batch, 512)
    plan = controller.plan(experience.tokens(current), seed=1, step=2)
    engine = GradientOnly(model, config)
    metrics = Learner(policy, engine, controller, config, seed=1, clock=Clock("cpu"), updates=2).optimize(
        experience, plan
    )
    assert metrics["grad_norm"] > 0
    return torch.cat([p.grad.flatten() for p in model.parameters()])


class GradientOnly(TorchEngine):
    """An engine that stops before the weights move."""

    def step(self) -> float:
        return torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()]).item()


@pytest.mark.parametrize("spec", SPECS)
def test_micro_batches_do_not_change_the_update(scene, spec):
    """1, 2, 3 and N micro-batches; 1e-12 relative, float64."""
    lengths = scene[3].batch.lengths
    whole = gradient(scene, spec, 10**6)
    for slices in (2, 3, len(lengths)):
        budget = 1 if slices == len(lengths) else int(lengths.max()) * -(-len(lengths) // slices)
        parts = gradient(scene, spec, budget)
        assert ((parts - whole).abs().max() / whole.abs().max()).item() < 1e-12


def test_gradient_is_that_of_a_dense_computation(scene):
    """GRPO from the logits of transformers, sequence by sequence, without any of the learner's machinery."""
    _, model, _, experience = scene
    batch, n = experience.batch, len(experience.stats.logp)
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for i in range(len(batch)):
        one = torch.tensor([i])
        ids = batch.select(one).ids[None]
        index = batch.response_index(one)
        logp = model(ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None])[:, 0]
        ratio = (logp[-len(index) :] - experience.stats.logp[index]).exp()
        a = experience.tokens(None).advantage[experience.owner == i][0]
        total = total - torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a).sum() / n
    total.backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()])
    found = gradient(scene, "grpo", 512)
    assert ((found - expected).abs().max() / expected.abs().max()).item() < 1e-10


def test_tokens_hold_what_controllers_need(scene):
    experience = scene[3].select(torch.tensor([3, 9]))
    tokens = experience.tokens(None)
    lengths = experience.batch.response_lengths.tolist()
    assert tokens.position.tolist() == [*range(lengths[0]), *range(lengths[1])]
    assert tokens.seq_id.tolist() == [3] * lengths[0] + [9] * lengths[1]
    assert tokens.group_id.tolist() == [0] * lengths[0] + [2] * lengths[1]
    assert torch.equal(tokens.logp, tokens.old_logp)
    assert tokens.advantage[lengths[0] :].eq(0).all()


def test_mini_batches_hold_whole_groups_once_a_pass(scene):
    small, _, policy, experience = scene
    config = replace(small.optim, mini_batch_size=4, ppo_epochs=2)
    learner = Learner(
        policy, TorchEngine(policy.model, config), make("grpo"), config, seed=0, clock=Clock("cpu"), updates=2
    )
    cuts = list(learner._mini_batches(experience, step=0))
    assert [len(c) for c in cuts] == [16] * 4
    assert torch.cat(cuts[:2]).sort().values.tolist() == list(range(32))
    assert all(map(torch.equal, cuts[:2], cuts[2:]))  # of ranks, too, which share these out once


def test_a_watch_sees_every_update_and_changes_none(scene):
    small, _, policy, experience = scene
    config = replace(small.optim, mini_batch_size=4)
    seen, metrics = [], []
    for watch in ({"watch": lambda tokens, plan: seen.append((tokens, plan))}, {}):
        engine = GradientOnly(policy.model, config)
        policy.model.zero_grad()
        metrics.append(
            Learner(policy, engine, make("steer"), config, seed=0, clock=Clock("cpu"), updates=2).update(
                experience, 0, **watch
            )
        )
    assert metrics[0] == metrics[1]
    assert [plan.size for _, plan in seen] == [tokens.size for tokens, _ in seen]
    assert torch.cat([tokens.seq_id for tokens, _ in seen]).unique().tolist() == list(range(32))
    tokens = seen[1][0]
    live = tokens.advantage != 0
    now = policy.all_stats(experience.batch, 512).logp[torch.isin(experience.owner, tokens.seq_id)]
    torch.testing.assert_close(tokens.logp[live], now[live])


@pytest.mark.parametrize("stats", ["fresh", "rollout"])
def test_what_each_plan_is_made_of(scene, stats):
    """Every update of a run has a number of its own, and the first of a rollout step its statistics; info is summed.

    Also where a step has fewer updates than another, as dynamic sampling may leave it."""
    small, _, policy, experience = scene
    config = replace(small.optim, mini_batch_size=4, stats=stats)
    controller, made, plans = make("steer"), [], []

    def plan(tokens, reduce, **keys):
        made.append((keys["seed"], keys["step"], bool((tokens.logp == tokens.old_logp).all())))
        plans.append(type(controller).plan(controller, tokens, reduce, **keys))
        return plans[-1]

    controller.plan = plan
    learner = Learner(
        policy, GradientOnly(policy.model, config), controller, config, seed=7, clock=Clock("cpu"), updates=2
    )
    few = experience.select((experience.group < 4).nonzero()[:, 0])
    for step, some in enumerate((experience, few, experience)):
        learner.update(some, step)
    second = stats == "rollout"
    assert made == [(7, 0, True), (7, 1, second), (7, 2, True), (7, 4, True), (7, 5, second)]
    assert learner.planned == {name: float(plans[3].info[name]) + float(plans[4].info[name]) for name in plans[3].info}
    assert learner.planned


def test_a_part_of_an_experience_keeps_all_that_it_holds():
    """Of three sequences, with 2, 1 and 3 response tokens, the last and the first."""
    numbers = torch.arange(6.0)
    whole = Experience.of(
        Batch(torch.arange(9), prompt_lengths=torch.ones(3).long(), response_lengths=torch.tensor([2, 1, 3])),
        HeadStats(*(numbers / 10 + i for i in range(5))),
        reward=torch.tensor([0.5, 0.0, 1.0]),
        advantage=torch.zeros(3),
        group=torch.tensor([4, 4, 6]),
        sequence=torch.tensor([8, 9, 12]),
        old_logp=numbers + 20,
        trained=torch.tensor([True, True, False]),
        rollout_logp=numbers + 20,
        ref_logp=numbers + 40,
    )
    whole = replace(whole, before=replace(whole.before, advantage=numbers + 30))
    part = whole.select(torch.tensor([2, 0]))
    tokens = part.tokens(HeadStats(*(x + 100 for x in part.stats)))
    index = numbers[[3, 4, 5, 0, 1]]
    assert part.trained.tolist() == [False, True]
    assert tokens.reward.tolist() == [1, 1, 1, 0.5, 0.5]
    assert tokens.group_id.tolist() == [6, 6, 6, 4, 4]
    assert tokens.seq_id.tolist() == [12, 12, 12, 8, 8]
    assert tokens.position.tolist() == [0, 1, 2, 0, 1]
    expected = {"old_logp": 20, "rollout_logp": 20, "advantage": 30, "ref_logp": 40}
    for name, above in expected.items():
        assert torch.equal(getattr(tokens, name), index + above), name
    for i, name in enumerate(HeadStats._fields):
        torch.testing.assert_close(getattr(tokens, name), index / 10 + i + 100)
    torch.testing.assert_close(tokens.old_entropy, index / 10 + 1)


def test_nothing_to_learn_moves_nothing(scene):
    small, model, policy, experience = scene
    still = replace_advantage(experience, 0.0)
    before = [p.clone() for p in model.parameters()]
    learner = Learner(
        policy, TorchEngine(model, small.optim), make("grpo"), small.optim, seed=0, clock=Clock("cpu"), updates=2
    )
    metrics = learner.update(still, step=0)
    assert metrics["grad_norm"] == 0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def replace_advantage(experience: Experience, value: float) -> Experience:
    before = experience.before
    return replace(experience, before=replace(before, advantage=torch.full_like(before.advantage, value)))


def sampled(scene, gap: float):
    """An experience whose statistics are the policy's and were made while sampling, `gap` nats beside log π."""
    _, model, policy, experience = scene
    stats = policy.all_stats(experience.batch, 512)
    before = replace(experience.before, rollout_logp=stats.logp + gap, **stats._asdict())
    return replace(experience, before=replace(before, old_logp=stats.logp), sampled=True), model, policy


@pytest.mark.parametrize(("gap", "taken"), [(0.01, True), (0.2, False)])
def test_the_first_update_measures_what_sampling_told(scene, gap, taken):
    """With a limit of .1 nats the update is left out, and the rest of the step; later updates measure nothing."""
    experience, model, policy = sampled(scene, gap)
    config = replace(scene[0].optim, mini_batch_size=4)
    guard = Guard(GuardConfig(mismatch="stop", mismatch_above=0.1))
    learner = Learner(
        policy, TorchEngine(model, config), make("grpo"), config, seed=0, clock=Clock("cpu"), updates=2, guard=guard
    )
    weights = [p.clone() for p in model.parameters()]
    made = []
    optimize = learner.optimize
    learner.optimize = lambda *given: made.append(optimize(*given)) or made[-1]
    learner.update(experience, step=0)
    assert [("mismatch/logp_gap" in one, "loss" in one) for one in made] == (
        [(True, True), (False, True)] if taken else [(True, False)]
    )
    assert made[0]["mismatch/logp_gap"] == pytest.approx(gap, rel=1e-3)
    same = [torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True)]
    assert all(same) is not taken
    assert bool(guard.stops_for) is not taken
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_where_nothing_can_be_learned_one_response_tells_of_the_sampler(scene):
    experience, model, policy = sampled(replace_advantage_of(scene, 0.0), 0.3)
    config = scene[0].optim
    learner = Learner(policy, TorchEngine(model, config), make("grpo"), config, seed=0, clock=Clock("cpu"), updates=2)
    assert learner.update(experience, step=0)["mismatch/logp_gap"] == pytest.approx(0.3, rel=1e-3)


def replace_advantage_of(scene, value):
    return *scene[:3], replace_advantage(scene[3], value)


def test_a_loss_that_is_not_finite_is_skipped_if_the_guard_says_so(scene):
    small, model, policy, experience = scene
    broken = replace_advantage(experience, float("nan"))
    weights = [p.clone() for p in model.parameters()]

    def learner(policy_of_guard):
        guard = Guard(GuardConfig(non_finite=policy_of_guard))
        engine = TorchEngine(model, small.optim)
        return Learner(policy, engine, make("grpo"), small.optim, seed=0, clock=Clock("cpu"), updates=2, guard=guard)

    assert "loss" not in learner("skip").update(broken, step=0)
    with pytest.raises(NonFiniteError, match="loss is nan"):
        learner("stop").update(broken, step=0)
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))


@pytest.mark.parametrize("limit", [{"grad_norm_above": 1e-9}, {"loss_above": 1e-9}, {}])
def test_each_limit_alone_leaves_the_update_out(scene, limit):
    small, model, policy, experience = scene
    model.zero_grad()
    guard = Guard(GuardConfig(grad_norm="skip", loss="skip", **limit))
    weights = [p.clone() for p in model.parameters()]
    engine = TorchEngine(model, small.optim)
    learner = Learner(policy, engine, make("grpo"), small.optim, seed=0, clock=Clock("cpu"), updates=2, guard=guard)
    learner.update(experience, step=0)
    same = all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))
    assert same is bool(limit)
