"""What importing pulls in."""

import subprocess
import sys

import pytest

import toybandit
from toybandit import simulator, trajectory


@pytest.mark.parametrize("module", ["toybandit", "toybandit.config", "toybandit.environments"])
def test_configurations_need_no_torch(module):
    code = f"import sys, {module}; {module}.Config if hasattr({module}, 'Config') else None; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"torch", "matplotlib", "tyro"}


def test_names_are_loaded_when_used():
    assert toybandit.simulate is simulator.simulate
    assert toybandit.Trajectory is trajectory.Trajectory
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        toybandit.simulat  # noqa: B018
