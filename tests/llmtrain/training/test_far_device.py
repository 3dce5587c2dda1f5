"""The trainer on a device that is not the CPU: nothing is computed across devices, and all comes out the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_training_on_another_device_is_training_on_the_cpu(small):
    script = Path(__file__).parents[1] / "far_device.py"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", script, small.model.path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("mixed") == "aten.add.Tensor of tensors on two devices: [(2,), (2,)]"
    assert len(found) == 6
    for name, (count, worst, metric) in found.items():
        assert count > 60, name
        assert worst < 5e-3, (name, metric)
