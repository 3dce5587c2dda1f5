"""Every Python example of the README and of docs/ runs as it stands, those of a page one after the other."""

import re
from pathlib import Path

import pytest
import torch

from entrostat import StepStats, Tokens

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(page.read_text())]


@pytest.fixture
def folder(tmp_path, monkeypatch, own_controllers):
    """A working folder with the run that examples read."""
    from toybandit.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "--env", "det", "--states", "8", "--rollouts", "60", "--out", "runs/countdown"]) == 0
    return tmp_path


def executed(page, folder):
    """Run the examples of a page in one namespace and return it."""
    namespace = {"__name__": "example"}
    for code in BLOCK.findall(page.read_text()):
        if file := re.match(r"# (\w+\.py)\n", code):  # an example that others import by the name of its file
            (folder / file[1]).write_text(code[: code.index("\n\n\ncontroller = ")])
        exec(compile(code, str(page), "exec"), namespace)
    return namespace


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page, folder):
    if page.stem == "trl":
        pytest.skip("examples/trl_countdown.py holds the same, and tests/common/test_integration_trl.py runs it")
    executed(page, folder)


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
