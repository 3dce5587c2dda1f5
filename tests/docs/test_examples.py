"""Every Python example of the README and of docs/ runs as it stands, those of a page one after the other."""

import os
import re
from pathlib import Path

import pytest
import torch

from entrostat import StepStats, Tokens

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
README = ROOT / "README.md"
PAGES = [page for page in (README, *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(page.read_text())]
CASES = [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page == README else []) for page in PAGES]


@pytest.fixture
def folder(tmp_path, monkeypatch, own_controllers):
    """A working folder with the run that examples read."""
    from toybandit.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "--env", "det", "--states", "8", "--rollouts", "60", "--out", "runs/countdown"]) == 0
    return tmp_path


def executed(page, folder):
    """Run the examples of a page in one namespace and return it; the README's TRL example gets what a reader has."""
    namespace = {"__name__": "example"} | (own_run(folder) if page == README else {})
    for code in BLOCK.findall(page.read_text()):
        if file := re.match(r"# (\w+\.py)\n", code):  # an example that others import by the name of its file
            (folder / file[1]).write_text(code[: code.index("\n\n\ncontroller = ")])
        exec(compile(code, str(page), "exec"), namespace)
    return namespace


def own_run(folder):
    """Return what GRPOTrainer takes: a model, a reward, its arguments and data, two small steps of each."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import Dataset
    from trl import GRPOConfig

    from llmtrain.policy.model import build_tiny, save
    from llmtrain.policy.tokenizer import build_char_tokenizer

    tokenizer = build_char_tokenizer("0123456789+")
    save(build_tiny(len(tokenizer), hidden=32, layers=1, heads=1, kv_heads=1, intermediate=32), tokenizer, folder / "m")
    sizes = {"per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 4, "max_steps": 2}
    quiet = {"use_cpu": True, "bf16": False, "report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    return {
        "model": str(folder / "m"),
        "reward": lambda completions, **_: [float("2" in text) for text in completions],
        "args": GRPOConfig(str(folder / "trl"), **sizes, **quiet),
        "data": Dataset.from_dict({"prompt": [f"{n}+" for n in range(8)]}),
    }


@pytest.mark.parametrize("page", CASES)
def test_examples_run(page, folder):
    if page.stem == "trl":
        pytest.skip("examples/trl_countdown.py holds the same, and tests/common/test_integration_trl.py runs it")
    namespace = executed(page, folder)
    if page == README:
        assert namespace["trainer"].state.global_step == 2


def test_the_controller_of_the_composition_page_does_what_it_says(folder):
    controller = executed(ROOT / "docs/composition.md", folder)["controller"]
    logp = torch.full((3,), -1.0)
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.tensor([1.0, 0.0, -1.0]))
    assert controller.plan(tokens).weight.tolist() == [1, 1, 2]  # the page's last line observed an entropy below target
    controller.load_state_dict(controller.state_dict())
    controller.observe(StepStats(entropy=float("nan")))
    assert controller.plan(tokens).weight.tolist() == [1, 1, 2]
    controller.observe(StepStats(entropy=0.6))
    assert controller.plan(tokens).weight.tolist() == [1, 1, 1]
