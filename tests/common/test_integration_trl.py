"""TRL's trainer with our controllers: real training of a tiny model, five steps at a time."""

import ast
import dataclasses
import inspect
import math
import os
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("trl")
os.environ["HF_HUB_OFFLINE"] = "1"

from datasets import IterableDataset
from tests.ranks import start_ranks
from tiny_trl import STEPS, build, logged, parameters, relative
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

import entrostat as es
from entrostat.integrations.trl import STATE_FILE, EntrostatGRPOTrainer
from entrostat.integrations.trl_progress import Progress
from entrostat.integrations.trl_settings import REPLACED
from entrostat.logs.diagnosis.facts import measure
from entrostat.logs.foreign.foreign_runs import read_path
from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.process.local_ranks import free_port
from llmtrain.sequences.batch import Batch
from llmtrain.training.learner import Experience
from llmtrain.verifiers.countdown import ALPHABET

ROOT = Path(__file__).parents[2]
DRAWS = {"k": 0.2, "omega_low": -9.0, "omega_high": 9.0}
ENTROPIC = {"target": 2.0, "tau": 0.0}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model")
    tokenizer = build_char_tokenizer("0123456789+")
    model = build_tiny(len(tokenizer), hidden=32, layers=2, heads=2, kv_heads=2, intermediate=64)
    save(model, tokenizer, path)
    return path


@pytest.fixture(scope="module")
def plain(folder, tmp_path_factory):
    """GRPOTrainer's own parameters after five steps, by the number of updates to a rollout."""
    out = tmp_path_factory.mktemp("plain")
    trainers = {}
    for n in (1, 3):  # building a trainer seeds the generators, so it trains before the next is built
        trainers[n] = build(GRPOTrainer, folder, out, num_iterations=n)
        trainers[n].train()
    return trainers


@pytest.mark.parametrize("iterations", [1, 3])
def test_grpo_is_trls_own(plain, folder, tmp_path, iterations):
    """TRL's defaults, beta 0, epsilon 0.2, loss_type "dapo", are PPO's surrogate with the mean over all tokens."""
    trainer = build(
        EntrostatGRPOTrainer, folder, tmp_path, controller={"controller": "grpo"}, num_iterations=iterations
    )
    before = parameters(trainer)
    trainer.train()
    expected = parameters(plain[iterations])
    assert relative(parameters(trainer), expected) < 1e-5
    assert relative(parameters(trainer) - before, expected - before) < 1e-5
    assert (max(logged(trainer, "clip_fraction")) > 0) == (iterations > 1)
    theirs = logged(plain[iterations], "clip_ratio/region_mean")
    assert logged(trainer, "clip_fraction") == pytest.approx(theirs, abs=0.02)  # the mean of micro-batches


def test_trls_own_log_can_be_imported(plain, tmp_path):
    plain[1].state.save_to_json(tmp_path / "trainer_state.json")
    (run,) = read_path(tmp_path / "trainer_state.json")
    for ours, theirs in (("entropy", "entropy"), ("reward", "reward"), ("response_length", "completions/mean_length")):
        assert [line[ours] for line in run.metrics] == logged(plain[1], theirs)
    known = {"clip_fraction", "clip/high", "clip/low", "response_length/max", "lr", "time/step"}
    assert known | {"groups/no_signal", "reward/std", "truncated"} <= set(run.metrics[0])
    assert "num_tokens" in run.kept


def test_trls_own_log_can_be_diagnosed(plain, tmp_path):
    """Its clip fractions are known; five steps are too few for a collapse, and repeated twice they are enough."""
    plain[3].state.save_to_json(tmp_path / "trainer_state.json")
    (run,) = read_path(tmp_path / "trainer_state.json")
    found = measure(run.metrics)
    assert (found.entropies, found.entropy) == (STEPS, None)
    assert found.clipping["clip_fraction"].most == pytest.approx(max(logged(plain[3], "clip_ratio/region_mean")))
    assert "2 points are too few for a law" in found.no_law  # TRL logs the reward of new rollouts only
    later = [{**line, "step": line["step"] + STEPS} for line in run.metrics]
    assert "not collapsed" in measure([*run.metrics, *later]).conditions


def test_cispo_is_trls_own(folder, tmp_path):
    """TRL's epsilon_high is the cap itself: 1.001 there is eps_high = .001 here."""
    options = {"loss_type": "cispo", "epsilon_high": 1.001, "num_iterations": 3}
    found = []
    for cls, controller in ((GRPOTrainer, None), (EntrostatGRPOTrainer, {"controller": "cispo"})):
        trainer = build(cls, folder, tmp_path, controller=controller, **options)
        before = parameters(trainer)
        trainer.train()
        found.append(parameters(trainer) - before)
    assert trainer.controller.surrogate.eps_high == pytest.approx(0.001)
    assert relative(found[1], found[0]) < 1e-5


BOTH_BOUNDS = {"eps_low": 0.2, "eps_high": 0.2}


@pytest.mark.parametrize(
    ("options", "controller", "translated"),
    [
        ({"delta": 1.2}, {"controller": "grpo"}, {"ppo.dual_clip": 1.2}),
        (
            {
                "loss_type": "luspo",
                "importance_sampling_level": "sequence",
                "beta": 0.5,
                "use_bias_correction_kl": True,
            },
            {"controller": "luspo", "controller_args": BOTH_BOUNDS},
            {"aggregation": "seq-mean-token-sum"},
        ),
    ],
    ids=["delta", "luspo"],
)
def test_delta_and_luspo_are_trls_own(plain, folder, tmp_path, options, controller, translated):
    found = []
    for cls, ours in ((GRPOTrainer, None), (EntrostatGRPOTrainer, controller)):
        trainer = build(cls, folder, tmp_path, controller=ours, num_iterations=3, **options)
        trainer.train()
        found.append(parameters(trainer))
    assert trainer.translated == translated
    assert relative(found[1], found[0]) < 1e-5
    assert relative(found[0], parameters(plain[3])) > 1e-3


ONE_MICRO_BATCH = {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss_type", "settings"),
    [
        ("grpo", {}),
        pytest.param("dr_grpo", {}, marks=pytest.mark.long),
        pytest.param("bnpo", ONE_MICRO_BATCH, marks=pytest.mark.long),
    ],
)
def test_loss_types_are_trls_own(folder, tmp_path, loss_type, settings):
    """After three updates on a rollout, by SGD, which sees the size of a gradient; bnpo's micro-batch is the step."""
    settings = settings | {"optim": "sgd", "learning_rate": 1.0, "max_grad_norm": 0.0, "max_steps": 3}
    found = []
    for cls, controller in ((GRPOTrainer, None), (EntrostatGRPOTrainer, {"controller": "grpo"})):
        trainer = build(cls, folder, tmp_path, controller=controller, num_iterations=3, loss_type=loss_type, **settings)
        before = parameters(trainer)
        trainer.train()
        found.append(parameters(trainer) - before)
    assert relative(found[1], found[0]) < 1e-5


@pytest.mark.parametrize(
    ("loss_type", "controller", "expected"),
    [
        ("dapo", "grpo", ("token-mean", 1.0)),
        ("dapo", "gspo", ("seq-mean-token-mean", 1.0)),
        ("bnpo", "gspo", ("token-mean", 1.0)),
        ("grpo", "steer", ("seq-mean-token-mean", 1.0)),
        ("dr_grpo", "clip_higher+steer", ("fixed", 8 * 2 * 8.0)),
        ("luspo", "gspo", ("seq-mean-token-sum", 1.0)),
    ],
)
def test_loss_types_stand_for_an_aggregation(folder, tmp_path, loss_type, controller, expected):
    """The constant is 8 responses of a micro-batch, 2 micro-batches of a step, and 8 tokens of a response."""
    trainer = build(EntrostatGRPOTrainer, folder, tmp_path, controller={"controller": controller}, loss_type=loss_type)
    surrogate = trainer.controller.surrogate
    assert (surrogate.aggregation, surrogate.constant) == expected


@pytest.fixture(scope="module")
def dropping(tmp_path_factory) -> Path:
    """A model whose dropout moves log-probabilities by nats."""
    path = tmp_path_factory.mktemp("dropout")
    tokenizer = build_char_tokenizer("0123456789+")
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    size = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.3}
    save(GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size, **special)), tokenizer, path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"num_iterations": 3}, marks=pytest.mark.long),
        {"beta": 0.5, "use_bias_correction_kl": True},
    ],
)
def test_grpo_is_trls_own_with_dropout(dropping, tmp_path, settings):
    """The same draws of dropout; a rollout's only update has ratio 1, and those of several are against TRL's.

    SGD: Adam would make steps of the rounding in gradients that are 0, as those of biases of keys.
    """
    found = []
    for cls, controller in ((GRPOTrainer, None), (EntrostatGRPOTrainer, {"controller": "grpo"})):
        trainer = build(cls, dropping, tmp_path, controller=controller, optim="sgd", learning_rate=0.1, **settings)
        before = parameters(trainer)
        trainer.train()
        found.append(parameters(trainer) - before)
    assert relative(found[1], found[0]) < 1e-5
    ratios = logged(trainer, "ratio/min") + logged(trainer, "ratio/max")
    assert (set(ratios) == {1}) == ("num_iterations" not in settings)


def test_statistics_are_without_dropout(dropping, tmp_path):
    """So that what a plan is made of, and what a loop observes, is the policy and not a draw."""
    trainer = build(Recorder, dropping, tmp_path, controller={"controller": "clip_higher+thermostat"}, max_steps=1)
    trainer.records = []
    trainer.train()
    trainer.model.load_state_dict(trainer.records[0][2], strict=False)
    trainer.model.train()
    first, second = (trainer._policy_fields(trainer.records[0][1][0]) for _ in range(2))
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
    assert all(module.training for module in trainer.model.modules())


@pytest.mark.parametrize(
    ("spec", "settings", "key"),
    [
        pytest.param("clip_higher+entropic", ENTROPIC, "entropic/alpha", marks=pytest.mark.long),
        ("clip_higher+entropic", ENTROPIC | {"target": "linear(1x, 0.5x, 4)"}, "entropic/target"),
        pytest.param("steer", {}, "steer/omega_max", marks=pytest.mark.long),
        ("clip_cov", DRAWS, "clip_cov/dropped"),
    ],
)
def test_controllers_train(plain, folder, tmp_path, spec, settings, key):
    trainer = build(
        EntrostatGRPOTrainer, folder, tmp_path, controller={"controller": spec, "controller_args": settings}
    )
    trainer.train()
    assert trainer.state.global_step == STEPS
    assert parameters(trainer).isfinite().all()
    assert relative(parameters(trainer), parameters(plain[1])) > 1e-3
    assert len(logged(trainer, key)) == STEPS
    assert min(map(abs, logged(trainer, key))) > 0
    replayed = es.make(spec, **settings)
    for step, entropy in enumerate(logged(trainer, "entropy")):
        replayed.observe(es.StepStats(entropy=entropy, step=step))
    found = trainer.controller.state_dict()
    for part, state in replayed.state_dict().items():
        assert all(torch.allclose(found[part][name], value) for name, value in state.items())


class Recorder(EntrostatGRPOTrainer):
    """Keeps what each plan was made of."""

    def _start_update(self, batches):
        rollout = self._updates_since_rollout == 0
        super()._start_update(batches)
        weights = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.records.append(
            (rollout, batches, weights, self.plan, self.state.global_step, self.controller.state_dict())
        )


def learner_experience(policy: Policy, batches) -> Experience:
    """The micro-batches of a recorded update as our own trainer holds them."""
    ids, prompts, responses = [], [], []
    for batch in batches:
        for row in range(len(batch["advantages"])):
            prompt = batch["prompt_ids"][row][batch["prompt_mask"][row].bool()]
            response = batch["completion_ids"][row][batch["completion_mask"][row].bool()]
            ids += [prompt, response]
            prompts.append(len(prompt))
            responses.append(len(response))
    packed = Batch(torch.cat(ids), torch.tensor(prompts), torch.tensor(responses))
    columns = {name: torch.cat([b[name] for b in batches]) for name in batches[0] if name.startswith("entrostat.")}
    return Experience.of(
        packed,
        policy.all_stats(packed, 10**6),
        columns["entrostat.reward"],
        torch.cat([b["advantages"] for b in batches]),
        columns["entrostat.group_id"],
        columns["entrostat.seq_id"],
    )


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("clip_higher+steer+entropic", ENTROPIC),
        pytest.param("clip_cov", DRAWS, marks=pytest.mark.long),
        pytest.param("opefo", {"estimator": "exact"}, marks=pytest.mark.long),
    ],
)
@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
def test_weights_are_those_of_our_own_learner(folder, tmp_path, spec, settings):
    """The same tokens, statistics through llmtrain's fused head; also after the policy has moved."""
    trainer = build(
        Recorder,
        folder,
        tmp_path,
        controller={"controller": spec, "controller_args": settings},
        num_iterations=2,
    )
    trainer.model.double()
    trainer.records = []
    trainer.train()
    assert len(trainer.records) == STEPS
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    policy = Policy(model)
    old = None
    spread = 0.0
    for rollout, batches, weights, plan, step, state in trainer.records:
        model.load_state_dict(weights, strict=False)
        if rollout:
            old = {name: w.clone() for name, w in weights.items()}
        current = policy.all_stats(learner_experience(policy, batches).batch, 10**6)
        model.load_state_dict(old, strict=False)
        experience = learner_experience(policy, batches)
        controller = es.make(spec, **settings)
        controller.load_state_dict(state)
        expected = controller.plan(experience.tokens(current), seed=trainer.args.seed, step=step)
        torch.testing.assert_close(plan.weight, expected.weight.float(), atol=1e-6, rtol=0)
        assert torch.equal(plan.advantage, expected.advantage)
        assert torch.equal(plan.scale, expected.scale.to(plan.scale))
        print("DIFF", (plan.weight - expected.weight).abs().max())
        spread = max(spread, (plan.weight.max() - plan.weight.min()).item())
    assert spread > 0.1


@pytest.mark.slow
def test_micro_batches_do_not_change_the_update(folder, tmp_path):
    """One optimizer step of 16 responses in 1, 2 and 4 micro-batches; SGD, float32."""
    found = []
    for parts in (1, 2, 4):
        trainer = build(
            EntrostatGRPOTrainer,
            folder,
            tmp_path,
            controller={"controller": "clip_higher+steer+clip_cov", "controller_args": DRAWS},
            per_device_train_batch_size=16 // parts,
            gradient_accumulation_steps=parts,
            max_steps=1,
            optim="sgd",
            learning_rate=1.0,
            max_grad_norm=0.0,
        )
        before = parameters(trainer)
        trainer.train()
        found.append(parameters(trainer) - before)
    for other in found[1:]:
        assert relative(other, found[0]) < 1e-5


class StateAtStart(TrainerCallback):
    """The state of the controller when training begins."""

    def __init__(self, trainer):
        self.trainer = trainer

    def on_train_begin(self, args, state, control, **kwargs):
        self.state = {"controller": self.trainer.controller.state_dict(), "trace": self.trainer.trace.state_dict()}


def equal(found, expected) -> bool:
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(equal(found[key], expected[key]) for key in expected)
    return torch.equal(found, expected)


RANKS = {
    "controller": {"controller": "clip_higher+steer+clip_cov", "controller_args": DRAWS},
    "max_steps": 1,
    "optim": "sgd",
    "learning_rate": 1.0,
    "max_grad_norm": 0.0,
}


def rank_worker(rank: int, world: int, port: int, folder: Path, out: Path) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    trainer = build(Recorder, folder, out, **RANKS)
    trainer.records = []
    trainer.train()
    _, batches, _, plan, _, _ = trainer.records[0]
    torch.save({"batches": batches, "weight": plan.weight, "after": parameters(trainer)}, out / f"rank{rank}.pt")
    torch.distributed.destroy_process_group()
    os._exit(0)  # a thread left by the trainer's libraries has kept a finished process from ending


@pytest.mark.slow
def test_two_processes_make_the_update_of_one(folder, tmp_path):
    """One plan over both, draws included, and one SGD step against our own learner's gradient of all their tokens."""
    port = free_port()
    start_ranks(2, rank_worker, port, folder, tmp_path)
    ranks = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=False) for rank in range(2)]
    assert torch.equal(ranks[0]["after"], ranks[1]["after"])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Policy(model)
    experience = learner_experience(policy, [batch for rank in ranks for batch in rank["batches"]])
    assert experience.before.seq_id.unique().tolist() == list(range(32))
    controller = es.make(RANKS["controller"]["controller"], **DRAWS)
    plan = controller.plan(experience.tokens(None), seed=42, step=0)
    torch.testing.assert_close(torch.cat([rank["weight"] for rank in ranks]), plan.weight, atol=2e-6, rtol=0)
    stats = policy.token_stats(experience.batch, torch.arange(32))
    plan.loss(stats.logp, stats.entropy).backward()
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert relative(before - ranks[0]["after"], gradient) < 1e-4


def test_resume_restores_the_controller_and_the_run(folder, tmp_path):
    """To the bit, and the resumed run ends where the uninterrupted one does."""
    controller = {"controller": "clip_higher+entropic+clip_cov", "controller_args": ENTROPIC | DRAWS}
    settings = {"controller": controller, "num_iterations": 2, "save_strategy": "steps", "save_steps": 2}
    whole = build(EntrostatGRPOTrainer, folder, tmp_path, **settings)
    whole.train()
    checkpoint = tmp_path / "checkpoint-2"
    saved = torch.load(checkpoint / STATE_FILE)
    state = [value for part in saved["controller"].values() for value in part.values()]
    assert len(state) > 1
    assert any(bool((value != 0).any()) for value in state)
    resumed = build(EntrostatGRPOTrainer, folder, tmp_path / "again", **settings)
    watch = StateAtStart(resumed)
    resumed.add_callback(watch)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert equal(watch.state["controller"], saved["controller"])
    assert torch.equal(watch.state["trace"]["ema"], saved["trace"]["ema"])
    assert equal(resumed.controller.state_dict(), whole.controller.state_dict())
    assert torch.equal(parameters(resumed), parameters(whole))


def test_progress_is_a_line_of_the_chosen_metrics_instead_of_all(folder, tmp_path, capsys):
    trainer = build(EntrostatGRPOTrainer, folder, tmp_path, controller={"progress": ["entropy", "none"]}, max_steps=1)
    trainer.train()
    lines = [line for line in capsys.readouterr().out.splitlines() if "entropy" in line]
    assert lines[0] == f"step 1/1: entropy {logged(trainer, 'entropy')[0]:.3g}"
    assert not any("{" in line for line in lines)


def test_progress_is_a_list_of_names_with_numbers(folder, tmp_path, capsys):
    with pytest.raises(TypeError, match=r"^progress must be a list of metrics, such as \['entropy'\], not 'entropy'$"):
        build(EntrostatGRPOTrainer, folder, tmp_path, controller={"progress": "entropy"})
    logs = {"entropy": 0.5, "reward": None, "note": "warm"}
    for last in (None, -1, 0, 7):
        state = SimpleNamespace(global_step=3, max_steps=last, is_world_process_zero=True)
        Progress([*logs, "none"]).on_log(None, state, None, logs=logs)
    ends = ["", "", "", "/7"]
    assert capsys.readouterr().out.splitlines() == [f"step 3{end}: entropy 0.5" for end in ends]


def test_a_stream_has_steps_and_no_epochs(folder, tmp_path):
    """TRL takes as many epochs as there are integers, so that a rule by epochs would not move."""
    rows = IterableDataset.from_generator(lambda: ({"prompt": f"{a}+{b}"} for a in range(8) for b in range(8)))
    by_step = {"controller": "adaptive_entropy", "controller_args": {"target": "linear(0.5, 0.2)"}}
    trainer = build(EntrostatGRPOTrainer, folder, tmp_path, controller=by_step, data=rows, max_steps=2)
    trainer.train()
    assert logged(trainer, "adaptive_entropy/target") == pytest.approx([0.5, 0.2])
    by_epoch = {"controller": "positive_reweight", "controller_args": {"variant": "epoch"}}
    with pytest.raises(ValueError, match=r"variant 'epoch' needs StepStats\.epoch and epochs"):
        build(EntrostatGRPOTrainer, folder, tmp_path, controller=by_epoch, data=rows, max_steps=2)


def test_evaluation_moves_nothing(folder, tmp_path):
    trainer = build(EntrostatGRPOTrainer, folder, tmp_path, controller={"controller": "entropic"}, max_steps=1)
    trainer.train()
    before = trainer.controller.state_dict(), trainer.trace.state_dict()
    assert math.isfinite(trainer.evaluate()["eval_loss"])
    assert equal({"now": before[0]}, {"now": trainer.controller.state_dict()})
    assert torch.equal(before[1]["ema"], trainer.trace.ema)


def test_beta_adds_trls_kl_term(folder, tmp_path):
    found = {}
    for cls, controller in ((GRPOTrainer, None), (EntrostatGRPOTrainer, {"controller": "grpo"})):
        found[cls] = build(cls, folder, tmp_path, controller=controller, beta=0.5, num_iterations=3)
        found[cls].train()
    assert relative(parameters(found[EntrostatGRPOTrainer]), parameters(found[GRPOTrainer])) < 1e-5
    assert max(logged(found[EntrostatGRPOTrainer], "kl")) > 0


def test_a_thermostat_with_an_anchor_replaces_trls_kl_term(folder, tmp_path):
    own = {"controller": "thermostat", "controller_args": {"mode": "anchor", "target": 9.0}}
    trainer = build(EntrostatGRPOTrainer, folder, tmp_path, controller=own, beta=0.5, max_steps=2)
    trainer.train()
    first, second = logged(trainer, "thermostat/anchor")
    assert first == pytest.approx(0.01)  # the policy is its reference yet
    assert 0 <= second <= 1
    assert not logged(trainer, "kl")


@pytest.fixture(scope="module")
def rollout(folder, tmp_path_factory):
    """A trainer after one update, with a reference policy, and the micro-batches of that update."""
    trainer = build(Recorder, folder, tmp_path_factory.mktemp("rollout"), max_steps=1, beta=0.1)
    trainer.records = []
    trainer.train()
    return trainer, trainer.records[0][1]


@pytest.mark.parametrize("name", es.list_controllers())
@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
def test_every_controller_plans_and_has_a_gradient(rollout, name):
    trainer, batches = rollout
    trainer.controller = es.make(name)
    absent = {"truncated_entropy", "proxy_logp", "rollout_logp"} & set(trainer.controller.needs)
    if trainer.controller.support is not None:
        absent = {"truncated_entropy"}
    if trainer.controller.temperature is not None:
        with pytest.raises(ValueError, match="sets the sampling temperature of each rollout, and this trainer keeps"):
            trainer._check()
        return
    if absent:
        with pytest.raises(ValueError, match=rf"needs Tokens.{absent.pop()}, which this trainer does not provide"):
            trainer._check()
        return
    trainer._check()
    trainer._start_update(batches)
    trainer.model.zero_grad()
    for trainer._step, batch in enumerate(batches):
        trainer._compute_loss(trainer.model, batch).backward()
    gradient = torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
    assert gradient.isfinite().all()
    assert gradient.norm() > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss_type": "sapo"}, "the controller replaces GRPOConfig.loss_type: name its surrogate in the controller"),
        ({"loss_type": "grpo", "controller": {"controller": es.make("grpo")}}, "replaces GRPOConfig.loss_type"),
        ({"loss_type": "grpo", "epsilon_high": 0.28}, "set eps_high of the controller"),
        (
            {"loss_type": "grpo", "controller": {"controller": "grpo", "controller_args": {"aggregation": "fixed"}}},
            'GRPOConfig.loss_type "grpo" decides the aggregation: drop aggregation',
        ),
        ({"epsilon_high": 0.28}, "set eps_high of the controller"),
        ({"loss_type": "luspo", "importance_sampling_level": "sequence"}, "name a sequence-level surrogate"),
        ({"delta": 1.1}, r"1\.1 is below 1 \+ eps_high: instead set eps_high=0\.1 and dual_clip=1\.2 of ppo"),
        ({"delta": 1.0}, "GRPOConfig.delta bounds a ratio that begins at 1: it must be above 1; got 1.0"),
        ({"delta": 4.0, "loss_type": "sapo"}, "the controller replaces GRPOConfig.loss_type"),
        ({"delta": 4.0, "controller": {"controller": "dcpo"}}, "GRPOConfig.delta: set dual_clip of its surrogate"),
        ({"delta": 4.0, "controller": {"controller": "sapo"}}, "'sapo' has no bound that GRPOConfig.delta could set"),
        (
            {"delta": 4.0, "controller": {"controller": "gspo+steer", "controller_args": {"gspo.dual_clip": 3.0}}},
            "GRPOConfig.delta decides dual_clip: drop gspo.dual_clip",
        ),
        ({"sapo_temperature_pos": 2.0, "controller": {"controller": "sapo"}}, "set tau_positive of sapo"),
        ({"vespo_k_neg": 1.0}, "set k_positive and k_negative of vespo"),
        ({"entropy_target": 0.5}, "set coef_min, coef_max, delta and target of adaptive_entropy"),
        ({"loss_type": "cispo", "epsilon_high": 5.0}, "the controller replaces GRPOConfig.loss_type"),
        ({"loss_type": "cispo", "controller": {"controller": "cispo"}}, "caps the ratio at GRPOConfig.epsilon_high"),
        ({"steps_per_generation": 1}, "steps_per_generation 1 must be a multiple of gradient_accumulation_steps 2"),
        ({"controller": {"controller": "kl_ref"}}, "needs Tokens.ref_logp, .*set beta in GRPOConfig"),
        (
            {"controller": {"controller": "thermostat", "controller_args": {"mode": "anchor"}}},
            "needs Tokens.ref_logp, .*set beta in GRPOConfig",
        ),
        (
            {"controller": {"controller": "kl_ref", "controller_args": {"reset_every": 3}}, "beta": 0.1},
            "sync_ref_model to True, ref_model_mixup_alpha to 1.0 and ref_model_sync_steps to 3",
        ),
        ({"controller": {"controller": "edge"}, "steps_per_generation": 4}, "all responses to a prompt"),
        (
            {"controller": {"controller": "unlikeliness"}, "mask_truncated_completions": True},
            "masked ones have no tokens: leave mask_truncated_completions off",
        ),
        (
            {"controller": {"controller": es.make("grpo"), "controller_args": {"eps_low": 0.1}}},
            "needs a controller given by name",
        ),
        ({"controller": {"controller": "stear"}}, "unknown controller 'stear'"),
    ],
)
def test_errors_say_what_to_do(folder, tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        build(EntrostatGRPOTrainer, folder, tmp_path, **settings)


def test_every_option_that_trls_own_loss_reads_is_replaced_or_kept():
    """The loss is the controller's, so an option that only TRL's `_compute_loss` reads would be ignored in silence."""
    kept = {"beta", "use_bias_correction_kl", "router_aux_loss_coef", "use_vllm", "vllm_importance_sampling_correction"}
    kept |= {"max_completion_length", "steps_per_generation"}  # what a rollout is, not its loss
    read = ast.parse(textwrap.dedent(inspect.getsource(GRPOTrainer._compute_loss)))
    names = {node.attr for node in ast.walk(read) if isinstance(node, ast.Attribute)}
    options = {option.name for option in dataclasses.fields(GRPOConfig)} & names
    assert {"epsilon_high", "vespo_k_pos"} < options
    assert options <= kept | REPLACED.keys()


class Calculator:
    """A rollout function of TRL's: three tokens of the policy, two of an environment, three of the policy."""

    own = (1, 1, 1, 0, 0, 1, 1, 1)

    def __init__(self):
        self.drawn = []

    def __call__(self, prompts, trainer):
        def draw(ids):
            many = {"do_sample": True, "max_new_tokens": 3, "min_new_tokens": 3, "pad_token_id": 0, "top_k": 0}
            return trainer.model.generate(ids, attention_mask=torch.ones_like(ids), **many)

        asked = trainer.processing_class(prompts, return_tensors="pt").input_ids
        call = draw(asked)
        told = (call[:, -2:] + 1) % 10  # what the policy would hardly have said
        ids = draw(torch.cat([call, told], 1))
        self.drawn.append((ids, asked.shape[1]))
        given = {"prompt_ids": asked.tolist(), "completion_ids": ids[:, asked.shape[1] :].tolist(), "logprobs": None}
        return given | {"env_mask": [list(self.own)] * len(ids)}


def test_tokens_of_a_tool_are_nobodys(folder, tmp_path):
    """Parameters are GRPOTrainer's, and the observed entropy is that of the policy's own tokens, by a plain pass."""
    trained = {}
    for cls, given in ((GRPOTrainer, {}), (EntrostatGRPOTrainer, {"controller": "grpo"})):
        calculator = Calculator()
        trained[cls] = build(cls, folder, tmp_path / cls.__name__, controller=given | {"rollout_func": calculator})
        trained[cls].train()
    ours, theirs = trained[EntrostatGRPOTrainer], trained[GRPOTrainer]
    assert relative(parameters(ours), parameters(theirs)) < 1e-6
    ids, prompt = calculator.drawn[0]
    with torch.no_grad():
        logp = AutoModelForCausalLM.from_pretrained(folder)(ids).logits[:, prompt - 1 : -1].log_softmax(-1)
    entropy, mask = -(logp.exp() * logp).sum(-1), torch.tensor(Calculator.own).bool()
    assert logged(ours, "entropy")[0] == pytest.approx(float(entropy[:, mask].mean()), rel=1e-5)
    assert logged(ours, "entropy")[0] != pytest.approx(float(entropy.mean()), rel=5e-5)
    assert ours.tokens.turn_id.reshape(-1, 6).unique(dim=0).tolist() == [[0, 0, 0, 1, 1, 1]]


@pytest.fixture(scope="module")
def unfinished(folder, tmp_path_factory):
    """A checkpoint of GRPOTrainer after two of five steps, and the trainer."""
    out = tmp_path_factory.mktemp("unfinished")
    trainer = build(GRPOTrainer, folder, out, save_strategy="steps", save_steps=2)
    trainer.train()
    return out / "checkpoint-2", trainer


def test_a_run_of_grpotrainer_goes_on_as_it_would_have(unfinished, folder, tmp_path, capsys):
    checkpoint, theirs = unfinished
    ours = build(EntrostatGRPOTrainer, folder, tmp_path)
    ours.train(resume_from_checkpoint=str(checkpoint))
    assert f"checkpoint-2 holds no {STATE_FILE}: controller 'ppo' starts afresh" in capsys.readouterr().out
    assert relative(parameters(ours), parameters(theirs)) < 1e-6


def test_a_run_of_grpotrainer_goes_on_under_a_controller(unfinished, folder, tmp_path):
    """A target relative to the start would be relative to the entropy after the checkpoint: it is told in nats."""
    checkpoint, theirs = unfinished
    first = logged(theirs, "entropy")[0]
    held = {"controller": "thermostat", "controller_args": {"target": "0.4x"}}
    told = f"say target={0.4 * first:.2g}, since the first logged entropy is {first:.3g} nats"
    with pytest.raises(ValueError, match=re.escape(told)):
        build(EntrostatGRPOTrainer, folder, tmp_path, controller=held).train(resume_from_checkpoint=str(checkpoint))
    held["controller_args"]["target"] = f"linear({0.4 * first:.2g}, 0, 5)"
    ours = build(EntrostatGRPOTrainer, folder, tmp_path, controller=held)
    ours.train(resume_from_checkpoint=str(checkpoint))
    assert logged(ours, "entropy")[:2] == logged(theirs, "entropy")[:2]
    wanted = [float(f"{0.4 * first:.2g}") * (1 - step / 5) for step in (2, 3, 4)]  # at the run's own steps
    assert logged(ours, "thermostat/target") == pytest.approx(wanted)


@pytest.mark.slow
def test_the_example_of_the_docs_runs(tmp_path, monkeypatch, capsys):
    """As it stands but for two steps instead of forty, and a model that is not warmed up."""
    script = (ROOT / "examples/trl_countdown.py").read_text()
    assert f"```python\n{script}```" in (ROOT / "docs/trl.md").read_text()
    assert len([line for line in script.splitlines() if line.strip()]) == 16
    tokenizer = build_char_tokenizer(ALPHABET)
    model = build_tiny(len(tokenizer), hidden=32, layers=2, heads=2, kv_heads=2, intermediate=64)
    save(model, tokenizer, tmp_path / "m")
    for old, new in (('"max_steps": 40', '"max_steps": 2'), ('start_model(get_preset("countdown-cpu"))', '"m"')):
        assert script.count(old) == 1
        script = script.replace(old, new)
    monkeypatch.chdir(tmp_path)
    exec(script, {"__name__": "__main__"})
    assert (tmp_path / "runs/trl/checkpoint-2" / STATE_FILE).is_file()
    assert re.search(
        r"^step 2/2: reward \S+, entropy \S+, adaptive_entropy/coef \S+$", capsys.readouterr().out, flags=re.M
    )
