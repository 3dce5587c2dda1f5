"""A sampling temperature that moves: what is sampled, what is trained, and what evaluations and checkpoints see."""

from dataclasses import replace

import pytest
import torch
from same_runs import same, without_times
from vllm_answers import forced_logp

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.checkpoint import latest, load_state
from llmtrain.settings.config import RolloutConfig
from llmtrain.training.check import check
from llmtrain.training.trainer import Trainer

MOVES, HEATS = "linear(1.5, 0.7, 2)", (1.5, 1.1, 0.7)


def heated(small, folder, **rollout):
    return replace(small, out=str(folder), steps=3, rollout=replace(small.rollout, **{"temperature": MOVES, **rollout}))


def watched(trainer: Trainer) -> list:
    """Run it; return the first tokens of each step's updates, and the model's own log π at its temperature and at 1."""
    found, collect, update = [], trainer.collector.collect, trainer.learner.update

    def collected(step):
        one = collect(step)
        plain = [forced_logp(trainer.model, one.rollouts, heat) for heat in (HEATS[step], 1.0)]
        found.append([one.rollouts.logp, *plain])
        return one

    def updated(experience, step, watch):
        found[step].append(experience.before)
        return update(experience, step, watch)

    trainer.collector.collect, trainer.learner.update = collected, updated
    trainer.run()
    return found


@pytest.mark.parametrize("old_logp", ["auto", "trainer"])
def test_rollouts_and_updates_are_of_the_temperature_of_their_step(small, tmp_path, old_logp):
    config = heated(small, tmp_path / "run", old_logp=old_logp)
    for sampled, hot, _, before in watched(Trainer(config, small.model.path)):
        for found in (sampled, before.logp, before.old_logp, before.rollout_logp):
            torch.testing.assert_close(found, hot, atol=1e-4, rtol=0)
    lines = [line for line in read_metrics(config.out) if "temperature" in line]
    assert [line["temperature"] for line in lines] == pytest.approx(HEATS)
    assert all(line["mismatch/logp_gap"] < 1e-4 for line in lines)


def test_training_at_one_corrects_by_the_importance_ratio(small, tmp_path):
    config = heated(small, tmp_path / "run", train_at_one=True)
    for sampled, hot, plain, before in watched(Trainer(config, small.model.path)):
        torch.testing.assert_close(sampled, hot, atol=1e-4, rtol=0)
        torch.testing.assert_close(before.logp, plain, atol=1e-4, rtol=0)
        torch.testing.assert_close(before.logp - before.old_logp, plain - hot, atol=2e-4, rtol=0)
    assert not any("mismatch/logp_gap" in line for line in read_metrics(config.out))


def test_evaluations_are_at_one(small, tmp_path):
    """Both runs begin with the same model and are asked the same questions by the same random numbers."""
    held, moves = heated(small, tmp_path / "held", temperature=1.0), heated(small, tmp_path / "moves")
    first = []
    for config in (held, moves):
        Trainer(config, small.model.path).run()
        first.append(
            {k: x for k, x in read_metrics(config.out)[0].items() if k.startswith("eval/") and "time" not in k}
        )
    assert first[0] == first[1]


def test_the_last_evaluation_is_at_one_too(small, tmp_path):
    trainer = Trainer(heated(small, tmp_path / "run"), small.model.path)
    trainer.run()
    last = read_metrics(trainer.config.out)[-1]
    asked = trainer.held_out.ask(3, last=True)
    assert last["eval/entropy"] == pytest.approx(trainer.held_out.measure(asked, 3)["eval/entropy"])
    assert trainer.policy.temperature == pytest.approx(0.7), "that of the last updates, as before"
    trainer.held_out.config = heated(small, tmp_path, temperature=0.7)
    assert last["eval/entropy"] > 1.02 * trainer.held_out.measure(asked, 3)["eval/entropy"]


@pytest.mark.slow
@pytest.mark.parametrize("controller", ["thermostat", "temperature_loop"])
def test_a_loop_goes_on_where_it_stopped(small, tmp_path, controller):
    args = {"mode": "temperature"} if controller == "thermostat" else {}
    config = replace(small, steps=4, controller=controller, controller_args=args, target=2.0)
    straight, halves = (replace(config, out=str(tmp_path / name)) for name in ("straight", "halves"))
    Trainer(straight, small.model.path).run()
    Trainer(replace(halves, steps=2), small.model.path).run()
    Trainer(halves, halves.out, resume=True).run()
    states = [load_state(latest(run.out)) for run in (straight, halves)]
    for state in states:
        state["controller"].get("thermostat", {}).pop("seen", None)  # NaN in this mode
    assert same(*states)
    heats = [line["temperature"] for line in read_metrics(straight.out) if "temperature" in line]
    assert heats[0] == 1
    assert len(set(heats)) > 2
    assert heats == [line["temperature"] for line in without_times(halves.out) if "temperature" in line]


WRONG = {
    "leave rollout.temperature at 1": {"controller": "temperature_loop", "rollout": {"temperature": 1.2}},
    "leave out rollout.train_at_one": {"controller": "temperature_loop", "rollout": {"train_at_one": True}},
    "rollout.partial_tokens to 0": {"rollout": {"temperature": MOVES, "partial_tokens": 4}},
}


@pytest.mark.parametrize("said", WRONG)
def test_settings_that_cannot_hold_are_refused(small, said):
    changes = dict(WRONG[said])
    with pytest.raises(ValueError, match=said):
        check(replace(small, **changes | {"rollout": replace(small.rollout, **changes["rollout"])}))


@pytest.mark.parametrize("wrong", [0.0, -1.0, "linear(1, 0, 5)", "0.5x", "warm", float("nan")])
def test_wrong_temperatures_are_refused(wrong):
    with pytest.raises(ValueError, match=r"rollout\.temperature"):
        RolloutConfig(temperature=wrong)
