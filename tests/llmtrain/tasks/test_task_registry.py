"""Tasks by name, and a user's task outside the package."""

import sys

import pytest

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main

SUMS = """
import random
from llmtrain.data import Question
from llmtrain.tasks import Task
from llmtrain.verifiers import get_verifier

def make_task(config):
    rng = random.Random(config.seed)
    pairs = [(rng.randint(0, 9), rng.randint(0, 9)) for _ in range(config.train_problems + config.test_problems)]
    asked = [Question(f"{a}+{b}=", str(a + b), source="sums") for a, b in pairs]
    train, test = asked[: config.train_problems], asked[config.train_problems :]
    examples = lambda asked, sft: [(q.prompt, q.ground_truth) for source in asked for q in source][: sft.examples]
    def tokenizer(most):
        from llmtrain.policy.tokenizer import build_char_tokenizer
        return build_char_tokenizer("0123456789+=")
    return Task([train], test, lambda: get_verifier("exact"), examples, tokenizer)

def nothing(config):
    return 7
"""
SIZES = {
    "steps": 2,
    "rollout.prompts": 4,
    "rollout.n": 2,
    "rollout.max-new-tokens": 4,
    "optim.mini-batch-size": 4,
    "task.train-problems": 32,
    "task.test-problems": 4,
    "eval.every": 2,
    "eval.k": 2,
    "eval.samples": 2,
    "sft.steps": 20,
    "model.hidden-size": 32,
    "model.num-layers": 1,
    "model.num-heads": 2,
    "model.intermediate-size": 32,
    "out": "runs/sums",
}
SMALL = [word for key, value in SIZES.items() for word in (f"--{key}", str(value))]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return the name of a module in the working folder."""
    (tmp_path / "own_tasks.py").write_text(SUMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_tasks"
    sys.modules.pop("own_tasks", None)


def test_a_task_of_ones_own_is_warmed_up_trained_and_evaluated(own):
    assert main(["train", "--task.name", f"{own}:make_task", *SMALL]) == 0
    lines = read_metrics("runs/sums")
    assert [line["step"] for line in lines if "reward" in line] == [0, 1]
    assert "eval/avg@2" in lines[-1]
    assert main(["eval", "runs/sums", "--samples", "2"]) == 0


@pytest.mark.parametrize(
    ("name", "names"),
    [
        (
            "sudoku",
            "countdown, countdown-wide, arithmetic, arithmetic-easy, constraints, files, or give module:function",
        ),
        ("own_tasks:none", "module 'own_tasks' has no attribute"),
        ("own_tasks:nothing", "returned int, not llmtrain.tasks.Task"),
    ],
)
def test_what_is_no_task_is_told(own, name, names, capsys):
    assert main(["train", "--task.name", name, *SMALL]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"task '{name}'" in line
    assert names in line
