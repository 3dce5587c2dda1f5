"""Training with regions of the advantage–probability plane touched."""

from collections.abc import Mapping

from ..config import Config
from ..instruments import Region, at_hand
from ..simulator import simulate
from ..trajectory import Trajectory
from .curves import size, take
from .registry import Effort


def train_touched(
    effort: Effort, regions: Mapping[str, Mapping[str, float]], *, surrogate: str = "ppo", env: str = "noisy"
) -> dict[str, Trajectory]:
    """Training with each region touched, in one simulation; a region is hyperparameters of Region, the same for all."""
    runs, names = effort.runs, next(iter(regions.values()))
    args = {name: [region[name] for region in regions.values() for _ in range(runs)] for name in names}
    with at_hand(region=Region):
        seeds = [seed for _ in regions for seed in range(runs)]
        config = Config(env=env, controller=f"{surrogate}+region", controller_args=args, **size(effort))
        whole = simulate(config, seeds)
    return {name: take(whole, slice(i * runs, (i + 1) * runs)) for i, name in enumerate(regions)}
