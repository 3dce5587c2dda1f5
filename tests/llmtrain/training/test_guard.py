"""Guards: each policy at each quantity, and the same run after a roll-back whether or not it was interrupted."""

import math
from dataclasses import replace

import pytest
import torch
from same_runs import same, without_times

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.checkpoint import latest, load_state
from llmtrain.policy.engine import NonFiniteError, TorchEngine
from llmtrain.settings.config import GuardConfig, RolloutConfig, TopologyConfig
from llmtrain.training.check import check
from llmtrain.training.guard import Guard, RollBackError
from llmtrain.training.run import train_rank
from llmtrain.training.trainer import Trainer, TrainingStoppedError

QUANTITIES = [
    ("loss", "above"),
    ("grad_norm", "above"),
    ("entropy", "above"),
    ("entropy", "below"),
    ("mismatch", "above"),
]


@pytest.mark.parametrize(("name", "end"), QUANTITIES)
@pytest.mark.parametrize("policy", ["warn", "skip", "stop", "roll_back"])
def test_a_limit_and_its_policy(name, end, policy, capsys):
    guard = Guard(GuardConfig(**{name: policy, f"{name}_{end}": 2.0}), prints=True)
    beyond = 3.0 if end == "above" else 1.0
    assert guard.allows(name, 2.0)
    said = f"{name} {beyond:g} is {end} guard.{name}_{end} 2"
    if policy == "roll_back":
        with pytest.raises(RollBackError, match=said):
            guard.allows(name, beyond)
        return
    assert [guard.allows(name, beyond) for _ in range(2)] == [policy == "warn"] * 2
    assert guard.stops_for == (said if policy == "stop" else "")
    counted = {f"guard/{name}": 2.0} | ({} if policy == "warn" else {"guard/skipped": 2.0})
    assert guard.metrics() == counted
    assert guard.metrics() == {f"guard/{name}": 0.0}
    words = {"warn": "training goes on", "skip": "the update is left out"}
    assert capsys.readouterr().err == (f"guard: {said}; {words[policy]}\n" if policy in words else "")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_an_error_without_a_limit(value):
    with pytest.raises(NonFiniteError, match="entropy is"):
        Guard().allows("entropy", value)
    assert Guard().allows("mismatch", -1.0)
    error = NonFiniteError("loss is nan")
    with pytest.raises(NonFiniteError):
        Guard().passes(error)
    skips = Guard(GuardConfig(non_finite="skip"))
    skips.passes(error)
    assert skips.metrics() == {"guard/non_finite": 1.0, "guard/skipped": 1.0}
    with pytest.raises(RollBackError):
        Guard(GuardConfig(non_finite="roll_back")).passes(error)


@pytest.mark.parametrize(
    ("guard", "other", "names"),
    [
        (
            {"entropy": "roll_back", "entropy_below": 0.1},
            {"topology": TopologyConfig(name="ray")},
            "topology.name local",
        ),
        ({"non_finite": "roll_back"}, {"rollout": RolloutConfig(name="vllm")}, "rollout.name hf"),
        ({"entropy_above": 0.5, "entropy_below": 1.0}, {}, "entropy_below 1"),
    ],
)
def test_policies_that_cannot_be(small, guard, other, names):
    with pytest.raises(ValueError, match=f"guard.{next(iter(guard))} .*{names}"):
        check(replace(small, guard=GuardConfig(**guard), **other))


def weights(trainer: Trainer) -> torch.Tensor:
    return trainer.model.get_output_embeddings().weight.detach().clone()


class Breaks(TorchEngine):
    """Engine whose gradient is not finite at its second update."""

    steps = 0

    def step(self):
        self.steps += 1
        if self.steps == 2:
            next(self.model.parameters()).grad.fill_(math.nan)
        return super().step()


def test_an_update_that_is_not_finite_is_left_out(small, tmp_path):
    config = replace(small, steps=2, guard=GuardConfig(non_finite="skip"), controller="entropy_bonus")
    trainer = Trainer(replace(config, out=str(tmp_path)), small.model.path)
    trainer.learner.engine = trainer.engine = Breaks(trainer.model, small.optim)
    trainer.run()
    lines = [line for line in read_metrics(tmp_path) if "reward" in line]
    assert [line.get("guard/skipped", 0.0) for line in lines] == [1.0, 0.0]
    assert all(math.isfinite(line["grad_norm"]) for line in lines)
    assert bool(weights(trainer).isfinite().all())


@pytest.mark.parametrize("name", ["grad_norm", "entropy"])
def test_a_guard_that_skips_leaves_the_weights(small, tmp_path, name):
    guard = GuardConfig(**{name: "skip", f"{name}_above": 1e-9})
    config = replace(small, out=str(tmp_path), steps=1, guard=guard, controller="entropy_bonus")
    trainer = Trainer(config, small.model.path)
    before = weights(trainer)
    trainer.run()
    assert torch.equal(weights(trainer), before)
    line = read_metrics(tmp_path)[0]
    assert line[f"guard/{name}"] == line["guard/skipped"] == (2.0 if name == "grad_norm" else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grad_norm", "entropy"])
def test_a_guard_that_stops_writes_a_checkpoint_that_goes_on(small, tmp_path, name):
    guard = GuardConfig(**{name: "stop", f"{name}_above": 1e-30})
    config = replace(small, out=str(tmp_path), save_every=4, guard=guard, controller="entropy_bonus")
    trainer = Trainer(config, small.model.path)
    with pytest.raises(TrainingStoppedError, match=rf"step \d: {name} .* is above .*last checkpoint: .*step-00000"):
        trainer.run()
    assert latest(tmp_path).name == f"step-{trainer.step:06d}"
    calm = replace(config, guard=GuardConfig())
    Trainer(calm, config.out, resume=True).run()
    assert latest(tmp_path).name == "step-000004"


class Breakable(Trainer):
    """Trainer that finds a gradient that is not finite in its third step, while the learning rate is the first one."""

    def _train_step(self):
        if self.step == 2 and self.roll_backs < 1:
            raise NonFiniteError("gradient norm is nan")
        return super()._train_step()


@pytest.mark.slow
def test_a_run_that_rolls_back_goes_on_with_a_lower_rate(small, tmp_path, monkeypatch, capsys):
    """The run is the same if it is interrupted after the roll-back and resumed."""
    monkeypatch.setattr("llmtrain.training.trainer.Trainer", Breakable)
    never = replace(small.eval, every=0)
    config = replace(small, steps=4, save_every=2, eval=never, guard=GuardConfig(non_finite="roll_back"))
    config = replace(config, controller="entropic", target=1.5)
    straight, resumed = (replace(config, out=str(tmp_path / name)) for name in ("straight", "resumed"))
    assert train_rank(straight, resuming=False, shown=True) == (0, f"done: {straight.out}")
    err = capsys.readouterr().err
    assert "guard: step 2: gradient norm is nan; last checkpoint: " in err
    assert "step-000002; rolled back, learning rate × 0.5\n" in err
    lines = read_metrics(straight.out)
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert [line["guard/roll_backs"] for line in lines] == [0, 0, 1, 1]
    assert [line["lr"] for line in lines] == [small.optim.lr] * 2 + [small.optim.lr / 2] * 2
    assert train_rank(replace(resumed, steps=3), resuming=False)[0] == 0
    assert load_state(latest(resumed.out))["roll_backs"] == 1
    assert train_rank(resumed, resuming=True)[0] == 0
    assert same(*(load_state(latest(run.out)) for run in (straight, resumed)))
    assert without_times(straight.out) == without_times(resumed.out)


def test_roll_backs_are_limited(small, tmp_path, monkeypatch):
    monkeypatch.setattr(Breakable, "_train_step", lambda self: (_ for _ in ()).throw(NonFiniteError("loss is nan")))
    monkeypatch.setattr("llmtrain.training.trainer.Trainer", Breakable)
    never = replace(small.eval, every=0)
    guard = GuardConfig(non_finite="roll_back", roll_backs=1)
    code, said = train_rank(replace(small, out=str(tmp_path), eval=never, guard=guard), resuming=False)
    assert code == 1
    assert said.startswith("error: step 0: loss is nan; ")
    assert "guard.roll_backs 1" in said
