"""The trainer on a device that is not the CPU: nothing is computed across devices, and all comes out the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "far_device.py"


def printed(*arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", SCRIPT, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_micro_batch_waits_for_nothing(small):
    """A wait costs a GPU the time until the host has launched new work; more operations cost the host."""
    found = printed(small.model.path, "waits")
    assert set(found) == {"packed", "padded", "shared"}
    for layout, counted in found.items():
        print(f"{layout}: {counted['operations']} operations in the largest of {counted['passes']} micro-batches")
        assert counted["passes"] > 4
        assert counted["waits"] == {}, layout
        assert counted["operations"] <= {"packed": 1120, "padded": 820, "shared": 810}[layout]


@pytest.mark.long
def test_training_on_another_device_is_training_on_the_cpu(small):
    found = printed(small.model.path)
    assert found.pop("mixed") == "aten.add.Tensor of tensors on two devices: [(2,), (2,)]"
    assert len(found) == 6
    for name, (count, worst, metric) in found.items():
        assert count > 60, name
        assert worst < 5e-3, (name, metric)
