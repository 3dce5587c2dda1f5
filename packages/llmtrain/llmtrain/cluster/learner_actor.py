"""Process of a trainer rank on a Ray cluster. This module does not import torch before the environment is set."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

from ..process.cores import cpus
from ..process.local_ranks import free_port
from ..rollout.ray.places import Place
from ..settings.config import TrainConfig

INTERRUPT = signal.SIGUSR1
"""Signal that replaces Ctrl-C in a learner, because a terminal's SIGINT does not reach Ray's processes."""


class Learner:
    """Actor of one rank; it runs the same code as a rank started locally."""

    def settle(self, folder: str) -> Place:
        """Change to this folder and return the place of this actor. Raises ValueError if this node lacks the folder."""
        import ray

        if not Path(folder).is_dir():
            raise ValueError(f"folder {folder} is missing on {socket.gethostname()}: start runs in a shared folder")
        os.chdir(folder)
        signal.signal(INTERRUPT, interrupt)
        context = ray.get_runtime_context()
        gpus = [str(gpu) for gpu in context.get_accelerator_ids().get("GPU", [])]
        return Place(context.get_node_id(), ray.util.get_node_ip_address(), os.getpid(), free_port(), cpus(), gpus)

    def run(self, environment: dict[str, str], config: TrainConfig, resuming: bool) -> tuple[int, str]:
        """Train as the rank that the environment describes; return the exit code and the last message."""
        os.environ |= environment
        from ..training.run import train_rank

        return train_rank(config, resuming)


def interrupt(number: int, frame: Any) -> None:
    """Call the handler of Ctrl-C."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process of the machine on which this is called."""
    os.kill(pid, number)
