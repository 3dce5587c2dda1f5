"""The rollout engine of a run: in this process, or as actors of a Ray cluster."""

from contextlib import nullcontext
from dataclasses import replace

from ..process.ranks import Ranks
from ..settings.config import TrainConfig
from .engine_names import start_engine
from .rollout_engine import RolloutEngine, RolloutError, Start


def make_rollout_engine(config: TrainConfig, start: Start, ranks: Ranks) -> RolloutEngine:
    """Return the engine of a run: in this process, or as actors of a Ray cluster.

    Raises ValueError if an engine in this process does not start: no step has run, and the user can fix it.
    """
    if config.topology.name == "ray":
        from .ray.remote_engine import remote_engine

        return remote_engine(config, replace(start, model=None, tokenizer=None, whole=nullcontext), ranks)
    try:
        return start_engine(start)
    except RolloutError as error:
        raise ValueError(str(error)) from error
