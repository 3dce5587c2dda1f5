"""Logits that are linear in fixed features, as those of a language model's last layer: z(row, ·) = φ(row)·θ.

A step for one state then moves the others, in the measure of the inner product of their features, and what is learnt
reaches prompts that were never seen. A row's features are a unit vector of d numbers, the same in all runs: rows of a
random orthogonal matrix, cut to d columns. With d = the number of rows it is whole, states share nothing, and the
bandit is tabular. `coupling` is the share of one more feature that all rows have alike.

Right arms follow from the features too, those of the largest φ(row)·ω with ω drawn by seed, or in part: `predictable`
is the share of the score's variance that features explain. The rest is drawn for every row by itself, so it can be
learnt for a prompt that returns, and never for others.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from entrostat.numbers.draws import normal, salt

from .environments import Environment
from .episodes import solved, visits
from .policy import Policy
from .problem import gumbel

SEED = 0
"""Seed of the features."""


@lru_cache(maxsize=8)
def directions(rows: int, dimension: int) -> np.ndarray:
    """Return unit vectors, float64 (rows, min(dimension, rows)): pairwise orthogonal if the dimension allows it."""
    if dimension >= rows:
        return np.eye(rows)
    drawn = np.random.default_rng(SEED).standard_normal((rows, dimension))
    orthogonal = np.linalg.qr(drawn).Q
    return orthogonal / np.linalg.norm(orthogonal, axis=1, keepdims=True)


class Features:
    """Features of all prompts, for training and held out, with the runs' first weights and their right arms.

    R runs, K arms, W features, N rows: the nodes of the training prompts, then those of the held-out ones.
    """

    def __init__(self, environment: Environment, seeds: Tensor, dtype: torch.dtype) -> None:
        assert environment.features is not None
        self.environment = environment
        self.nodes = environment.nodes
        share = environment.coupling
        own = directions((environment.prompts + environment.held_out) * self.nodes, environment.features)
        common = np.full((len(own), 1 if share else 0), share**0.5)
        self.of_row = torch.from_numpy(np.hstack([common, (1 - share) ** 0.5 * own])).to(seeds.device, dtype)
        """φ, (N, W)."""
        seed, feature = seeds.reshape(-1, 1, 1), torch.arange(own.shape[1]).reshape(-1, 1)
        arm = torch.arange(environment.arms)
        scale = (1 - share) ** -0.5
        start = environment.logit_std * normal(seed, salt("initial logits"), feature, arm)
        teacher = gumbel(seed, "right arms", feature, arm)
        nothing = start.new_zeros(len(seeds), common.shape[1], environment.arms)
        centred = teacher - teacher.mean(-1, keepdim=True)
        self.weights = torch.cat([nothing, scale * (start + environment.skill * centred)], 1).to(dtype)
        """θ before the first update, (R, W, K)."""
        teacher = torch.cat([nothing, scale * teacher], 1).to(dtype)
        self.right = torch.stack([self._right(*of_run) for of_run in zip(seeds, self.weights, teacher, strict=True)])
        """True for the right arms, bool (R, N, K)."""

    def _right(self, seed: Tensor, weights: Tensor, teacher: Tensor) -> Tensor:
        """Return a run's right arms, bool (N, K), from its first weights and ω, (W, K) both."""
        known = self.environment.predictable
        score = self.of_row @ teacher
        if known < 1:
            row = torch.arange(len(score)).reshape(-1, 1)
            own = gumbel(seed, "unpredictable arms", row, torch.arange(score.shape[-1])).to(score)
            score = known**0.5 * score + (1 - known) ** 0.5 * own
        score = self.environment.right_tilt * torch.log_softmax(self.of_row @ weights, -1) + score
        chosen = score.topk(self.environment.right_arms, -1).indices
        return torch.zeros_like(score, dtype=torch.bool).scatter_(-1, chosen, True)

    def turn(self, rollout: int) -> slice:
        """Return the rows of a rollout's prompts: the training prompts take turns, S at a time."""
        first = rollout * self.environment.states % self.environment.prompts
        return slice(first * self.nodes, (first + self.environment.states) * self.nodes)

    @property
    def unseen(self) -> slice:
        """Rows of the held-out prompts."""
        return slice(self.environment.prompts * self.nodes, None)

    def success(self, rows: slice) -> Tensor:
        """Return the probability that an arm is rewarded, (R, rows, K)."""
        right = self.right[:, rows]
        low, high = self.environment.reward_wrong, self.environment.reward_right
        return torch.full(right.shape, low, dtype=self.of_row.dtype).masked_fill(right, high)

    def solved(self, policy: Policy, rows: slice) -> Tensor:
        """Return the probability that a response to each of the rows' prompts is right, (R, prompts)."""
        right = self.right[:, rows].to(policy.p)
        if self.environment.joint:
            return solved(policy.p, right, self.environment)
        of_row = visits(policy, self.environment) * (policy.p * right).sum(-1)
        return of_row.reshape(len(right), -1, self.nodes).sum(-1)


def logits_of(weights: Tensor, of_row: Tensor | None, rows: slice = slice(None)) -> Tensor:
    """Return logits (R, n, K) from weights (R, W, K) and the rows' features (n, W); None: a row's weights are logits.

    rows: the rows wanted of a table without features.
    """
    if of_row is None:
        return weights[:, rows]
    runs, width, arms = weights.shape
    return (of_row @ weights.transpose(0, 1).reshape(width, -1)).reshape(-1, runs, arms).transpose(0, 1).contiguous()


def in_weights(gradient: Tensor, of_row: Tensor | None, rows: slice, total: int) -> Tensor:
    """Return the gradient in the weights, (R, W, K), of one in the rows' logits, (R, n, K): φᵀ·gradient.

    rows, total: without features, the rows that the gradient covers, and all rows.
    """
    if of_row is not None:
        return logits_of(gradient, of_row.mT)
    if gradient.shape[1] == total:
        return gradient
    first, last, _ = rows.indices(total)
    return torch.nn.functional.pad(gradient, (0, 0, first, total - last))
