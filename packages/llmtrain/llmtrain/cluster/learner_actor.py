"""The process of a rank of the trainer on a Ray cluster. Nothing here imports torch before the environment is set."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

from ..process.local_ranks import cpus, free_port
from ..rollout.ray.places import Place
from ..settings.config import TrainConfig

INTERRUPT = signal.SIGUSR1
"""Stands for Ctrl-C in a learner: a terminal's SIGINT does not get through to the processes of Ray."""


class Learner:
    """One rank: the same code as a rank that this machine starts by itself."""

    def settle(self, folder: str) -> Place:
        """Work in this folder; says where that is. ValueError when this machine does not have it."""
        import ray

        if not Path(folder).is_dir():
            raise ValueError(f"folder {folder} is missing on {socket.gethostname()}: start runs in one all nodes see")
        os.chdir(folder)
        signal.signal(INTERRUPT, interrupt)
        context = ray.get_runtime_context()
        gpus = [str(gpu) for gpu in context.get_accelerator_ids().get("GPU", [])]
        return Place(context.get_node_id(), ray.util.get_node_ip_address(), os.getpid(), free_port(), cpus(), gpus)

    def run(self, environment: dict[str, str], config: TrainConfig, resuming: bool) -> tuple[int, str]:
        """Train as the rank that the environment describes; exit code and last words."""
        os.environ |= environment
        from ..training.run import train_rank

        return train_rank(config, resuming)


def interrupt(number: int, frame: Any) -> None:
    """Do what Ctrl-C would."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def send_signal(pid: int, number: int) -> None:
    """To a process of the machine that this is called on."""
    os.kill(pid, number)
