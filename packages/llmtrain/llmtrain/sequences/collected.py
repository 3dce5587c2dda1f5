"""Scored responses, as a rank holds them."""

from dataclasses import dataclass

from torch import Tensor

from .rollouts import Rollouts


@dataclass(frozen=True)
class Collected:
    """B sequences of this rank, ordered by `sequence`."""

    rollouts: Rollouts
    sequence: Tensor
    """Number of each among all that are trained on, (B,): that of its prompt times samples, and its place there."""
    reward: Tensor
    """The verifier's, (B,)."""
    shaped: Tensor
    """The reward with what is added to it, (B,)."""
    advantage: Tensor
    """(B,); under `prime` that of the outcome alone."""
    metrics: dict[str, float]
    """Of all that was sampled, dropped groups too."""
    dropped: bool = False
    """Whether no group was informative: these are of the last batch, for statistics, and nothing is learned of them."""
