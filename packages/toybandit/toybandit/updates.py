"""Update rules: from the gradient of the loss to the step on the logits.

The loss is a mean over S states. A step follows each state's mean gradient: S times the gradient of the loss.
"""

from collections.abc import Callable
from typing import get_args

import torch
from torch import Tensor

from .environments import UpdateRule
from .policy import Policy

Update = Callable[[Tensor, Policy], Tensor]
"""Function from the gradient of the loss (R, rows, K) and the policy at which it was taken to Δz; one call per pass."""


class Sgd:
    """Policy gradient: Δz = −lr·S·gradient."""

    def __init__(self, lr: float | Tensor, states: int) -> None:
        self.factor = -lr * states

    def __call__(self, gradient: Tensor, policy: Policy) -> Tensor:
        return gradient * self.factor


class NaturalGradient:
    """Natural policy gradient: Δz = −lr·F⁺·S·gradient, with F = diag(p) − p·pᵀ the Fisher information of a state.

    A gradient in the logits of a softmax sums to 0, so F⁺g = g/p − mean(g/p); g/p is 0 if g and p are 0. At a
    temperature T the Fisher information is that of logits/T, divided by T².
    """

    def __init__(self, lr: float | Tensor, states: int) -> None:
        self.factor = -lr * states

    def __call__(self, gradient: Tensor, policy: Policy) -> Tensor:
        natural = gradient / policy.p.clamp(min=torch.finfo(policy.p.dtype).tiny)
        if policy.temperature is not None:
            natural = natural * policy.temperature**2
        return (natural - natural.mean(-1, keepdim=True)) * self.factor


class Adam:
    """Adam (Kingma and Ba 2015) with β = (0.9, 0.999) and ε = 1e-8."""

    beta_1, beta_2, eps = 0.9, 0.999, 1e-8

    def __init__(self, lr: float | Tensor, states: int) -> None:
        self.lr, self.states = lr, states
        self.calls = torch.zeros((), dtype=torch.float64)
        self.first = self.second = torch.zeros(())

    def __call__(self, gradient: Tensor, policy: Policy) -> Tensor:
        self.calls = self.calls + 1
        gradient = gradient * self.states
        self.first = self.beta_1 * self.first + (1 - self.beta_1) * gradient
        self.second = self.beta_2 * self.second + (1 - self.beta_2) * gradient**2
        first = self.first / (1 - self.beta_1**self.calls)
        second = self.second / (1 - self.beta_2**self.calls)
        return -self.lr * first / (second.sqrt() + self.eps)


RULES: dict[str, Callable[[float | Tensor, int], Update]] = {"sgd": Sgd, "npg": NaturalGradient, "adam": Adam}
assert tuple(RULES) == get_args(UpdateRule)


def make_update(name: str, lr: float | Tensor, states: int = 1) -> Update:
    """Return the update rule `name`, with one lr or one per run (R, 1, 1). Raise ValueError on an unknown name.

    states: S, the number of states over which the loss is a mean.
    """
    if name not in RULES:
        raise ValueError(f"unknown update {name!r}; choose from {', '.join(RULES)}")
    return RULES[name](lr, states)
