"""The bandit of each run: initial logits and the reward probability of every arm."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from entrostat.numbers.draws import normal, salt, uniform

from .environments import Environment, Table


class Problem(NamedTuple):
    """Start of a run: R runs, K arms, a row for each state."""

    logits: Tensor
    """Initial logits, (R, rows, K)."""
    success: Tensor
    """Probability that an arm is rewarded with 1, without label noise, (R, rows, K)."""


def draw_problem(environment: Environment, seeds: Tensor, dtype: torch.dtype) -> Problem:
    """Return the problems of the runs with these seeds, int64 (R,). Each depends on its own seed alone."""
    seed = seeds.reshape(-1, 1, 1)
    state = torch.arange(environment.rows).reshape(-1, 1)
    arm = torch.arange(environment.arms)
    logits = environment.logit_std * normal(seed, salt("initial logits"), state, arm)
    if environment.logits is not None:
        logits = logits + rows_of(environment.logits).to(logits)
    score = environment.right_tilt * torch.log_softmax(logits, -1) + gumbel(seed, "right arms", state, arm)
    chosen = score.topk(environment.right_arms, -1).indices
    right = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, chosen, True)
    if environment.success is not None:
        success = rows_of(environment.success).to(logits).expand(logits.shape)
    elif environment.success_beta is not None:
        success = draw_beta(environment.success_beta, seeds, logits)
    else:
        success = torch.full_like(logits, environment.reward_wrong).masked_fill(right, environment.reward_right)
    return Problem(logits=(logits + environment.right_logit * right).to(dtype), success=success.to(dtype))


def gumbel(seed: Tensor, purpose: str, row: Tensor, arm: Tensor) -> Tensor:
    """Return standard Gumbel numbers, keyed by seed, purpose, row and arm."""
    return -(-uniform(seed, salt(purpose), row, arm).log()).log()


def rows_of(table: Table) -> Tensor:
    """Return a table with one row or all rows as a float64 tensor."""
    return torch.tensor(table, dtype=torch.float64)


def with_label_noise(success: Tensor, noise: float) -> Tensor:
    """Return the probability of a reward of 1 if the verifier flips rewards with probability e: p·(1 − 2e) + e."""
    return success if noise == 0 else success * (1 - 2 * noise) + noise


def draw_beta(parameters: tuple[float, float], seeds: Tensor, like: Tensor) -> Tensor:
    """Draw Beta(a, b) for each arm, shaped like `like` (R, rows, K); the draws of a run depend on its seed alone."""
    draws = [
        np.random.default_rng((salt("success"), seed)).beta(*parameters, like.shape[1:]) for seed in seeds.tolist()
    ]
    return torch.as_tensor(np.stack(draws)).to(like)


def coupling_kernel(environment: Environment, dtype: torch.dtype) -> Tensor | None:
    """Return the state-similarity kernel (rows, rows) that multiplies logit updates; None if states are uncoupled.

    It is 1 on the diagonal and `coupling` elsewhere, or the environment's own `kernel`.
    """
    if environment.kernel is not None:
        return rows_of(environment.kernel).to(dtype)
    if environment.coupling == 0:
        return None
    kernel = torch.full((environment.rows, environment.rows), environment.coupling, dtype=dtype)
    return kernel.fill_diagonal_(1.0)
