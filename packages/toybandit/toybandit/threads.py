"""How many threads small tensors are worked on with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for what happens inside.

    A bandit's operations take microseconds: waking other threads costs more than they save even with hundreds of runs
    side by side, and a thousand times more on a busy machine.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
