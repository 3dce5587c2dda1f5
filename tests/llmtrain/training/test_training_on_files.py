"""Runs on questions from files: from rows of a file to updates, and on again exactly where they stopped."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from same_runs import without_times

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.settings.config import DataConfig, EvalConfig, RewardConfig, SFTConfig
from llmtrain.settings.presets import get_preset
from llmtrain.training.check import check
from llmtrain.training.trainer import Trainer
from llmtrain.training.warmup import build_and_warm_up

pytestmark = pytest.mark.slow

LONG = "".join(chr(33 + i * i % 89) for i in range(999))
"""A prompt that byte pairs do not shorten much."""


def write(path: Path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A configuration that mixes two files, whose model lies ready."""
    folder = tmp_path_factory.mktemp("questions")
    sums = [{"question": f"{a}+{b}?", "answer": f"It is {a + b}.\n#### {a + b}"} for a in range(6) for b in range(6)]
    digits = [{"prompt": f"Say {a}.", "ground_truth": a} for a in range(10)] + [{"prompt": LONG, "ground_truth": 1}]
    files = write(folder / "sums.jsonl", sums), write(folder / "digits.jsonl", digits)
    preset = get_preset("math-cpu")
    config = replace(
        preset,
        steps=4,
        save_every=1,
        model=replace(preset.model, hidden_size=32, num_layers=2, num_heads=2, intermediate_size=64, vocab_size=300),
        data=DataConfig(train_files=files, val_files=files[:1], weights=(1.0, 1.0), max_prompt_length=200),
        rollout=replace(preset.rollout, max_new_tokens=16),
        eval=EvalConfig(every=2, k=2, samples=2),
        reward=RewardConfig(format="boxed", length_weight=0.1),
        sft=SFTConfig(steps=20, batch_size=16),
    )
    build_and_warm_up(config, folder / "model")
    return replace(config, model=replace(config.model, path=str(folder / "model")))


def test_a_run_and_its_resumption(run, tmp_path):
    straight = replace(run, out=str(tmp_path / "straight"))
    whole = Trainer(straight, run.model.path)
    assert whole.task.skipped == (
        "skipped 1 of 47 training questions: their prompts have more than data.max_prompt_length 200 tokens",
    )
    whole.run()
    lines = without_times(straight.out)
    assert {"reward", "reward/format", "reward/length", "entropy", "eval/avg@2"} <= set(lines[0])
    assert "reward/overlong" not in lines[0]

    halves = replace(run, steps=2, out=str(tmp_path / "halves"))
    Trainer(halves, run.model.path).run()
    Trainer(replace(halves, steps=4), halves.out, resume=True).run()
    again = without_times(halves.out)
    assert again[:2] + [line for line in again if line["step"] >= 2][-3:] == lines
    assert whole.task.verifier.failures == {}


def test_questions_of_both_files_are_drawn(run, tmp_path):
    trainer = Trainer(replace(run, out=str(tmp_path / "run")), run.model.path)
    drawn = [question.source for step in range(6) for question in trainer.task.train_batch(step, 8, seed=0)]
    assert drawn.count("sums") == drawn.count("digits") == 24
    trainer.task.close()


@pytest.mark.parametrize(
    ("data", "model", "names"),
    [
        ({"val_files": ()}, {}, r"data\.val_files.* eval\.every"),
        ({"verifier": "moth"}, {}, r"data\.verifier 'moth'; .*math"),
        ({"train_files": ()}, {}, r"data\.weights .* 0 data\.train_files; got 2"),
        ({"train_files": (), "weights": ()}, {}, r"--data\.train-files"),
        ({"max_prompt_length": 0}, {}, r"data\.max_prompt_length .*1; got 0"),
        (
            {},
            {"path": None, "max_position_embeddings": 200},
            "max_prompt_length 200 .* 16 .*max_position_embeddings 200",
        ),
    ],
)
def test_what_cannot_be_is_told_before_a_file_is_read(run, data, model, names):
    with pytest.raises(ValueError, match=names):
        check(replace(run, data=replace(run.data, **data), model=replace(run.model, **model)))


def test_dapo_math_17k(real, tmp_path, capsys, monkeypatch):
    """The command, on the real file, for two steps of the tiny model. Its rewards are near zero."""
    monkeypatch.chdir(tmp_path)
    file = real("DAPO-Math-17k.parquet")
    size = ["--model.hidden-size", "32", "--model.num-layers", "1", "--model.num-heads", "1"]
    flags = ["--preset", "math-cpu", "--data.train-files", file, "--steps", "2", "--data.max-prompt-length", "300"]
    assert main(["train", *flags, *size, "--out", "run"]) == 0
    said = capsys.readouterr().out
    assert "of 17,398 training questions: their prompts" in said
    lines = read_metrics("run")
    assert [line["step"] for line in lines] == [0, 1]
    assert all(0 <= line["reward"] < 0.3 and line["entropy"] > 5 for line in lines)


OWN = """
def too_few(response): return True
def keyed(response, ground_truth): return {}["level"]
def late(response, ground_truth): return response == str(ground_truth) or {}["level"]
def sometimes(response, ground_truth): return ground_truth in response or len(response) % 2 == 0 or {}["level"]
def reward(response, ground_truth): return 1 / 0
"""


@pytest.fixture
def own(run, tmp_path, monkeypatch):
    """Function that returns a run with a verifier or reward function of one's own."""
    (tmp_path / "my_rewards.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)

    def make(verifier="math", function=""):
        data = replace(run.data, verifier=verifier)
        return replace(run, out=str(tmp_path / "run"), data=data, reward=RewardConfig(function=function), steps=1)

    return make


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"verifier": "my_rewards:too_few"}, r"verifier .*TypeError.* \(my_rewards.py, line 2, in too_few\)"),
        ({"verifier": "my_rewards:keyed"}, r"verifier .*'level' \(my_rewards.py, line 3, in keyed\)"),
        ({"function": "my_rewards:reward"}, r"reward function .*ZeroDivision.* \(my_rewards.py, line 6, in reward\)"),
    ],
)
def test_a_function_of_ones_own_is_called_once_before_the_run(own, given, names):
    with pytest.raises(ValueError, match=names):
        Trainer(own(**given), own(**given).model.path)


def test_a_step_in_which_every_check_failed_stops_the_run(own, capsys):
    config = own("my_rewards:late")
    with pytest.raises(ValueError, match=r"\d+ checks failed: KeyError: 'level'"):
        Trainer(config, config.model.path).run()
    assert 'return response == str(ground_truth) or {}["level"]' in capsys.readouterr().out


def test_the_first_error_is_printed_with_its_traceback_and_the_run_goes_on(own, capsys):
    config = own("my_rewards:sometimes")
    Trainer(config, config.model.path).run()
    said = capsys.readouterr().out
    assert said.count("an error of your own function, which costs its response the reward") == 1
    assert "my_rewards.py" in said
    assert read_metrics(config.out)[0]["verify/error"] > 0
