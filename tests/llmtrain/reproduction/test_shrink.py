"""Small forms of recipes: with the engines of the recipe, or in one process. All recipes run in test_recipes.py."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
import yaml

from entrostat.logs.runlog import read_metrics
from llmtrain.reproduction import shrink
from llmtrain.reproduction.recipe_config import read_recipe_config
from llmtrain.reproduction.shrink import ENGINES

STAGES = {1: "entropic/nemotron-1.5b", 2: "ours/64-gpu", 3: "entropy_mechanism/law-qwen2.5-7b-prime"}
"""A recipe of each ZeRO stage, the second on several nodes; the last one trains PRIME's reward model too."""


@pytest.mark.long
@pytest.mark.skipif(not all(map(find_spec, ENGINES)), reason="needs vLLM, DeepSpeed and Ray")
@pytest.mark.parametrize("stage", STAGES)
def test_a_recipe_runs_in_small_with_its_engines(stage, tmp_path):
    """In processes of their own, as vLLM's engine, DeepSpeed and Ray stay in theirs; as a user types it."""
    train = [sys.executable, "-m", "llmtrain", "train", "--recipe", STAGES[stage], "--shrink", "--out", "run"]
    resume = [[*train[:3], "resume", "run", "--steps", "3"]] * (stage == 3)  # once: each takes half a minute
    for command in (train, *resume):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    run = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    engines = (run["rollout"]["name"], run["engine"]["name"], run["engine"]["bf16"], run["topology"]["name"])
    assert engines == ("vllm", "deepspeed", True, "ray" if stage == 2 else "local")
    assert run["engine"]["zero_stage"] == stage
    lines = read_metrics(tmp_path / "run")
    assert [line["step"] for line in lines] == [0, 1, 2, 3][: 3 + len(resume)]
    assert "eval/avg" in lines[-1]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("name", "topology"), [("steer/qwen2.5-math-7b", "local"), ("ours/64-gpu", "ray")])
def test_engines_run_where_the_machine_has_them(name, topology, device, tmp_path, monkeypatch):
    """vLLM is built for a GPU where there is one, and does not run on its CPU."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shrink, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    config = read_recipe_config(["--recipe", name, "--shrink"], "llmtrain train")
    assert (config.rollout.name, config.engine.name, config.topology.name) == ("vllm", "deepspeed", topology)
    assert (config.device, config.nproc, config.rollout_engines) == (device, 1, 1)


def test_in_small_one_process_does_it_all_where_an_engine_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(shrink, "find_spec", lambda name: None if name == "deepspeed" else object())
    config = read_recipe_config(["--recipe", "steer/qwen2.5-math-7b", "--shrink"], "llmtrain train")
    assert (config.rollout.name, config.engine.name, config.topology.name) == ("hf", "torch", "local")
    assert config.device == "cpu"
