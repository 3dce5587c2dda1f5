"""`llmtrain plan` on the command line: output, JSON and errors."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
from benchmarks.pages import plan as page
from full_disk import no_file_over

from entrostat.settings.field_types import merge
from entrostat.settings.plain_yaml import load_yaml
from llmtrain.cli import main
from llmtrain.plan.cost import make_plan
from llmtrain.plan.handover import train_settings
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.plan_presets import get_preset
from llmtrain.settings.config import TrainConfig

ROOT = Path(__file__).parents[3]


def run(capsys, *args: str) -> str:
    assert main(["plan", *args]) == 0
    return capsys.readouterr().out


def numbers(capsys, *args: str) -> dict:
    return json.loads(run(capsys, *args, "--json"))


def test_the_64_gpu_plan(capsys):
    out = run(capsys, "--preset", "qwen3-8b-64gpu")
    for words in (
        "Qwen3-8B-Base on 64 H20, 2,000 rollout steps",
        "EntroPIC: Entropy Stabilization",
        "entropic/qwen3-8b names the source of each",
        "global batch",
        "gradient accumulation",
        "optimizer",
        "KV cache",
        "free                    54.7      0.0",
        "gpu_memory_utilization=0.73 leaves 5.1 GiB",
        "decode: reading weights",
        "weight sync",
        "GPU-hours",
        "Published runs took",
        "The largest part is",
    ):
        assert words in out, words
    assert max(map(len, out.splitlines())) <= 120


def test_json_agrees_with_itself(capsys):
    found = numbers(capsys, "--preset", "qwen3-8b-8gpu")
    seconds = found["seconds"]
    parts = sum(seconds["rollout"].values()) + sum(seconds["training"].values()) + seconds["weight sync"]
    assert seconds["step"] == pytest.approx(parts)
    assert found["run"]["gpu_hours"] == pytest.approx(parts * 2000 * 8 / 3600)
    assert found["numbers"]["global batch"] == 4096
    memory = found["memory"]
    for phase in ("training", "rollout"):
        assert sum(memory[phase].values()) + memory["free"][phase] == pytest.approx(memory["gpu"])
    assert found["config"]["model"] == "Qwen3-8B-Base"
    assert {"set", "seconds", "gpu_hours", "note"} == set(found["advice"][0])


def test_order_of_settings(capsys, tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("steps: 7\nprompts: 256\nmini_batch_size: 256\nn: 4\n")
    args = ["--preset", "qwen3-8b-8gpu", "--config", str(file), "--set", "n=16", "--set", "steps=8", "--steps", "9"]
    config = numbers(capsys, *args)["config"]
    assert (config["steps"], config["prompts"], config["n"]) == (9, 256, 16)
    assert config["max_prompt_length"] == 2048, "of the preset"


def test_gpus_and_gpu(capsys):
    config = numbers(capsys, "--preset", "qwen3-8b-8gpu", "--gpus", "64", "--gpu", "h20")["config"]
    assert (config["gpus"], config["gpu"]) == (64, "h20")


def test_list(capsys):
    out = run(capsys, "--list")
    assert "qwen2.5-32b-64gpu" in out
    assert "llmtrain recipes show entropy_mechanism/qwen2.5-32b-kl-cov" in out


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["plan", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for words in ("llmtrain plan --preset qwen3-8b-64gpu", "--mean-response-length", "--json", "--list", "--set"):
        assert words in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--gpus", "48"], ["48 ranks", "gpus=32 or colocated=false rollout_gpus=16"]),
        (["--gpus", "1"], ["needs", "GiB", "set offload_optimizer=true"]),
        (["--gpus", "1", "--gpu-memory-utilization", "0.9"], ["gpu_memory_utilization=null offload_optimizer=true"]),
        (["--oversampling", "inf"], ["oversampling", "inf"]),
        (["--live-share", "nan"], ["live_share", "NaN"]),
        (["--mean-prompt-length", "100000"], ["mean_prompt_length 100,000", "max_prompt_length 1,024"]),
        (["--prompts", "100000000", "--mini-batch-size", "1000000"], ["262,144 responses"]),
        (["--model", "Qwen2.5-Math-7B"], ["4,096 positions", "max_response_length=3072"]),
        (["--preset", "gpt"], ["unknown preset 'gpt'", "qwen3-8b-64gpu"]),
        (["--set", "foo=1"], ["unknown key foo", "zero_stage"]),
        (["--set", "steps=many"], ["steps must be a valid integer"]),
        (["--set", "steps"], ["expected key=value"]),
        (["--steps", "many"], ["steps", "many"]),
        (["--stepz", "1"], ["unknown option --stepz"]),
        (["--config", "none.yaml"], ["none.yaml", "No such file"]),
        (["--preset"], ["llmtrain plan", "--preset"]),
    ],
)
def test_bad_input_is_one_line(args, words, capsys):
    assert main(["plan", *args]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert all(word in err for word in words), err


def test_no_torch():
    code = "import sys; from llmtrain.cli import main; main(['plan']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert {"llmtrain", "rich"} <= loaded
    assert not loaded & {"torch", "transformers", "numpy", "ray", "deepspeed", "vllm"}


def test_the_page_is_what_the_code_says(capsys):
    """Rewritten by: python -m benchmarks.pages.plan > docs/plan.md"""
    page.main()
    assert capsys.readouterr().out == (ROOT / "docs/plan.md").read_text()


def test_a_plan_becomes_a_run(capsys, tmp_path):
    """`llmtrain train --config` reads the written file, which includes the model if it is a folder."""
    file, folder = tmp_path / "run.yaml", tmp_path / "model"
    folder.mkdir()
    shape = {"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14}
    shape |= {
        "num_key_value_heads": 2,
        "intermediate_size": 4864,
        "vocab_size": 151936,
        "max_position_embeddings": 32768,
    }
    (folder / "config.json").write_text(json.dumps(shape))
    out = run(capsys, "--model", str(folder), "--gpus", "8", "--set", "mini_batch_size=64", "--write", str(file))
    assert f"llmtrain train --config {file} --data.train-files FILE" in out
    found = merge(TrainConfig(), load_yaml(file))
    assert (found.nproc, found.optim.mini_batch_size, found.model.path) == (8, 64, str(folder))
    assert "--model.path FOLDER" in run(capsys, "--preset", "qwen3-8b-8gpu", "--write", str(file))
    assert merge(TrainConfig(), load_yaml(file)).controller == "entropic"


def test_the_next_command_is_printed(capsys, tmp_path, monkeypatch):
    """It writes the settings of the same plan, and names the command that trains with them."""
    monkeypatch.chdir(tmp_path)
    args = ["--preset", "qwen3-8b-8gpu", "--set", "mini_batch_size=64", "n=4"]
    last = run(capsys, *args).splitlines()[-1]
    command = shlex.split(last.partition(": ")[2])
    assert command[:2] == ["llmtrain", "plan"]
    assert "next: llmtrain train --config run.yaml --model.path FOLDER" in run(capsys, *command[2:])
    found = merge(TrainConfig(), load_yaml("run.yaml"))
    assert (found.optim.mini_batch_size, found.rollout.n) == (64, 4)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"reference_model": True}, {"controller": "grpo+kl_ref"}),
        ({"reward_model": True, "zero_stage": 3}, {"controller": "grpo", "advantage": "prime"}),
        ({"oversampling": 1.5}, {"rollout.filter_groups": True, "rollout.gen_batch_size": 768}),
        ({"colocated": False}, {"topology.weight_sync": "nccl", "topology.staleness": 0}),
        ({"colocated": False, "staleness": 1}, {"topology.weight_sync": "nccl", "topology.staleness": 1}),
        ({"colocated": False, "staleness": 2}, {"topology.weight_sync": "object", "topology.staleness": 2}),
        ({}, {"topology.name": "local", "nproc": 8}),
        ({"gpus": 16}, {"topology.name": "ray", "topology.weight_sync": "ipc", "topology.rollout_engines": 16}),
        (
            {"tensor_model_parallel_size": 2},
            {"topology.name": "ray", "topology.weight_sync": "ipc", "topology.rollout_engines": 4},
        ),
        ({}, {"optim.lr": 1e-6, "controller": "grpo", "rollout.filter_groups": False, "rollout.gen_batch_size": 0}),
    ],
)
def test_a_run_is_what_was_planned(settings, expected):
    made = make_plan(PlanConfig(**settings))
    found = merge(TrainConfig(), train_settings(made))
    assert {key: attrgetter(key)(found) for key in expected} == expected
    assert (found.save_every - 1) * made.seconds < 1800


def test_a_presets_controller_gets_the_reference_that_was_planned():
    preset = get_preset("qwen3-8b-8gpu")
    made = make_plan(replace(preset.config, reference_model=True))
    assert train_settings(made, preset)["controller"] == "entropic+kl_ref"


def test_what_the_trainer_cannot_do_is_not_written():
    with pytest.raises(ValueError, match="use zero_stage=1"):
        train_settings(make_plan(PlanConfig(model="OpenReasoning-Nemotron-1.5B", zero_stage=0)))


def test_several_settings_after_one_flag(capsys):
    """Fixes and advice list settings in this form."""
    both = numbers(capsys, "--set", "colocated=false", "rollout_gpus=4", "staleness=1", "--gpus", "8")["config"]
    assert (both["colocated"], both["rollout_gpus"], both["staleness"], both["gpus"]) == (False, 4, 1, 8)
    assert numbers(capsys, "--set", "n=4", "--set", "gpus=16")["config"]["n"] == 4


def test_a_plan_that_cannot_be_written(capsys, tmp_path):
    assert main(["plan", "--preset", "qwen3-8b-8gpu", "--write", str(tmp_path / "none" / "run.yaml")]) == 2
    assert f"{tmp_path}/none/run.yaml: " in capsys.readouterr().err
    with no_file_over(100):
        assert main(["plan", "--preset", "qwen3-8b-8gpu", "--write", str(tmp_path / "run.yaml")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/run.yaml: File too large\n"
