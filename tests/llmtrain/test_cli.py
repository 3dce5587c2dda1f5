"""Bad input gets one line that names it and what is allowed, exit code 2, and no traceback."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from llmtrain.cli import main


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["trian"], ["'trian'; did you mean train"]),
        (["xyzzy"], ["unknown command 'xyzzy'", "train, resume, sft"]),
        (["train", "--preset", "gpu"], ["unknown preset 'gpu'", "countdown-cpu"]),
        (["train", "--config", "none.yaml"], ["none.yaml", "No such file"]),
        (["train", "--controller", "stear"], ["unknown controller 'stear'", "steer"]),
        (["train", "--controller-preset", "mine"], ["controller_preset", "'mine'", "paper, released"]),
        (["train", "--controller", "steer", "--set", "lamda=1"], ["'lamda'", "lambda_min"]),
        (["train", "--set", "lambda"], ["expected key=value", "'lambda'"]),
        (["train", "--advantage", "critic"], ["unknown advantage 'critic'", "rloo"]),
        pytest.param(
            ["train", "--rollout.name", "vllm", "--model.num-heads", "8"],
            ["heads of size 32", "--model.num-heads 4"],
            marks=pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM"),
        ),
        (["train", "--task.name", "chess"], ["unknown task 'chess'", "countdown"]),
        (["train", "--model.path", "no/such/model"], ["no/such/model", "does not exist"]),
        (["train", "--stepz", "3"], ["--stepz; did you mean --steps"]),
        (["train", "--steps", "many"], ["steps", "many"]),
        (["train", "--device", "tpu"], ["device", "'tpu'", "cpu"]),
        (["resume", "no/such/run"], ["no/such/run", "not a run"]),
        (["eval", "no/such/model"], ["no/such/model"]),
        (["sft", "--data.train-files", "none.jsonl"], ["none.jsonl does not exist"]),
        (["sft", "--data.chat-template", "none.jinja"], ["data.chat_template none.jinja"]),
        (["sft", "--model.path", "no/such/model"], ["no/such/model", "does not exist"]),
        (["sft", "--task.name", "chess"], ["unknown task 'chess'", "countdown"]),
        (["sft", "--device", "tpu"], ["device", "'tpu'", "cpu"]),
        (["sft", "--nproc", "2"], ["--engine.name deepspeed"]),
        (["sft", "--out", ".", "--overwrite"], [". cannot be replaced", "a folder with a name"]),
        (["compare", "no/such/run"], ["no/such/run", "not a run"]),
    ],
)
def test_bad_input(args, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert all(word in err for word in words), err
    assert not list(tmp_path.iterdir()), "nothing is written for a run that cannot start"


def test_a_run_is_not_overwritten_by_accident(small, tmp_path, capsys):
    (tmp_path / "config.yaml").write_text("steps: 3\n")
    assert main(["train", "--out", str(tmp_path), "--model.path", small.model.path]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_of_several_ranks_the_first_says_that_they_were_stopped(capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("llmtrain.commands.train.main", interrupted)
    said = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        assert main(["train"]) == 130
        said.append(capsys.readouterr().err)
    assert said == ["stopped\n", ""]


@pytest.mark.slow
def test_what_the_trainer_needs_is_not_installed():
    code = "import sys; sys.modules['transformers'] = None; from llmtrain.cli import main; sys.exit(main(['train']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install -c constraints.txt -e '.[train]'\n" in done.stderr


def test_help(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "llmtrain train --preset countdown-cpu --controller entropic --target 0.4" in out
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    assert "--target " in capsys.readouterr().out


@pytest.mark.slow
def test_help_needs_no_torch():
    """It is asked for often, also by the completion of shells."""
    code = (
        "import contextlib, sys; from llmtrain.cli import COMMANDS, main\n"
        "for name in COMMANDS:\n"
        "    with contextlib.suppress(SystemExit): main([name, '--help'])\n"
        "    assert 'torch' not in sys.modules, name"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_shows_choices(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    out = capsys.readouterr().out
    for choices in (
        "--controller-preset {paper,released}",
        "--device {cpu,cuda}",
        "--rollout.old-logp {auto,trainer,rollout}",
        "--rollout.lora-sync {merged,adapter}",
        "--reward.format {'',boxed,tags}",
        "--optim.stats {fresh,rollout}",
        "--optim.layout {padded,packed,shared}",
        "--engine.name {torch,deepspeed}",
        "--topology.name {local,ray}",
        "--topology.placement {colocated,disaggregated}",
        "--topology.weight-sync {object,ipc,nccl}",
    ):
        assert choices in out


def test_help_of_sft(capsys):
    """An example of its own, and a folder of its own with a preset, too."""
    with pytest.raises(SystemExit) as stop:
        main(["sft", "--preset", "countdown-cpu", "--help"])
    assert stop.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Example: llmtrain sft --preset countdown-cpu" in out
    assert "llmtrain train" not in out
    assert "(default: runs/sft)" in out


def test_help_of_bench(capsys):
    for flag in ("-h", "--help"):
        assert main(["bench", flag]) == 0
        assert "kernels    Compare the fused head" in capsys.readouterr().out


def test_train_eval_compare(small, tmp_path, capsys):
    out = tmp_path / "run"
    flags = ["--model.path", small.model.path, "--task.train-problems", "64", "--task.test-problems", "8"]
    flags += ["--rollout.prompts", "4", "--rollout.n", "2", "--optim.mini-batch-size", "4", "--steps", "2"]
    flags += ["--rollout.max-new-tokens", "8", "--controller", "entropic", "--target", "0.5"]
    assert main(["train", "--out", str(out), *flags]) == 0
    what, where, *_, last = capsys.readouterr().out.splitlines()
    assert what.endswith(", entropic (target 0.5)")
    assert where.startswith(f"where  {out} (settings in config.yaml)")
    assert last == f"done: {out}"
    assert main(["eval", str(out), "--samples", "9"]) == 0
    assert "done: " in capsys.readouterr().out
    found = json.loads((out / "eval" / "step-000002" / "results.json").read_text())["benchmarks"][0]
    assert (found["questions"], found["samples"]) == (8, 9)
    assert main(["compare", str(out), "--out", str(tmp_path / "c.svg")]) == 0
    assert "means over the last third" in capsys.readouterr().out
    assert (tmp_path / "c.svg").stat().st_size > 10_000
    assert main(["compare", str(out), "--out", str(tmp_path / "c")]) == 0
    assert capsys.readouterr().out.endswith(f"figure: {tmp_path / 'c.png'}\n")
    assert (tmp_path / "c.png").is_file()
