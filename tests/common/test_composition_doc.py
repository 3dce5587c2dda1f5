"""The controller of one's own in docs/composition.md works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

DOC = Path(__file__).parents[2] / "docs/composition.md"
USE = """
import torch
from entrostat import Tokens

logp = torch.full((3,), -1.0)
tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.tensor([1.0, 0.0, -1.0]))
assert controller.plan(tokens).weight.tolist() == [1, 1, 2]
controller.load_state_dict(controller.state_dict())
controller.parts[0].observe(StepStats(entropy=float("nan")))
assert controller.plan(tokens).weight.tolist() == [1, 1, 2]
"""


def test_a_controller_of_ones_own():
    *_, block = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block + USE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
