"""Scored responses on a rank."""

from dataclasses import dataclass

from torch import Tensor

from .rollouts import Rollouts


@dataclass(frozen=True)
class Collected:
    """Scored sequences of this rank, B of them, ordered by `sequence`; groups and verdicts are still known here."""

    rollouts: Rollouts
    sequence: Tensor
    """Index of each among all sequences to train on, (B,): prompt index · samples per prompt + index in its group."""
    reward: Tensor
    """Reward by the verifier, (B,)."""
    shaped: Tensor
    """Reward after shaping, (B,)."""
    advantage: Tensor
    """Advantage of each sequence, (B,); under `prime` only that of the outcome."""
    metrics: dict[str, float]
    """Metrics of all sampled responses, including dropped groups."""
    dropped: bool = False
    """True if no group was informative: the sequences are the last batch, used for statistics but not trained on."""
