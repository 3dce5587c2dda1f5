"""Random instances, and the order at which an error vanishes with the step size."""

import torch
from torch import Tensor

from entrostat import policy_stats
from entrostat.numbers.draws import normal, salt, uniform

STEPS = torch.logspace(-1, -3, 5, dtype=torch.float64)
"""Step sizes η for measuring an order of convergence."""


def random_logits(instances: int, arms: int, std: float, name: str) -> Tensor:
    """Return logits N(0, std²), float64 (instances, arms)."""
    return std * normal(salt(name), torch.arange(instances).reshape(-1, 1), torch.arange(arms))


def random_vector(instances: int, arms: int, name: str) -> Tensor:
    """Return uniform numbers in (−1, 1), float64 (instances, arms)."""
    return 2 * uniform(salt(name), torch.arange(instances).reshape(-1, 1), torch.arange(arms)) - 1


def entropy(logits: Tensor) -> Tensor:
    """Return H of softmax(logits), (..., K) to (...,), nats."""
    return policy_stats(logits).entropy


def entropy_change(logits: Tensor, delta: Tensor) -> Tensor:
    """Return H(z + Δz) − H(z), nats."""
    return entropy(logits + delta) - entropy(logits)


def order(errors: Tensor) -> Tensor:
    """Return the slope of log error over log η for each instance; errors (len(STEPS), instances) at STEPS."""
    x = STEPS.log() - STEPS.log().mean()
    y = errors.clamp(min=torch.finfo(errors.dtype).tiny).log()
    return (x.unsqueeze(-1) * y).sum(0) / (x**2).sum()


def median_order(logits: Tensor, step: Tensor, predicted: Tensor) -> float:
    """Return the median over instances of the order in η at which |ΔH(η·step) − η·predicted| vanishes.

    logits and step (instances, K), predicted (instances,). The median, since one instance's η² term may cancel.
    """
    errors = [(entropy_change(logits, eta * step) - eta * predicted).abs() for eta in STEPS]
    return float(order(torch.stack(errors)).median())
