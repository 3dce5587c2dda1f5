"""Rollout engines by name, and one of one's own that lies outside the package."""

import pytest

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.rollout.engine_names import ENGINES, engine_class
from llmtrain.rollout.hf_engine import HFEngine

TOY = """
import torch
from llmtrain.rollout.rollout_engine import RolloutEngine
from llmtrain.sequences.rollouts import Rollouts

class Toy(RolloutEngine):
    version = 0

    def __init__(self, rank):
        self.rank = rank

    @classmethod
    def check(cls, config):
        if config.rollout.max_new_tokens > 100:
            raise ValueError("the toy says a hundred words at most")

    @classmethod
    def start(cls, start):
        return cls(start.rank)

    def submit(self, request):
        owners = [i for i in request.shares[self.rank] for _ in range(request.n)]
        ids = torch.tensor([5 + j % request.n for j in range(len(owners))])
        logp = torch.full((len(ids),), -2.0)
        ones = torch.ones(len(owners), dtype=torch.long)
        answer = Rollouts(request.prompt_ids, ids, ones, logp, torch.tensor(owners), ones.bool(), self.version)
        return lambda: answer

    def update(self, weights, version):
        self.version = version

class Other: ...
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The name of an engine in the working folder."""
    (tmp_path / "toy_engines.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "toy_engines", raising=False)
    return "toy_engines:Toy"


def settings(small, name):
    given = {
        "model.path": small.model.path,
        "rollout.name": name,
        "steps": 2,
        "rollout.prompts": 4,
        "rollout.n": 2,
        "optim.mini-batch-size": 4,
        "rollout.max-new-tokens": 8,
        "eval.every": 1,
        "eval.k": 2,
        "eval.samples": 2,
        "task.test-problems": 4,
        "guard.mismatch": "warn",  # it makes its log-probabilities up
        "out": "runs/toy",
    }
    return [word for key, value in given.items() for word in (f"--{key}", str(value))]


@pytest.mark.parametrize("topology", ["local", pytest.param("ray", marks=pytest.mark.long)])
def test_an_engine_of_ones_own_serves_training_and_evaluation(toy, small, topology):
    if topology == "ray":
        pytest.importorskip("ray")
    assert main(["train", *settings(small, toy), "--topology.name", topology]) == 0
    lines = read_metrics("runs/toy")
    assert [line["response_length"] for line in lines if "reward" in line] == [1.0, 1.0]
    assert [line["eval/length"] for line in lines if "eval/length" in line] == [1.0] * 3
    if topology == "local":
        assert main(["eval", "runs/toy", "--rollout", toy, "--samples", "2"]) == 0


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("sglang", "hf, vllm, or give module:Class"),
        ("toy_engines:Nobody", "module 'toy_engines'"),
        ("nowhere:Toy", "No module named 'nowhere'"),
        ("toy_engines:Other", "no subclass of llmtrain.rollout."),
    ],
)
def test_what_is_no_engine_is_told_before_anything_is_loaded(toy, small, name, names, capsys):
    assert main(["train", *settings(small, name)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"rollout engine '{name}'" in line
    assert names in line


def test_an_engine_checks_the_configuration(toy, small, capsys):
    assert main(["train", *settings(small, toy), "--rollout.max-new-tokens", "101"]) == 2
    assert capsys.readouterr().err == "error: the toy says a hundred words at most\n"


def test_engines_are_imported_by_their_names():
    assert engine_class("hf") is HFEngine
    assert set(ENGINES) == {"hf", "vllm"}
