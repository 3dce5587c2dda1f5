"""The benchmark of controllers plans with every one of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from entrostat import list_controllers

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_every_controller_is_measured(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "controllers.py"), "--tokens", "2000", "--rank-tokens", "2000"]
    command += ["--ranks", "2", "--json", str(tmp_path / "found.json")]
    subprocess.run(command, check=True, capture_output=True, timeout=280)
    found = json.loads((tmp_path / "found.json").read_text())
    assert {row["controller"] for row in found["plan"]} >= set(list_controllers()) - {"grpo"}
    assert all(row["vectors"] > 0 for row in found["plan"])
