"""Estimates of KL(π ‖ π_ref) from one sampled token (Schulman 2020, "Approximating KL divergence")."""

from typing import Literal

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
Estimator = Literal["k1", "k2", "k3"]


def log_ratio(logp: Tensor, other: Tensor) -> Tensor:
    """Return log π − log of the other policy; −inf instead of NaN if both are −inf."""
    return logp - other.clamp(min=torch.finfo(other.dtype).min)


def kl_estimate(logp: Tensor, ref_logp: Tensor, estimator: Estimator) -> Tensor:
    """Return the KL estimate of each token, shaped like logp, nats. With x = log π_ref − log π:

    k1: −x.  k2: x²/2.  k3: e^x − x − 1, with x in the exponential kept within ±20.
    As a loss on tokens of the current policy, k2 has the gradient of the divergence; the gradient of k1 has mean zero,
    so it penalises nothing; k3 has the gradient of the reverse divergence KL(π_ref ‖ π).
    """
    x = -log_ratio(logp, ref_logp)
    if estimator == "k1":
        return -x
    if estimator == "k2":
        return x**2 / 2
    return torch.expm1(x.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)) - x


def kl_slope(logp: Tensor, ref_logp: Tensor, estimator: Estimator) -> Tensor:
    """Return the slope of `kl_estimate` in log π, shaped like logp. k1: 1.  k2: −x.  k3: 1 − e^x, and 1 beyond ±20."""
    x = -log_ratio(logp, ref_logp)
    if estimator == "k1":
        return torch.ones_like(x)
    if estimator == "k2":
        return -x
    return 1 - x.clamp(max=LOG_RATIO_LIMIT).exp() * (x.abs() <= LOG_RATIO_LIMIT)
