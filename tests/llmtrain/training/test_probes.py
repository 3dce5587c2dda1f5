"""Probes are answered token by token, and leave the training as it is. Ranks, vLLM and resume: test_resume.py."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from same_runs import same, without_times

from entrostat.logs.probe_log import FILE, parse_probes, read_probes
from llmtrain.policy.checkpoint import checkpoints, latest, load_state
from llmtrain.settings.config import LogConfig, PrimeConfig
from llmtrain.training.check import check
from llmtrain.training.trainer import Trainer
from llmtrain.verifiers import Verdict, Verifier

LOG = LogConfig(tensorboard=False, probes=3, probe_every=2, probe_samples=4)


class Short(Verifier):
    """Likes short responses."""

    def judge(self, responses, ground_truths):
        return [Verdict(len(response) <= 5, "") for response in responses]


def train(config, resume=False) -> dict[int, list[dict]]:
    """Train; return the answers to the probes by step."""
    trainer = Trainer(config, config.model.path, resume)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    trainer.run()
    return answers(config)


def answers(config) -> dict[int, list[dict]]:
    return {step: parse_probes(text) for step, text in read_probes(path(config).read_bytes()).items()}


def path(config) -> Path:
    return Path(config.out) / FILE


@pytest.fixture(scope="module")
def probed(small, tmp_path_factory):
    """A run with probes whose controller draws tokens, observes and weights, and whose reward model learns."""
    folder = tmp_path_factory.mktemp("probed")
    settings = {"entropic.target": "0.5x", "tau": 0.3, "clip_cov.k": 0.1}
    config = replace(
        small,
        out=str(folder / "with"),
        controller="clip_cov+steer+entropic",
        controller_args=settings,
        advantage="prime",
        prime=PrimeConfig(lr=1e-4),
        log=LOG,
    )
    return config, train(config)


def test_a_run_with_probes_is_the_run_without(probed, tmp_path):
    config, _ = probed
    without = replace(config, out=str(tmp_path / "without"), log=replace(LOG, probes=0))
    trainer = Trainer(without, without.model.path)
    trainer.collector.task = replace(trainer.task, start_verifier=Short)
    trainer.run()
    ends = [latest(run.out) for run in (config, without)]
    assert same(*(load_state(end) for end in ends))
    weights = [(end / "model.safetensors").read_bytes() for end in ends]
    assert weights[0] == weights[1]
    assert without_times(config.out) == without_times(without.out)
    assert not path(without).exists()


def test_answers_hold_their_tokens(probed):
    _, found = probed
    assert list(found) == [0, 2, 4]
    for step, lines in found.items():
        assert [(line["step"], line["probe"], line["sample"]) for line in lines] == [
            (step, probe, sample) for probe in range(3) for sample in range(4)
        ]
        for line in lines:
            assert "".join(line["tokens"]).removesuffix("<eos>") == line["response"]
            lists = {name: len(value) for name, value in line.items() if isinstance(value, list)}
            assert set(lists) == {"tokens", "logp", "entropy", "advantage", "weight", "entropy_change"}
            assert set(lists.values()) == {len(line["tokens"])}
            assert line["reward"] == float(len(line["response"]) <= 5)
        assert len({line["prompt"] for line in lines}) == 3
    assert any(weight != 1 for line in found[2] for weight in line["weight"])


def test_two_runs_answer_with_the_same_random_numbers(small, tmp_path):
    """Before the first update the answers are the same, whatever the runs' seeds and controllers; then they part."""
    found = [
        train(replace(small, out=str(tmp_path / f"{seed}"), seed=seed, controller=controller, log=LOG))
        for seed, controller in ((0, "grpo"), (1, "steer"))
    ]
    one, other = ([line["tokens"] for line in run[0]] for run in found)
    assert one == other
    one, other = ([line["tokens"] for line in run[4]] for run in found)
    assert one != other
    group = [line["advantage"][0] for line in found[0][0][:4]]
    rewards = torch.tensor([line["reward"] for line in found[0][0][:4]])
    expected = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    assert group == pytest.approx(expected.tolist(), abs=1e-3)


def test_a_resumed_run_has_each_step_once(probed, tmp_path):
    config, found = probed
    halves = replace(config, out=str(tmp_path / "halves"))
    shutil.copytree(config.out, halves.out)
    for late in checkpoints(halves.out):
        if late.name == "step-000004":
            shutil.rmtree(late)
    assert train(halves, resume=True) == found
    assert path(halves).read_bytes() == path(config).read_bytes()


def test_probes_need_held_out_questions(small):
    few = replace(small, log=replace(LOG, probes=9))
    with pytest.raises(ValueError, match=r"log\.probes 9 .*task\.test_problems to 9"):
        check(few)
