"""Fused head: token statistics from hidden states without holding all logits at once."""

from .head import HeadStats, head_loss, head_stats
from .truncated import RestrictedStats, restricted_stats

__all__ = ["HeadStats", "RestrictedStats", "head_loss", "head_stats", "restricted_stats"]
