"""Start of a run: in this process, as ranks of this machine, or as actors of a Ray cluster."""

from ..process.local_ranks import LostRankError, is_worker, launch
from ..settings.config import TrainConfig
from ..training.run import claim, prepare, say, train_run


def start_run(command: list[str], config: TrainConfig, resuming: bool = False) -> int:
    """Train in this process, as ranks of this machine with the same command, or as actors of a Ray cluster.

    Returns the exit code. Raises ValueError if a rank is lost; the message names the last checkpoint.
    """
    from ..policy.checkpoint import last_saved

    try:
        with claim(config.out):
            if config.topology.name == "ray":
                from .topology import train_on_ray

                prepare(config, resuming)
                return say(*train_on_ray(config, resuming))
            if config.nproc == 1 or is_worker():
                return train_run(config, resuming)
        return launch(command, config.nproc)  # rank 0 claims the folder
    except LostRankError as error:
        raise ValueError(f"{error}; {last_saved(config.out)}") from None
