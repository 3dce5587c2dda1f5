"""Controllers of `entrostat` built from a configuration."""

from typing import Any

import torch
from torch import Tensor

from entrostat import Chain, LocalReduce, make
from entrostat.by_name import with_target
from entrostat.numbers.reduce import Tie
from entrostat.settings.schedules import is_schedule, per_run

from .config import Config


def build_controller(config: Config, runs: int) -> Chain:
    """Return the controller chain of `config` for `runs` runs side by side.

    Raises ValueError on an unknown controller, preset or hyperparameter, on a target for a controller without one,
    on a value of the wrong type, and on a sequence of values whose length is not `runs`.
    """
    settings = {key: _per_run(key, value, runs) for key, value in config.controller_args.items()}
    if config.target is not None:
        settings = with_target(config.controller, settings, config.target)
    return make(config.controller, preset=config.preset, **settings)


def _per_run(key: str, value: Any, runs: int) -> Any:
    """Return a sequence as a tensor (runs,), or as one schedule if it has any; any other value unchanged."""
    if not isinstance(value, list | tuple):
        return value
    if len(value) != runs:
        raise ValueError(f"controller_args {key!r} has {len(value)} values for {runs} runs")
    if any(map(is_schedule, value)):
        return per_run(value)
    return torch.tensor(value, dtype=torch.float64)


class EnumeratedReduce(LocalReduce):
    """Reduction that refuses statistics over the mini-batch.

    Enumerated outcomes are not a sample, so a mean or a top-k over them is meaningless. Rules for single tokens work,
    and so do counts: they are expected counts, with outcomes weighted by their frequency (runs, N).
    """

    def __init__(self, controller: str, env: str, frequency: Tensor) -> None:
        self.frequency = frequency
        self.message = (
            f"controller {controller!r} needs statistics over a sample, but env {env!r} enumerates outcomes instead; "
            "choose a sampled env, which is any but exact"
        )

    def count(self, mask: Tensor) -> Tensor:
        return (mask * self.frequency).sum(-1)

    def sum(self, x: Tensor) -> Tensor:
        raise ValueError(self.message)

    def max(self, x: Tensor) -> Tensor:
        raise ValueError(self.message)

    def top_k(self, score: Tensor, k: int | Tensor, tie: Tie = None) -> Tensor:
        raise ValueError(self.message)
