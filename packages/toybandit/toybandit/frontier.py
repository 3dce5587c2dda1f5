"""The reward–entropy frontier: the highest mean reward possible at a given mean entropy.

Σ p·q over all states at a given Σ H(p) is highest at p(·|s) ∝ exp(β·q(s,·)) with one β for all states, where 1/β is the
multiplier of the entropy. Entropy falls from log K at β = 0 to the entropy of ties among the best arms at β = ∞.
"""

import numpy as np
from numpy.typing import ArrayLike

from .trajectory import Array

HALVINGS = 52
"""Bisection steps for β/(1 + β) in [0, 1]: one for each bit of a float64 fraction."""


def mean_entropy(probabilities: ArrayLike) -> Array:
    """Return the mean over states of −Σ p log p, with 0·log 0 = 0: (..., S, K) to (...), nats."""
    p = np.asarray(probabilities, dtype=np.float64)
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1).mean(-1)


def mean_reward(probabilities: ArrayLike, success: ArrayLike) -> Array:
    """Return the mean over states of Σ p·q: (..., S, K) both, to (...)."""
    return (np.asarray(probabilities, dtype=np.float64) * np.asarray(success, dtype=np.float64)).sum(-1).mean(-1)


def best_policy(success: ArrayLike, entropy: ArrayLike) -> Array:
    """Return the policy of highest mean reward at a mean entropy, (..., S, K).

    success: probability that an arm is rewarded, (..., S, K). entropy: nats, broadcasts against the leading dimensions.
    Below the entropy of the ties (β = ∞), the policy is uniform over the best arms of each state.
    Raises ValueError on an entropy outside [0, log K].
    """
    success, entropy = np.asarray(success, dtype=np.float64), np.asarray(entropy, dtype=np.float64)
    highest = np.log(success.shape[-1])
    if not ((entropy >= 0) & (entropy <= highest * (1 + 1e-12))).all():
        raise ValueError(f"entropy must be between 0 and log K = {highest:.6g}, not {entropy[()]}")
    gap = _gap(success)
    shape = np.broadcast_shapes(entropy.shape, gap.shape[:-2])
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = mean_entropy(_tilted(gap, middle)) > entropy
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return _tilted(gap, low)


def best_reward(success: ArrayLike, entropy: ArrayLike) -> Array:
    """Return the highest mean reward possible at a mean entropy: success (..., S, K), entropy and result (...).

    Raises ValueError on an entropy outside [0, log K].
    """
    return mean_reward(best_policy(success, entropy), success)


def frontier_curve(success: ArrayLike, points: int = 200) -> tuple[Array, Array]:
    """Return entropy and reward along the frontier of all states together, starting at log K (β = 0), (points,) each.

    success: (..., K). Points are evenly spaced in β/(1 + β), so they are dense where the frontier levels out.
    """
    states = np.asarray(success, dtype=np.float64).reshape(-1, np.shape(success)[-1])
    policy = _tilted(_gap(states), np.linspace(0, 1, points, endpoint=False))
    return mean_entropy(policy), mean_reward(policy, states)


def _gap(success: Array) -> Array:
    """Return the gap from each arm to the best arm of its state, ≤ 0, divided by the largest gap, (..., S, K)."""
    gap = success - success.max(-1, keepdims=True)
    return gap / np.maximum(-gap.min((-1, -2), keepdims=True), np.finfo(np.float64).tiny)


def _tilted(gap: Array, x: Array) -> Array:
    """Return softmax(β·gap) with β = x/(1 − x), for gap ≤ 0 with a 0 in every state."""
    weight = np.exp((x / (1 - x))[..., None, None] * gap)
    return weight / weight.sum(-1, keepdims=True)
