"""A controller under which the process of rank 1 ends in its 13th backward pass."""

import os
from pathlib import Path

import torch

from entrostat.controllers.steer import Steer


def mortal(code: int) -> dict[str, str]:
    """Variables of a run with the controller `mortal:Mortal`; code: an exit code, or minus the number of a signal."""
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    return {"MORTAL": str(code), "PYTHONPATH": path}


calls, backward = 0, torch.Tensor.backward


def die(*args, **kwargs):
    global calls
    calls += 1
    if calls > 12:
        code = int(os.environ["MORTAL"])
        os._exit(code) if code >= 0 else os.kill(os.getpid(), -code)
    backward(*args, **kwargs)


class Mortal(Steer):
    if os.environ.get("RANK") == "1":
        torch.Tensor.backward = die
