"""Training with a changed weight in regions of the advantage–probability plane."""

from collections.abc import Mapping

from entrostat.controllers.quadrant_mask import QuadrantMask

from ..config import Config
from ..instruments import at_hand, by_key
from ..settings import simulate_settings
from ..trajectory import Trajectory
from .curves import size
from .registry import Effort


def train_touched(
    effort: Effort, regions: Mapping[str, Mapping[str, float]], *, surrogate: str = "ppo", env: str = "noisy"
) -> dict[str, Trajectory]:
    """Train with each region reweighted, in one simulation; a region is hyperparameters of quadrant_mask, same keys."""
    config = Config(env=env, controller=f"{surrogate}+region", **size(effort))
    with at_hand(region=QuadrantMask):
        return dict(
            zip(regions, simulate_settings(config, by_key([*regions.values()]), range(effort.runs)), strict=True)
        )
