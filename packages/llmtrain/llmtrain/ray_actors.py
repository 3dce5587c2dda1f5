"""What runs in the processes of a Ray cluster: a rank of the trainer, or a rollout engine.

An actor answers its caller's calls one after the other, in the order of the calls. Nothing here imports torch before
the environment is set.
"""

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import TrainConfig
from .launch import free_port

if TYPE_CHECKING:
    from .rollout import Rollouts
    from .rollout_engine import Request, RolloutEngine

INTERRUPT = signal.SIGUSR1
"""Stands for Ctrl-C in a learner: a terminal's SIGINT does not get through to the processes of Ray."""


@dataclass(frozen=True)
class Place:
    """Where a learner lives."""

    node: str
    host: str
    pid: int
    port: int
    """A free one, for the process group."""
    cpus: int
    """Of its machine."""
    gpus: list[str]
    """Its GPUs, as CUDA_VISIBLE_DEVICES names them."""


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
        cpus = os.cpu_count() or 1
        return Place(context.get_node_id(), ray.util.get_node_ip_address(), os.getpid(), free_port(), cpus, gpus)

    def run(self, environment: dict[str, str], config: TrainConfig, resuming: bool) -> tuple[int, str]:
        """Train as the rank that the environment describes; exit code and last words."""
        os.environ |= environment
        from .cli import train_rank

        return train_rank(config, resuming)


def interrupt(number: int, frame: Any) -> None:
    """Do what Ctrl-C would."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def send_signal(pid: int, number: int) -> None:
    """To a process of the machine that this is called on."""
    os.kill(pid, number)


class RolloutActor:
    """A rollout engine, called by the first learner.

    make: makes the engine, once the environment is set.
    """

    def __init__(self, make: Callable[[], "RolloutEngine"], environment: dict[str, str]) -> None:
        os.environ |= environment
        self.engine = make()

    def version(self) -> int:
        """Of the weights the engine holds."""
        return self.engine.version

    def answer(self, request: "Request") -> "Rollouts":
        """Responses to the prompts of the only share."""
        return self.engine.submit(request)()

    def update(self, weights: dict[str, Any], version: int) -> int:
        """Take these packed weights; the version that the engine reports then."""
        from .ray_rollout import unpack

        self.engine.update(unpack(weights), version)
        return self.engine.version
