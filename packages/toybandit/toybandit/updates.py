"""Update rules: from the mean gradient of each state to the step on its logits."""

from collections.abc import Callable

import torch
from torch import Tensor

Update = Callable[[Tensor], Tensor]
"""Takes the gradient of the loss (runs, S, K), gives Δz of the same shape; called once for each pass."""


class Sgd:
    """Δz = −lr·gradient."""

    def __init__(self, lr: float) -> None:
        self.lr = lr

    def __call__(self, gradient: Tensor) -> Tensor:
        return -self.lr * gradient


class Adam:
    """Adam (Kingma and Ba 2015) with β = (0.9, 0.999) and ε = 1e-8."""

    beta_1, beta_2, eps = 0.9, 0.999, 1e-8

    def __init__(self, lr: float) -> None:
        self.lr = lr
        self.calls = 0
        self.first = self.second = torch.zeros(())

    def __call__(self, gradient: Tensor) -> Tensor:
        self.calls += 1
        self.first = self.beta_1 * self.first + (1 - self.beta_1) * gradient
        self.second = self.beta_2 * self.second + (1 - self.beta_2) * gradient**2
        first = self.first / (1 - self.beta_1**self.calls)
        second = self.second / (1 - self.beta_2**self.calls)
        return -self.lr * first / (second.sqrt() + self.eps)


UPDATES: dict[str, Callable[[float], Update]] = {"sgd": Sgd, "adam": Adam}


def make_update(name: str, lr: float) -> Update:
    """The update rule called `name`; ValueError lists the names there are."""
    if name not in UPDATES:
        raise ValueError(f"unknown update {name!r}; choose from {', '.join(UPDATES)}")
    return UPDATES[name](lr)
