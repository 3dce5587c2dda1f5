"""Predictions of theory for the next step in the middle of a run, state by state."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..config import Config
from ..simulator import simulate
from ..trajectory import Array


def covariance(p: Array, x: Array, y: Array) -> Array:
    """Return Cov_{a~p}(x, y) over the last dimension, (...,)."""
    return (p * (x - (p * x).sum(-1, keepdims=True)) * y).sum(-1)


def expected_advantage(p: Array, success: Array) -> Array:
    """Return A(s, a) = (q − ρ)/√(ρ(1 − ρ)) of Bernoulli rewards with ρ = Σ p·q, (..., K)."""
    mean = (p * success).sum(-1, keepdims=True)
    return (success - mean) / np.sqrt(mean * (1 - mean))


@dataclass(frozen=True, eq=False, kw_only=True)
class Covariances:
    """Predictions of The Entropy Mechanism for the step at some rollouts, and the measured effect of the step."""

    rollout: Array
    """Index of each rollout, (rollouts,)."""
    drop: Array
    """−ΔH of the mean entropy from this rollout to the next, (rollouts, runs), nats."""
    policy_gradient: Array
    """Cov(log π, π·A) of every state, (rollouts, runs, S): theorem 1."""
    natural: Array
    """Cov(log π, A) of every state, (rollouts, runs, S): theorem 2."""
    accuracy: Array
    """Expected reward of every state, (rollouts, runs, S)."""


def covariances(config: Config, seeds: Sequence[int], count: int) -> Covariances:
    """Return covariances at `count` rollouts from the first to the last, with the expected advantage of GRPO."""
    whole = simulate(config, seeds, keep_policies=True)
    assert whole.policies is not None
    rollouts = np.unique(np.linspace(0, whole.reward.shape[1] - 1, count).round().astype(int))
    p = whole.policies[:, rollouts].swapaxes(0, 1)
    logp, advantage = np.log(p), expected_advantage(p, whole.success)
    return Covariances(
        rollout=rollouts.astype(float),
        drop=-np.diff(whole.entropy)[:, rollouts].T,
        policy_gradient=covariance(p, logp, p * advantage),
        natural=covariance(p, logp, advantage),
        accuracy=(p * whole.success).sum(-1),
    )
