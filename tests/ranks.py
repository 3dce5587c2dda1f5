"""Processes that are forks of one which has imported the libraries, so that each starts at once.

They have the environment of the tests, not what a test has changed there.
"""

import gc
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch.multiprocessing as mp

from llmtrain.process.local_ranks import free_port

IMPORTED = ["torch", "transformers", "deepspeed", "entrostat", "llmtrain.training.trainer"]
"""Modules that they find imported, where they are installed."""
multiprocessing.set_forkserver_preload(IMPORTED)
PATIENCE = 800
"""Seconds after which ranks are killed."""


def start(variables: Mapping[str, object], log: Path, work: Callable[..., Any], *args: Any) -> Any:
    """Return a started process with these environment variables that calls `work` and prints into a file."""
    process = multiprocessing.get_context("forkserver").Process(target=_call, args=(variables, log, work, args))
    process.start()
    return process


def _call(variables: Mapping[str, object], log: Path, work: Callable[..., Any], args: tuple) -> None:
    os.environ |= {key: str(value) for key, value in variables.items()}
    with log.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    gc.freeze()  # what was imported before the fork is no garbage of this process
    work(*args)


def group(size: int) -> list[dict[str, object]]:
    """Return the environment variables of the ranks of a new group on this machine."""
    common = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "LOCAL_SIZE": size}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    return [common | {"RANK": rank, "LOCAL_RANK": rank} for rank in range(size)]


def run_ranks(of: list[dict[str, object]], work: Callable[..., Any], *args: Any) -> None:
    """Call `work` in processes with these environment variables; an AssertionError shows what one that failed wrote."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder, f"{number}.log") for number in range(len(of))]
        ranks = [start(variables, log, work, *args) for variables, log in zip(of, logs, strict=True)]
        for rank in ranks:
            rank.join(PATIENCE)
        for rank in ranks:
            rank.kill()
            rank.join()
        for rank, log in zip(ranks, logs, strict=True):
            assert rank.exitcode == 0, log.read_text()[-3000:]


def start_ranks(size: int, work: Callable[..., Any], *args: Any) -> None:
    """Call `work` with the rank, the number of ranks and `args` in each of them. Raises what one of them raises."""
    mp.start_processes(work, args=(size, *args), nprocs=size, start_method="forkserver")
