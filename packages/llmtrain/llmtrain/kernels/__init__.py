"""The fused head: token statistics from hidden states, never holding all logits at once."""

from .head import HeadStats, head_loss, head_stats
from .truncated import restricted_logp

__all__ = ["HeadStats", "head_loss", "head_stats", "restricted_logp"]
