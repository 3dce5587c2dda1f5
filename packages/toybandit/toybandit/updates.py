"""Update rules: from the gradient of the loss to the step on the logits.

The loss is a mean over S states. A step follows each state's mean gradient: S times the gradient of the loss.
"""

from collections.abc import Callable
from typing import Any, get_args

import torch
from torch import Tensor

from .environments import Environment, UpdateRule
from .policy import Policy

Update = Callable[[Tensor, Policy], Tensor]
"""Function from the gradient of the loss (R, rows, K) and the policy at which it was taken to Δz; one call per pass."""


class Sgd:
    """Policy gradient: Δz = −lr·S·gradient; with momentum μ, of the sum over past updates, i updates ago times μ^i."""

    def __init__(self, lr: float | Tensor, states: int, momentum: float = 0.0) -> None:
        self.factor, self.momentum = -lr * states, momentum
        self.velocity = torch.zeros(())

    def __call__(self, gradient: Tensor, policy: Policy) -> Tensor:
        if self.momentum:
            gradient = self.velocity = self.momentum * self.velocity + gradient
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
    """Adam (Kingma and Ba 2015) with ε = 1e-8."""

    eps = 1e-8

    def __init__(self, lr: float | Tensor, states: int, beta_1: float = 0.9, beta_2: float = 0.999) -> None:
        self.lr, self.states, self.beta_1, self.beta_2 = lr, states, beta_1, beta_2
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


class Limited:
    """Update rule that scales a gradient down, run by run, to a largest norm."""

    def __init__(self, rule: Update, most: float) -> None:
        self.rule, self.most = rule, most

    def __call__(self, gradient: Tensor, policy: Policy) -> Tensor:
        norm = gradient.flatten(1).norm(dim=-1).reshape(-1, 1, 1)
        return self.rule(gradient * (self.most / norm.clamp(min=self.most)), policy)


RULES: dict[str, Callable[..., Update]] = {"sgd": Sgd, "npg": NaturalGradient, "adam": Adam}
assert tuple(RULES) == get_args(UpdateRule)


def make_update(
    name: str, lr: float | Tensor, states: int = 1, max_grad_norm: float | None = None, **settings: Any
) -> Update:
    """Return the update rule `name`. Raise ValueError on an unknown name.

    lr: one, or one per run (R, 1, 1). states: S, the number of states over which the loss is a mean. max_grad_norm:
    largest norm of the loss's gradient. settings: momentum of sgd, or beta_1 and beta_2 of adam.
    """
    if name not in RULES:
        raise ValueError(f"unknown update {name!r}; choose from {', '.join(RULES)}")
    rule = RULES[name](lr, states, **settings)
    return rule if max_grad_norm is None else Limited(rule, max_grad_norm)


def update_of(environment: Environment, lr: Tensor) -> Update:
    """Return the update rule of an environment, for its mini-batches."""
    of_rule = {
        "sgd": {"momentum": environment.momentum},
        "adam": {"beta_1": environment.beta_1, "beta_2": environment.beta_2},
    }
    states = environment.states // environment.mini_batches
    settings = of_rule.get(environment.update, {})
    return make_update(environment.update, lr, states, environment.max_grad_norm, **settings)
