"""Are two runs, or two states of one, the same?"""

import torch

from entrostat.logs.runlog import read_metrics

TIMES = ("tokens_per_second", "time/")


def without_times(run) -> list[dict]:
    """The metrics of a run log but for those that a clock tells."""
    return [{k: v for k, v in line.items() if not k.startswith(TIMES)} for line in read_metrics(run)]


def same(a, b) -> bool:
    """Whether nested values are equal, tensors to the bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
