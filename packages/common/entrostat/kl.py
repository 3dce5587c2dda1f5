"""Estimates of KL(π ‖ π_ref) from one sampled token (Schulman 2020, "Approximating KL divergence")."""

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
ESTIMATORS = ("k1", "k2", "k3")


def kl_estimate(logp: Tensor, ref_logp: Tensor, estimator: str) -> Tensor:
    """Estimate for each token, shaped like logp, nats. With x = log π_ref − log π:

    k1: −x.  k2: x²/2.  k3: e^x − x − 1, where x in the exponential is kept within ±20.
    As a loss on tokens of the current policy, k2 has the gradient of the divergence; k1's gradient has mean zero, so
    that it penalises nothing; k3's is that of the reverse divergence KL(π_ref ‖ π).
    """
    log_ratio = ref_logp - logp
    if estimator == "k1":
        return -log_ratio
    if estimator == "k2":
        return log_ratio**2 / 2
    return torch.expm1(log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)) - log_ratio


def kl_slope(logp: Tensor, ref_logp: Tensor, estimator: str) -> Tensor:
    """Derivative of `kl_estimate` in log π, shaped like logp. k1: 1.  k2: −x.  k3: 1 − e^x, and 1 beyond ±20."""
    log_ratio = ref_logp - logp
    if estimator == "k1":
        return torch.ones_like(log_ratio)
    if estimator == "k2":
        return -log_ratio
    return 1 - log_ratio.exp() * (log_ratio.abs() <= LOG_RATIO_LIMIT)
