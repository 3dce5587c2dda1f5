"""Commands of pages that call make, pip and programs of clusters are executed, so far as one machine can.

pip resolves each line in the environment of the tests and installs nothing. make runs its recipes; what they start
after the installation is recorded, and run by other tests.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import BLOCKS, CALLS, COMMANDS, ROOT, kind

RUN_BY = {
    "examples/ray_job.sh": "tests/examples/test_ray_job.py",
    "kubectl apply": "tests/examples/test_kuberay.py",
    "pip install 'entrostat/dist/": "tests/install/wheel.py",
    "python -m build": "tests/install/wheel.py",
    "python examples/trl_countdown.py": "tests/common/test_integration_trl.py",
    "sbatch": "tests/examples/test_slurm.py",
}
"""Tests that run commands which begin so."""
STARTS = {
    "make app": ["entrostat-app --runs runs"],
    "make demo": ["llmtrain demo"],
    "make install": [],
    "make lint": ["ruff check .", "ruff format --check .", "mypy", "lint-imports"],
    "make test": ["python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m not slow and not long"],
}
"""Programs that targets start once all is installed; test_launch.py, test_demo.py, .ci/run and these tests run them."""
CHOICES = ("CONSTRAINTS", "PYTHON", "TORCH", "VENV", "VLLM")
"""Variables of the Makefile, which the make that runs the tests may have been given."""
LINES = sorted({line for _, line in {*COMMANDS} - {*CALLS}})
PYTHON = """\
#!/bin/bash
[ "$1 $2 $3" = "-m pip install" ] && set -- -m pip install --dry-run --no-build-isolation "${{@:4}}"
[ "$2" = pytest ] && echo "python $*" >>started && exit
[ "$2" = verl.trainer.main_ppo ] && set -- "$@" --cfg job --package actor_rollout_ref.actor.policy_loss
exec {python} "$@"
"""
"""Python whose pip installs nothing, whose tests are recorded, and whose verl prints settings instead of training."""
PIP = """\
#!/bin/bash
exec python -m pip "$@"
"""
RECORD = """\
#!/bin/bash
echo "$(basename "$0")${*:+ $*}" >>started
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """Files of a checkout that an installation reads, and an environment whose pip installs nothing."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("packages", "apps"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "README.md", "LICENSE", "MANIFEST.in", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "entrostat").symlink_to(".")  # the clone, as seen from the folder above it
    scripts = {"python": PYTHON.format(python=shlex.quote(sys.executable)), "pip": PIP}
    system = ("chromium", "chromium-headless-shell", "slurmctld")  # so that make finds them installed
    scripts |= dict.fromkeys(("entrostat-app", "llmtrain", "lint-imports", "mypy", "ruff", *system), RECORD)
    (folder / ".venv/bin").mkdir(parents=True)
    for name, text in scripts.items():
        (folder / ".venv/bin" / name).write_text(text)
        (folder / ".venv/bin" / name).chmod(0o755)
    return folder


def execute(line: str, checkout: Path) -> str:
    """Run a line in the checkout, with its environment active; return what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", *CHOICES))}
    kept["PATH"] = f"{checkout}/.venv/bin:{kept['PATH']}"
    done = subprocess.run(["bash", "-c", line], cwd=checkout, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_is_executed():
    executed = (*RUN_BY, *STARTS, "pip install")
    assert [line for line in LINES if not line.startswith(executed)] == []
    assert [start for start in executed if not any(line.startswith(start) for line in LINES)] == []
    assert all((ROOT / name).is_file() for name in RUN_BY.values())
    assert "\nmake lint\n" in (ROOT / ".ci/run").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [line for line in LINES if line.startswith("pip ") and not line.startswith((*RUN_BY,))]
)
def test_pip_resolves(line, checkout):
    asked = "torch" if "torch==" in line else "entrostat"
    assert re.search(rf"^(Would install .*|Requirement already satisfied: ){asked}\b", execute(line, checkout), re.M)


@pytest.mark.slow
@pytest.mark.parametrize("line", STARTS)
def test_make_installs_and_starts(line, checkout):
    started = checkout / "started"
    started.write_text("")
    said = execute(line, checkout)
    assert started.read_text().splitlines() == STARTS[line]
    assert ("llmtrain doctor" in said) == (line == "make install")


@pytest.mark.slow
def test_verl_reads_its_command(checkout):
    """The whole block, in a shell; test_readme.py reads that of the README, which leaves out verl's own settings."""
    if find_spec("verl") is None:
        pytest.skip("pip install --no-deps -c constraints.txt verl")
    (block,) = (
        text for page, language, text in BLOCKS if page.name == "verl.md" and kind(page, language, text) == "verl"
    )
    said = execute(block.replace("PATH/TO/entrostat", "."), checkout)
    loss = yaml.safe_load(said.partition("# @package actor_rollout_ref.actor.policy_loss\n")[2])
    assert (loss["loss_mode"], loss["controller"]) == ("entrostat/chain", "clip_higher+kl_cov")
    assert loss["controller_args"] == {"k": 0.002}
