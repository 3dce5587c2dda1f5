"""Ray's head is killed under a run: one line in seconds, and no process is left."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest
import yaml

pytest.importorskip("ray")

import psutil

from llmtrain.cluster.topology import HEAD_HERE
from llmtrain.policy.checkpoint import checkpoints
from llmtrain.process.family import GRACE, POLL, family, left_of
from llmtrain.settings.config import TopologyConfig
from llmtrain.settings.nested import to_dict

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.long
def test_a_lost_head_ends_the_run_and_rays_agents(small, tmp_path):
    """The run leaves as if it were killed: agents, which would wait a minute for the head, end all the same."""
    never = replace(small.eval, every=0)
    config = replace(small, out=str(tmp_path / "run"), steps=10**6, eval=never, topology=TopologyConfig(name="ray"))
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(to_dict(config)))
    command = [sys.executable, "-m", "llmtrain", "train", "--config", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not checkpoints(config.out):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    known = family(process.pid)
    (head,) = (pid for pid in known if "gcs_server" in psutil.Process(pid).name())
    began = time.monotonic()
    psutil.Process(head).kill()
    _, errors = process.communicate(timeout=59)  # Ray's own limit is a minute
    took = time.monotonic() - began
    assert process.returncode == 2
    line = errors.splitlines()[-1]
    assert line.startswith("error: the Ray head at 127.0.0.1:")
    assert f"; last checkpoint: {config.out}/checkpoints/step-" in line
    end = time.monotonic() + 60
    while left_of(known) and time.monotonic() < end:
        time.sleep(0.1)
    print(f"named after {took:.1f} s (limit {HEAD_HERE:g}), all gone {time.monotonic() - began - took:.1f} s later "
          f"(limit {POLL + GRACE:g})")  # fmt: skip
    assert not left_of(known)
