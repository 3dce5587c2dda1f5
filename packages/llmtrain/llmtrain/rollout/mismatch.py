"""Gap between the sampling and the training policy: two programs compute different distributions for one model."""

import torch
from torch import Tensor

from ..process.ranks import Ranks


def mismatch(trainer_logp: Tensor, rollout_logp: Tensor, ranks: Ranks) -> dict[str, float]:
    """Return metrics of the raw ratio r = π_trainer/π_rollout of sampled tokens, (N,) each in nats, before truncation.

    `mismatch/kl` is the mean of log π_rollout − log π_trainer, an unbiased estimate of KL(rollout ‖ trainer).
    `mismatch/ratio_max` and `ratio_min` are the extremes over all ranks. Empty without tokens.
    """
    gap = (trainer_logp - rollout_logp.to(trainer_logp)).double()
    total = torch.stack([gap.new_tensor(len(gap)), -gap.sum(), gap.abs().sum(), gap.exp().sum()])
    count, kl, distance, ratio = ranks.total(total).tolist()
    if not count:
        return {}
    outermost = torch.stack([gap.max(), -gap.min()]) if len(gap) else gap.new_full((2,), -torch.inf)
    high, low = ranks.greatest(outermost).exp().tolist()
    return {
        "mismatch/kl": kl / count,
        "mismatch/logp_gap": distance / count,
        "mismatch/ratio_mean": ratio / count,
        "mismatch/ratio_max": high,
        "mismatch/ratio_min": 1 / low,
    }
