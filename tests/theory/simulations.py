"""Simulations behind the theorems: one update at several step sizes, and closed loops.

A theorem to first order has an error of order η²: its slope over η in a log-log plot is 2. What lacks a part of the
first order has slope 1.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from tests.theory.policies import entropy
from torch import Tensor

from entrostat import Plan, Tokens
from toybandit import Config, Trajectory, simulate
from toybandit.claims.entropic import alpha_star

RATES = (0.1, 0.03, 0.01, 0.003)
STATES, ARMS = 32, 6


class Update(NamedTuple):
    """One rollout and its updates at each of RATES, all from the same policies and with the same draws."""

    logp: Tensor
    """log π of every arm before, (STATES, ARMS)."""
    success: Tensor
    """Probability of a reward, (STATES, ARMS)."""
    step: Tensor
    """Δz, (RATES, STATES, ARMS)."""
    change: Tensor
    """Entropy change of each state, (RATES, STATES), nats."""
    tokens: Tokens
    """Tokens of the first pass, (RATES, N) each."""
    plan: Plan
    """Plan of the first pass."""
    last: Tokens
    """Tokens of the last pass."""

    def by_state(self, x: Tensor) -> Tensor:
        """Return the sum over a state's tokens, (RATES, N) to (RATES, STATES)."""
        return x.unflatten(-1, (self.change.shape[-1], -1)).sum(-1)


def updated(seed: int = 0, logits: Tensor | None = None, **config: Any) -> Update:
    """Simulate one rollout of a bandit at each of RATES. logits: (STATES, ARMS), otherwise the environment's."""
    seen: list[tuple[Tokens, Plan]] = []
    sizes: dict[str, Any] = {
        "states": STATES,
        "arms": ARMS,
        "rollouts": 1,
        "lr": RATES,
        "right_arms": 2,
        "passes": 1,
    } | config
    if logits is None:
        shape = sizes["states"], sizes["arms"]
        logits = 1.5 * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    start = logits.expand(len(RATES), -1, -1)
    run = simulate(
        Config(**sizes),
        [seed] * len(RATES),
        start=start.numpy(),
        keep_policies=True,
        watch=lambda tokens, plan: seen.append((tokens, plan)),
    )
    assert run.policies is not None
    before, after = (torch.from_numpy(run.policies[:, i]) for i in (0, -1))
    entropies = [entropy(p.log()) for p in (before, after)]
    return Update(
        logp=torch.log_softmax(logits, -1),
        success=torch.from_numpy(run.success[0]),
        step=torch.from_numpy(run.logits) - start,
        change=entropies[1] - entropies[0],
        tokens=seen[0][0],
        plan=seen[0][1],
        last=seen[-1][0],
    )


def order(errors: Tensor) -> float:
    """Return the slope of log error over log η: errors (RATES, STATES), averaged over states."""
    return float(np.polyfit(np.log(RATES), np.log(errors.abs().mean(-1).numpy()), 1)[0])


def with_rates(predicted: Tensor) -> Tensor:
    """Return a prediction per unit of η, (STATES,) or (RATES, STATES), at each of RATES, (RATES, STATES)."""
    return torch.tensor(RATES, dtype=torch.float64).unsqueeze(-1) * predicted


def error_order(found: Update, predicted: Tensor) -> float:
    """Return the order of the error of a prediction per unit of η, (STATES,) or (RATES, STATES)."""
    return order(found.change - with_rates(predicted))


def second(slope: float) -> bool:
    """Return True for an error of second order."""
    return abs(slope - 2) < 0.1


def arms_of(logp: Tensor, tokens: Tokens) -> Tensor:
    """Return the arm of each token of the first run, (STATES, n), from the policy (STATES, ARMS) that drew it."""
    of_tokens = tokens.get("old_logp")[0].unflatten(-1, (len(logp), -1))
    return (of_tokens.unsqueeze(-1) - logp.unsqueeze(1)).abs().argmin(-1)


def moved_alone(logp: Tensor, arm: Tensor, weight: Tensor) -> Tensor:
    """Return ΔH of each state at RATES, (RATES, STATES), under the assumption 1 of STEER and OPEFO.

    Each token moves its own logit alone, by η·w·(1 − p)/n: log π (STATES, ARMS), arm and weight (STATES, n).
    """
    own = weight * -torch.expm1(logp.gather(-1, arm)) / arm.shape[-1]
    step = torch.zeros_like(logp).scatter_add(-1, arm, own)
    return torch.stack([entropy(logp + rate * step) - entropy(logp) for rate in RATES])


TARGET = 1.0
"""Target entropy of the closed loops, nats."""


def loops(kp: list[float], ki: list[float], rollouts: int, right: float = 0.84) -> Trajectory:
    """Run EntroPIC in `exact`, where the loop is without noise, a run for each pair of gains; τ = ½, no limit of α.

    right: probability with which the run starts on the arm that pays most, .84 for an entropy near TARGET.
    """
    gains = {"kp": kp, "ki": ki, "tau": 0.5, "alpha_max": 1e9}
    config = Config(env="exact", controller="entropic", target=TARGET, controller_args=gains, rollouts=rollouts, lr=1.0)
    success = torch.from_numpy(simulate(replace(config, controller_args={}, rollouts=1)).success)
    start = math.log(right / (1 - right) * (success.shape[-1] - 1)) * (success == success.amax())
    return simulate(config, [0] * len(kp), start=start.expand(len(kp), -1, -1).double().numpy())


def resting(run: Trajectory) -> tuple[Tensor, Tensor, Tensor]:
    """Return the error of each loop at its end, nats, its α there, and the −α* that stops the drift there."""
    right = torch.from_numpy(run.probabilities.max(-1)[:, 0])
    alpha = torch.from_numpy(run.metrics["entropic/alpha"][:, -1])
    return torch.from_numpy(run.entropy[:, -1] - TARGET), alpha, -alpha_star(right)
