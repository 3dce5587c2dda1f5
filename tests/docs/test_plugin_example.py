"""The example of a plug-in in docs/examples/plugin is installed, and the commands of its page run."""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.pages import MAINS, our_words

from entrostat.logs.runlog import read_metrics

EXAMPLE = Path(__file__).parents[2] / "docs/examples/plugin"
OFFLINE = "--quiet --no-deps --no-build-isolation --no-index --target site"
TINY = (
    "--steps 1 --rollout.prompts 4 --rollout.n 2 --rollout.max-new-tokens 4 --optim.mini-batch-size 4 "
    "--task.train-problems 32 --task.test-problems 4 --eval.every 0 --sft.steps 2 --model.hidden-size 32 "
    "--model.num-layers 1 --model.num-heads 2 --model.intermediate-size 32"
)
SMALL = {"pip install": OFFLINE, "toybandit run": "--states 4 --rollouts 3", "llmtrain train": TINY}
"""Arguments that make a command of the page small, or keep it from the network."""


def commands():
    """Return the commands of the page, made small."""
    (block,) = re.findall(r"^```\n(.*?)^```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    return [f"{line} {SMALL.get(' '.join(line.split()[:2]), '')}" for line in block.splitlines()]


@pytest.mark.slow
def test_the_commands_of_its_page_run(tmp_path, monkeypatch, capsys, own_controllers, own_claims):
    """Our commands in this process, which has imported everything; pip and pytest in their own."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    path = os.pathsep.join(p for p in sys.path if p)
    told = []
    for line in commands():
        if ours := our_words(line):
            assert import_module(MAINS[ours[0]]).main(ours[1:]) == 0, line
            told.append(capsys.readouterr().out)
            continue
        done = subprocess.run(
            [sys.executable, "-m", *line.split()],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, line + done.stdout + done.stderr
        told.append(done.stdout)
    _, described, checked, verified, simulated, _, tested = told
    assert described.startswith("floor (controller)\nWeight 1 + (1 − Ĥ/target)")
    assert "floor passes all checks" in checked
    assert "floor-helps: holds; 1 of 1 mutations turn it" in verified
    assert "clip_higher+floor in det" in simulated
    assert [line["step"] for line in read_metrics(tmp_path / "runs/sums") if "reward" in line] == [0]
    assert "5 passed" in tested
