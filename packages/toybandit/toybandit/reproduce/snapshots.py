"""The policy in the middle of a run, state by state, and what theory says of its next step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..config import Config
from ..problem import draw_problem
from ..simulator import simulate
from ..trajectory import Array


def policies(config: Config, seeds: Sequence[int], rollouts: Iterable[int]) -> Array:
    """π before each of the named rollouts, (rollouts, runs, S, K).

    Random numbers are keyed by what they are for, so that a shorter run is the beginning of a longer one. Not for
    controllers that look at the length of the run.
    """
    initial = draw_problem(config.environment(), torch.tensor(list(seeds)), torch.float64)
    first = torch.softmax(initial.logits, -1).numpy()
    return np.stack(
        [first if t == 0 else simulate(replace(config, rollouts=t), seeds).probabilities for t in map(int, rollouts)]
    )


def covariance(p: Array, x: Array, y: Array) -> Array:
    """Cov_{a~p}(x, y) over the last dimension, (...,)."""
    return (p * (x - (p * x).sum(-1, keepdims=True)) * y).sum(-1)


def expected_advantage(p: Array, success: Array, *, normalised: bool = True) -> Array:
    """A(s, a) = q − ρ of Bernoulli rewards with ρ = Σ p·q, over their standard deviation when normalised: (..., K)."""
    mean = (p * success).sum(-1, keepdims=True)
    return (success - mean) / np.sqrt(mean * (1 - mean)) if normalised else success - mean


@dataclass(frozen=True, eq=False, kw_only=True)
class Covariances:
    """What the theory of The Entropy Mechanism says of the step at some rollouts, and what the step did."""

    rollout: Array
    """(rollouts,)."""
    drop: Array
    """−ΔH of the mean entropy from this rollout to the next, (rollouts, runs), nats."""
    policy_gradient: Array
    """Cov(log π, π·A) of every state, (rollouts, runs, S): theorem 1."""
    natural: Array
    """Cov(log π, A) of every state, (rollouts, runs, S): theorem 2."""
    accuracy: Array
    """Expected reward of every state, (rollouts, runs, S)."""


def covariances(config: Config, seeds: Sequence[int], count: int) -> Covariances:
    """Covariances at `count` rollouts from the first to the last, with the expected advantage of GRPO."""
    whole = simulate(config, seeds)
    rollouts = np.unique(np.linspace(0, whole.reward.shape[1] - 1, count).round().astype(int))
    p = policies(config, seeds, rollouts)
    logp, advantage = np.log(p), expected_advantage(p, whole.success)
    return Covariances(
        rollout=rollouts.astype(float),
        drop=-np.diff(whole.entropy)[:, rollouts].T,
        policy_gradient=covariance(p, logp, p * advantage),
        natural=covariance(p, logp, advantage),
        accuracy=(p * whole.success).sum(-1),
    )
