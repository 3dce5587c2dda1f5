"""What is added to the verifier's reward."""

from torch import Tensor

from .config import RewardConfig


def overlong(lengths: Tensor, limit: int, config: RewardConfig) -> Tensor:
    """Penalty (B,) of responses of `lengths` tokens (B,): from 0 at limit − buffer to the full one at the limit.

    DAPO, eq. 13, with the verifier's verdict as 1 or 0.
    """
    if not config.overlong_buffer:
        return lengths.new_zeros(len(lengths)).float()
    inside = (lengths - (limit - config.overlong_buffer)) / config.overlong_buffer
    return config.overlong_penalty * inside.clamp(0, 1)
