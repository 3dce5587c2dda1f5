"""Ranks of process groups as forks of this process, which has imported everything once: a rank starts at once."""

import gc
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from llmtrain.process.local_ranks import free_port


def run_ranks(size: int, work: Callable[..., Any], *args: Any) -> None:
    """Call `work` in this many new processes, the ranks of a group; with size 0 in one process that is no rank.

    Raises RuntimeError if one of them fails.
    """
    gc.freeze()  # what was imported is no garbage of the forks
    common = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "LOCAL_SIZE": size}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    sys.stdout.flush()
    children = [_fork(common | {"RANK": i, "LOCAL_RANK": i} if size else {}, work, args) for i in range(size or 1)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        raise RuntimeError(f"{work.__name__}: ranks ended with {codes}")


def _fork(variables: dict[str, Any], work: Callable[..., Any], args: tuple) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.environ |= {key: str(value) for key, value in variables.items()}
        work(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
