"""Processes that are forks of one which has imported the libraries, so that each starts at once.

They have the environment of the tests, not what a test has changed there.
"""

import multiprocessing
from collections.abc import Callable
from typing import Any

import torch.multiprocessing as mp

IMPORTED = ["torch", "transformers", "deepspeed", "entrostat", "llmtrain.training.trainer"]
"""Modules that they find imported, where they are installed."""


def start(work: Callable[..., Any], *args: Any) -> multiprocessing.Process:
    """Return a started process that calls `work`."""
    multiprocessing.set_forkserver_preload(IMPORTED)
    process: Any = multiprocessing.get_context("forkserver").Process(target=work, args=args)
    process.start()
    return process


def start_ranks(size: int, work: Callable[..., Any], *args: Any) -> None:
    """Call `work` with the rank, the number of ranks and `args` in each of them. Raises what one of them raises."""
    multiprocessing.set_forkserver_preload(IMPORTED)
    mp.start_processes(work, args=(size, *args), nprocs=size, start_method="forkserver")
