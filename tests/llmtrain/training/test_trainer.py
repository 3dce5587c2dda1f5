"""Whole runs of a small model: they learn, they stop well, they go on exactly where they stopped."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from full_disk import no_file_over
from same_runs import same, without_times

from entrostat.logs.runlog import read_lines, read_metrics
from entrostat.numbers.support import Support
from llmtrain.cli import main
from llmtrain.policy.checkpoint import checkpoints, latest, load_state
from llmtrain.policy.engine import NonFiniteError, TorchEngine
from llmtrain.policy.model import load
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.ragged import starts
from llmtrain.settings.config import EngineConfig, RewardConfig, TopologyConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training.check import make_controller
from llmtrain.training.step import slowest
from llmtrain.training.trainer import Trainer, TrainingStoppedError
from llmtrain.verifiers import Verdict, Verifier


def command(config, *args: str) -> list[str]:
    file = Path(config.out).with_suffix(".yaml")
    file.write_text(yaml.safe_dump(to_dict(config)))
    return [sys.executable, "-m", "llmtrain", "train", "--config", str(file), *args]


@pytest.mark.slow
def test_six_steps_equal_three_a_kill_and_three_resumed(small, tmp_path):
    config = replace(
        small,
        steps=6,
        threads=1,
        optim=replace(small.optim, lr_schedule="cosine", warmup_steps=2, min_lr_ratio=0.1),
        controller="steer+entropic+adaptive_entropy",
        controller_args={"entropic.target": "linear(0.9x, 0.4x, 5)", "adaptive_entropy.target": 2.0, "tau": 0.3},
    )
    straight = replace(config, out=str(tmp_path / "straight"))
    assert main(command(straight)[3:]) == 0

    killed = replace(config, out=str(tmp_path / "killed"))
    process = subprocess.Popen(command(killed), stdout=subprocess.DEVNULL)
    while not (Path(killed.out) / "checkpoints" / "step-000003").is_dir():
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert latest(killed.out).name < "step-000006"
    for late in checkpoints(killed.out)[1:]:  # it may have got a step further
        if late.name > "step-000003":
            late.rename(late.with_suffix(".part"))
    assert main(["resume", killed.out]) == 0

    ends = [latest(run.out) for run in (straight, killed)]
    assert [end.name for end in ends] == ["step-000006"] * 2
    assert same(*(load_state(end) for end in ends))
    weights = [load_state(end) for end in ends]
    assert {
        "engine",
        "controller",
        "advantages",
        "planned",
        "batches",
        "in_flight",
        "lora",
        "bases",
        "annotator",
        "prompt_entropy",
        "trace",
        "rng",
        "roll_backs",
        "step",
    } == set(weights[0])
    from safetensors.torch import load_file

    assert same(*(load_file(end / "model.safetensors") for end in ends))
    assert without_times(straight.out) == without_times(killed.out)


@pytest.mark.slow
def test_the_update_goes_up_the_reward_gradient(small, tmp_path):
    """With the reward 1 for short responses and 0 for long ones, responses get shorter."""
    trainer = Trainer(replace(small, steps=12, out=str(tmp_path / "run"), save_every=100), small.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    trainer.run()
    rewards = [line["reward"] for line in read_metrics(tmp_path / "run") if "reward" in line]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2


class Short(Verifier):
    """Likes short responses."""

    def judge(self, responses, ground_truths):
        return [Verdict(len(response) <= 5, "") for response in responses]


def test_metrics_of_a_run(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), controller="entropic", target="linear(2, 1, 4)")
    seen = []
    Trainer(config, small.model.path).run(lambda step, metrics: seen.append((step, metrics)))
    lines = read_metrics(config.out)
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    assert [step for step, _ in seen] == [0, 1, 2, 3]
    assert {"entropy", "reward", "entropic/alpha", "entropic/integral", "grad_norm", "lr", "tokens_per_second"} <= set(
        lines[0]
    )
    assert ["eval/avg@2" in line for line in lines] == [True, False, True, False, True]
    assert 0 < lines[0]["entropy"] < 3
    assert lines[0]["entropic/integral"] == pytest.approx(lines[0]["entropy"] - 2.0)
    assert [line.get("entropic/target") for line in lines] == [2.0, 1.75, 1.5, 1.25, None]


def test_samples_of_a_run_hold_their_tokens(small, tmp_path):
    trainer = Trainer(replace(small, out=str(tmp_path / "run"), controller="steer"), small.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    trainer.run()
    samples = read_lines(tmp_path / "run" / "samples.jsonl")
    assert [sample["step"] for sample in samples] == [0, 1, 2, 3]
    for sample in samples:
        text = "".join(sample["tokens"])
        assert text.removesuffix("<eos>") == sample["response"]
        lists = {len(value) for value in sample.values() if isinstance(value, list)}
        assert lists == {len(sample["tokens"])}
        assert sample["reward"] == float(len(sample["response"]) <= 5)
        assert sample["prompt"]
        assert all(0 <= entropy < 4 for entropy in sample["entropy"])
    for sample in samples:  # the first response that has an advantage, where one has
        assert sample["advantage"][0] != 0
        assert any(sample["entropy_change"])


class BreaksAt(TorchEngine):
    """An engine whose loss turns NaN at the given optimizer step."""

    def __init__(self, model, config, at: int):
        super().__init__(model, config)
        self.at = at
        self.steps = 0

    def backward(self, loss):
        super().backward(loss * (float("nan") if self.steps == self.at else 1.0))

    def step(self):
        self.steps += 1
        return super().step()


def test_a_nan_loss_stops_the_run_and_names_step_and_checkpoint(small, tmp_path):
    trainer = Trainer(replace(small, out=str(tmp_path / "run")), small.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    trainer.learner.engine = trainer.engine = BreaksAt(trainer.model, small.optim, at=4)
    with pytest.raises(TrainingStoppedError, match=r"step 2: loss is nan; last checkpoint: .*step-000002"):
        trainer.run()
    assert latest(tmp_path / "run").name == "step-000002"


def test_a_gradient_that_is_not_finite_leaves_the_weights(small):

    model, _ = load(small.model.path)
    engine = TorchEngine(model, small.optim)
    before = model.get_output_embeddings().weight.clone()
    engine.backward(model.get_output_embeddings().weight.sum())
    model.get_output_embeddings().weight.grad[0, 0] = float("inf")
    with pytest.raises(NonFiniteError, match="gradient norm is"):
        engine.step()
    assert torch.equal(model.get_output_embeddings().weight, before)


@pytest.mark.slow
def test_ctrl_c_leaves_a_resumable_run(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), steps=500, save_every=500)
    process = subprocess.Popen(command(config), stdout=subprocess.PIPE, text=True)
    while not read_metrics(config.out):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"continue with: llmtrain resume {config.out}" in out
    done = load_state(latest(config.out))["step"]
    assert main(["resume", config.out, "--steps", str(done + 1)]) == 0
    assert load_state(latest(config.out))["step"] == done + 1


def test_only_the_newest_checkpoints_are_kept(small, tmp_path):
    Trainer(replace(small, out=str(tmp_path / "run")), small.model.path).run()
    assert [p.name for p in checkpoints(tmp_path / "run")] == ["step-000003", "step-000004"]
    with pytest.raises(ValueError, match="no checkpoint in"):
        latest(tmp_path)


def test_what_an_engine_started_anew_loads_is_kept_as_well(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), topology=TopologyConfig(restarts=1))
    Trainer(replace(config, steps=1), small.model.path).run()
    Trainer(config, config.out, resume=True).run()
    assert [p.name for p in checkpoints(config.out)] == ["step-000001", "step-000003", "step-000004"]


def test_the_controller_gets_the_target(small):
    assert make_controller(replace(small, controller="entropic", target=0.4)).parts[0].target == 0.4


@pytest.mark.parametrize("controller", ["gspo", "gtpo+gmpo"])
def test_lengths_and_whole_sequences_reach_who_needs_them(small, tmp_path, controller):
    """Advantages by length, and surrogates that look across sequences, whatever the micro-batches."""
    weights = []
    for budget in (48, 4096):
        optim = replace(small.optim, micro_batch_tokens=budget)
        out = str(tmp_path / f"{budget}")
        config = replace(small, out=out, steps=1, controller=controller, advantage="opo", optim=optim)
        trainer = Trainer(config, small.model.path)
        trainer.collector.task = replace(trainer.task, start_verifier=Short)
        found = trainer.collector.collect(0)
        trainer.collector.batches.used = 0  # what was answered here is asked for again
        experience = trainer.annotator.experience(found)[0]
        lengths = experience.batch.response_lengths
        length, first = lengths[:4].float(), starts(lengths)[:4]
        r = experience.before.reward[first]
        expected = r - (length * r).sum() / length.sum()
        torch.testing.assert_close(experience.before.advantage[first], expected)
        trainer.run()
        weights.append(trainer.model.get_output_embeddings().weight.detach().clone())
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=2e-5)


def metrics_of(config) -> list[dict]:
    Trainer(config, config.model.path).run()
    return [line for line in read_metrics(config.out) if "reward" in line]


def test_filtered_groups_are_sampled_again(small, tmp_path):
    """All groups that are trained on have an advantage, so no update is skipped."""
    rollout = replace(small.rollout, filter_groups=True, max_gen_batches=20)
    config = replace(small, out=str(tmp_path / "filtered"), rollout=rollout, steps=2)
    trainer = Trainer(config, small.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    found = trainer.collector.collect(0)
    experience = trainer.annotator.experience(found)[0]
    assert len(experience.batch) == config.rollout.prompts * config.rollout.n
    advantage = experience.before.advantage[starts(experience.batch.response_lengths)]
    assert bool((advantage.view(-1, config.rollout.n) != 0).any(1).all())
    assert 0 < found.metrics["groups/kept"] < 1


@pytest.mark.parametrize(("controller", "whole_groups"), [("grpo", False), ("gtpo", True)])
def test_ranks_are_dealt_the_mini_batches_that_are_learned(small, tmp_path, monkeypatch, controller, whole_groups):
    """The first of two ranks has sampled all responses, and is to train all."""
    trainer = Trainer(replace(small, out=str(tmp_path), seed=3, controller=controller), small.model.path)
    dealt = []

    def deal(found, *told):
        dealt.append(told)
        return torch.zeros_like(found.sequence)

    monkeypatch.setattr(trainer.ranks, "size", 2)
    monkeypatch.setattr("llmtrain.training.batches.shares", lambda sizes, ranks: [list(range(len(sizes))), []])
    monkeypatch.setattr("llmtrain.training.collect.deal", deal)
    trainer.rollout.version = 2
    found = trainer.collector.collect(2)
    learned = trainer.learner._mini_batches(trainer.annotator.experience(found)[0], 2)
    ((parts, *rest),) = dealt
    assert rest == [small.rollout.n, whole_groups, trainer.ranks]
    for part, some in zip(parts, learned, strict=True):
        assert found.rollouts.prompt_index[some].unique().tolist() == part.sort().values.tolist()


def test_larger_batches_pass_over_the_questions_sooner(small, tmp_path, monkeypatch):
    rollout = replace(small.rollout, filter_groups=True, gen_batch_size=32, max_gen_batches=1)
    trainer = Trainer(replace(small, out=str(tmp_path), rollout=rollout), small.model.path)
    seen = []
    monkeypatch.setattr(trainer.controller, "observe", seen.append)
    trainer.run()
    assert [(stats.epoch, stats.epochs) for stats in seen] == [(1, 2), (1, 2), (2, 2), (2, 2)]


def test_an_unfinished_response_is_left_out_of_the_loss(small, tmp_path):
    """Filtering in a rollout in which nothing finishes leaves the weights as they were; otherwise they move."""
    rollout = replace(small.rollout, max_new_tokens=2)
    still = replace(small, rollout=rollout, steps=1, reward=RewardConfig(overlong_filter=True, overlong_buffer=2))
    moved = []
    for name, config in {"filter": still, "all": replace(still, reward=RewardConfig(overlong_buffer=2))}.items():
        trainer = Trainer(replace(config, out=str(tmp_path / name)), small.model.path)
        before = trainer.model.get_output_embeddings().weight.detach().clone()
        found = trainer.collector.collect(0)
        found.rollouts.finished[:] = False
        experience = trainer.annotator.experience(replace(found, advantage=torch.randn(len(found.reward))))[0]
        trainer.learner.update(experience, 0)
        moved.append(not torch.equal(before, trainer.model.get_output_embeddings().weight))
    assert moved == [False, True]


def test_nothing_is_learned_of_dropped_groups(small, tmp_path):
    """Not even where they have an advantage, as right responses have under some rules."""
    trainer = Trainer(replace(small, out=str(tmp_path / "run")), small.model.path)
    before = trainer.model.get_output_embeddings().weight.detach().clone()
    found = trainer.collector.collect(0)
    for dropped in (True, False):
        given = replace(found, advantage=torch.ones(len(found.reward)), dropped=dropped)
        metrics = trainer.learner.update(trainer.annotator.experience(given)[0], 0)
        assert torch.equal(before, trainer.model.get_output_embeddings().weight) is dropped, metrics


def test_a_length_penalty_is_in_the_advantage_and_not_in_the_reward(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), reward=RewardConfig(overlong_buffer=12))
    trainer = Trainer(config, small.model.path)
    found = trainer.collector.collect(0)
    experience = trainer.annotator.experience(found)[0]
    lengths = found.rollouts.response_lengths
    torch.testing.assert_close(experience.before.reward[starts(lengths)], found.reward - lengths / 12)
    assert set(found.reward.tolist()) <= {0.0, 1.0}


@pytest.mark.slow
def test_the_reference_policy_is_that_of_the_start(small, tmp_path):
    """At the first step its divergence is 0; a penalty keeps the policy nearer to it."""
    apart, rollout = {}, replace(small.rollout, old_logp="trainer")  # which looks at the policy of now
    for beta in (0.0, 1.0):
        config = replace(small, out=str(tmp_path / f"{beta}"), steps=6, controller="kl_ref", rollout=rollout)
        trainer = Trainer(replace(config, controller_args={"beta": beta}), small.model.path)
        trainer.collector.task = replace(trainer.task, start_verifier=Short)
        found = trainer.collector.collect(0)
        trainer.collector.batches.used = 0
        experience = trainer.annotator.experience(found)[0]
        torch.testing.assert_close(experience.before.ref_logp, experience.stats.logp)
        trainer.run()
        experience = trainer.annotator.experience(found)[0]
        apart[beta] = (experience.stats.logp - experience.before.ref_logp).abs().mean().item()
    assert apart[1.0] < 0.8 * apart[0.0]


@pytest.mark.parametrize("rank", [0, 2])
def test_a_reset_reference_is_the_policy_of_then(small, tmp_path, rank):
    """Updates of LoRA included; AdamW begins anew, as if it had taken no step."""
    optim = replace(small.optim, lr=0.01, reset_with_reference=True)
    config = replace(small, out=str(tmp_path / "run"), optim=optim, model=replace(small.model, lora_rank=rank), steps=2)
    config = replace(config, controller="kl_ref", controller_args={"reset_every": 2})
    trainer = Trainer(config, small.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    found = trainer.collector.collect(0)
    trainer.collector.batches.used = 0
    trainer.run()
    states = trainer.engine.optimizer.state.values()
    assert {int(state["step"]) for state in states} == {4}

    def gap() -> float:
        again = trainer.policy.all_stats(Batch.of(found.rollouts), 256, trainer.ranks).logp
        return (again - trainer.annotator.experience(found)[0].before.ref_logp).abs().max().item()

    assert not trainer.annotator.reset_reference(1)
    assert gap() > 1e-3
    assert trainer.annotator.reset_reference(2)
    assert gap() < 1e-5
    trainer.learner.forget()
    assert not any(numbers.any() for state in states for numbers in state.values())


@pytest.mark.parametrize("changes", [{"lora_rank": 2}, {"advantage": "prime"}], ids=["lora", "prime"])
def test_a_thermostat_with_an_anchor_gets_a_reference(small, tmp_path, changes):
    rank = changes.get("lora_rank", 0)
    config = replace(small, out=str(tmp_path / "run"), steps=2, model=replace(small.model, lora_rank=rank))
    config = replace(config, controller="thermostat", controller_args={"mode": "anchor", "target": 9.0})
    trainer = Trainer(replace(config, advantage=changes.get("advantage", config.advantage)), small.model.path)
    trainer.run()
    assert "reference" in trainer.bases
    lines = [line["thermostat/anchor"] for line in read_metrics(config.out) if "thermostat/anchor" in line]
    assert len(lines) == 2
    assert all(0 <= x <= 1 for x in lines)


def test_the_proxy_is_the_policy_that_made_the_rollout(small, tmp_path):
    """Its log-probabilities are above those of the policy, by the noise that it leaves out, or none."""
    settings = {"share": 0.9, "min_p": 0.3}
    config = replace(small, out=str(tmp_path / "run"), steps=2, controller="lp_reg", controller_args=settings)
    trainer = Trainer(config, small.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    experience = trainer.annotator.experience(trainer.collector.collect(0))[0]
    above = experience.before.proxy_logp - experience.stats.logp
    kept = experience.before.proxy_logp.isfinite()
    assert 0 < int(kept.sum()) < len(kept)
    assert above[kept].min() > -1e-6
    some = experience.select(torch.tensor([3, 1]))
    index = experience.batch.response_index(torch.tensor([3, 1]))
    assert torch.equal(some.tokens(None).proxy_logp, experience.before.proxy_logp[index])
    trainer.collector.batches.used = 0
    trainer.run()
    lines = [line for line in read_metrics(config.out) if "reward" in line]
    assert len(lines) == 2
    assert all(0 < line["lp_reg/shielded"] < 0.9 and line["lp_reg/pull"] > 0 for line in lines)


def test_the_proxy_at_another_temperature(small, tmp_path):
    """Hotter at first, where log-probabilities differ less, and colder after a rollout above the target."""
    settings = {"temperature_high": 3.0, "temperature_low": 0.25, "target": 0.0}
    config = replace(
        small, out=str(tmp_path / "run"), steps=2, controller="arbitrary_entropy", controller_args=settings
    )
    trainer = Trainer(config, small.model.path)
    experience = trainer.annotator.experience(trainer.collector.collect(0))[0]
    assert experience.before.proxy_logp.std() < 0.5 * experience.stats.logp.std()
    trainer.collector.batches.used = 0
    trainer.run()
    assert float(trainer.controller.proxy.temperature) == 0.25


def test_the_truncated_entropy_is_that_of_the_policy_that_made_the_rollout(small, tmp_path):
    settings = {"tau": 0.5, "beta": 0.5, "top_p": 0.9}
    config = replace(small, out=str(tmp_path / "run"), steps=3, controller="siren", controller_args=settings)
    trainer = Trainer(config, small.model.path)
    experience = trainer.annotator.experience(trainer.collector.collect(0))[0]
    inside = experience.before.truncated_entropy
    within = trainer.policy.all_restricted(experience.batch, Support(top_p=0.9), 1000).entropy
    torch.testing.assert_close(inside, within, rtol=0, atol=1e-6)
    assert (inside < experience.stats.entropy).any()
    some = experience.select(torch.tensor([3, 1]))
    index = experience.batch.response_index(torch.tensor([3, 1]))
    assert torch.equal(some.tokens(None).truncated_entropy, inside[index])
    trainer.collector.batches.used = 0
    trainer.run()
    lines = [line for line in read_metrics(config.out) if "reward" in line]
    assert [line["siren/anchor"] is None for line in lines] == [True, False, False]
    assert lines[1]["siren/anchor"] == lines[2]["siren/anchor"]
    assert all(0 < line["siren/share"] < 0.5 and line["siren/entropy"] > 0 for line in lines)


def test_statistics_of_the_rollout_save_a_forward_pass(small, tmp_path, monkeypatch):
    passes, never = [], replace(small.eval, every=0)
    plain = Policy.all_stats
    monkeypatch.setattr(Policy, "all_stats", lambda self, *args: passes.append(1) or plain(self, *args))
    small = replace(small, rollout=replace(small.rollout, old_logp="trainer"))
    for stats in ("fresh", "rollout"):
        optim = replace(small.optim, stats=stats)
        metrics_of(replace(small, out=str(tmp_path / stats), steps=1, optim=optim, controller="steer", eval=never))
        passes.append(0)
    assert passes == [1, 1, 0, 1, 0]  # two updates: once for the rollout, and fresh once more for the second


@pytest.mark.parametrize("layout", ["padded", "shared"])
def test_statistics_come_from_the_sampling_policy_without_a_pass(small, tmp_path, monkeypatch, layout):
    passes, plain = [], Policy.all_stats
    monkeypatch.setattr(Policy, "all_stats", lambda self, *args: passes.append(len(args[0])) or plain(self, *args))
    found = {}
    for old in ("trainer", "rollout", "auto"):
        rollout = replace(small.rollout, old_logp=old)
        optim, never = replace(small.optim, layout=layout), replace(small.eval, every=0)
        config = replace(small, rollout=rollout, optim=optim, eval=never, controller="steer+thermostat", steps=2)
        passes.clear()
        found[old] = metrics_of(replace(config, out=str(tmp_path / old)))
        steps, responses = len(found[old]), rollout.prompts * rollout.n
        assert passes.count(responses) == (steps if old == "trainer" else 0)
    for a, b in zip(found["auto"] + found["rollout"], found["trainer"] * 2, strict=True):
        assert 0 < a["mismatch/logp_gap"] < 1e-5 > b["mismatch/logp_gap"] > 0  # of updated tokens, and of all
        same = {key for key in b if not key.startswith(("mismatch/", "time/", "tokens_per_second", "memory/"))}
        assert {key: a[key] for key in same} == pytest.approx({key: b[key] for key in same}, rel=1e-3, abs=1e-5)


def test_ratios_to_the_rollout_are_those_of_its_correction(small, tmp_path):
    rollout = replace(small.rollout, old_logp="rollout")
    theirs = metrics_of(replace(small, out=str(tmp_path / "rollout"), rollout=rollout))
    ours = metrics_of(replace(small, out=str(tmp_path / "trainer"), controller="ppo+rollout_correction"))
    for a, b in zip(theirs, ours, strict=True):
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-3)
        assert b["rollout_correction/beyond"] == 0


FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB")


@pytest.mark.parametrize(
    ("method", "error", "names"),
    [
        ("backward", FULL, "'backward': .*micro_batch_tokens.*no checkpoint"),
        ("step", FULL, "'optimizer': .*zero_stage.*no checkpoint"),
        ("backward", MemoryError(), "'backward'"),
        ("backward", RuntimeError("DefaultCPUAllocator: can't allocate memory"), "'backward'"),
    ],
)
def test_out_of_memory_names_the_phase_and_what_to_lower(small, tmp_path, monkeypatch, method, error, names):
    def full(self, *args):
        raise error

    trainer = Trainer(replace(small, out=str(tmp_path / "run"), controller="entropy_bonus"), small.model.path)
    monkeypatch.setattr(TorchEngine, method, full)
    with pytest.raises(TrainingStoppedError, match=f"step 0: out of memory .*{names}"):
        trainer.run()


def test_an_error_of_something_else_keeps_its_traceback(small, tmp_path, monkeypatch):
    def reset(self, *args):
        raise ConnectionResetError(104, "Connection reset by peer")

    trainer = Trainer(replace(small, out=str(tmp_path / "run"), controller="entropy_bonus"), small.model.path)
    monkeypatch.setattr(TorchEngine, "backward", reset)
    with pytest.raises(ConnectionResetError):
        trainer.run()


def test_a_full_disk_is_said(small, tmp_path):
    trainer = Trainer(replace(small, out=str(tmp_path / "run")), small.model.path)
    with (
        Path("/dev/full").open("w") as trainer.log._metrics,
        pytest.raises(TrainingStoppedError, match=r"^step 0: .*: No space left on device; no checkpoint was written"),
    ):
        trainer.run()


@pytest.mark.parametrize("room", [0.5, 1.5])
def test_what_libraries_make_of_a_full_disk_is_said_too(small, tmp_path, room):
    """The model does not fit, or the state of the optimizer, which is twice as large."""
    trainer = Trainer(replace(small, out=str(tmp_path / "run"), controller="entropy_bonus"), small.model.path)
    size = int(room * (Path(small.model.path) / "model.safetensors").stat().st_size)
    with no_file_over(size), pytest.raises(TrainingStoppedError, match="File too large; no checkpoint was written"):
        trainer.run()
    assert (tmp_path / "run/checkpoints/step-000001.part/tokenizer.json").exists() == (room > 1)


@pytest.mark.slow
def test_products_in_bf16_train_and_resume_to_the_same_bits(small, tmp_path):
    """Rollout, learner and reference are rounded alike; the checkpoint is fp32."""
    config = replace(small, engine=EngineConfig(bf16=True), controller="kl_ref", steps=4, threads=1)
    straight, halves = (replace(config, out=str(tmp_path / name)) for name in ("straight", "halves"))
    Trainer(straight, small.model.path).run()
    Trainer(replace(halves, steps=2), small.model.path).run()
    Trainer(halves, small.model.path, resume=True).run()
    ends = [latest(run.out) for run in (straight, halves)]
    assert same(*(load_state(end) for end in ends))
    started = Trainer(straight, small.model.path)
    found = started.collector.collect(0)
    experience = started.annotator.experience(found)[0]
    torch.testing.assert_close(experience.before.ref_logp, experience.stats.logp)
    assert 0 < (found.rollouts.logp - experience.stats.logp).abs().mean() < 0.02  # padded otherwise
    assert load(ends[0])[0].dtype == torch.float32


@pytest.mark.slow
def test_a_bonus_on_truncated_entropies_trains(small, tmp_path):
    """With the others it changes nothing but what it adds; on its own it raises the entropy of the two likeliest."""
    settings = {"controller": "truncated_entropy_bonus", "controller_args": {"coef": 0.5}}
    with_bonus = metrics_of(replace(small, **settings, out=str(tmp_path / "bonus"), steps=3))
    without = metrics_of(replace(small, out=str(tmp_path / "plain"), steps=3))
    assert with_bonus[0]["entropy"] == without[0]["entropy"]
    assert all(line["grad_norm"] > 0 for line in with_bonus[:3])
    assert with_bonus[2]["entropy"] > without[2]["entropy"] + 0.01


class Three:
    """Ranks of which the second took longest."""

    size = 3

    def gather(self, items):
        return [0.5, 2.5, *items]


def test_the_slowest_rank_is_named():
    found = slowest({"time/rollout": 0.25, "time/forward": 0.5, "time/backward": 9.0}, Three())
    assert found == {"time/slowest_rank": 1.0, "time/behind": 1.75}
