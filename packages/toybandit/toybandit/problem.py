"""The bandit of each run: initial logits and the reward probability of every arm."""

from typing import NamedTuple

import torch
from torch import Tensor

from entrostat.draws import normal, salt, uniform

from .environments import Environment


class Problem(NamedTuple):
    """What a run starts from; runs, S states, K arms."""

    logits: Tensor
    """Initial logits, (runs, S, K)."""
    success: Tensor
    """Probability that an arm is rewarded with 1, (runs, S, K)."""


def draw_problem(environment: Environment, seeds: Tensor, dtype: torch.dtype) -> Problem:
    """The problems of the runs with these seeds, int64 (runs,). Each depends on its own seed alone."""
    seed = seeds.reshape(-1, 1, 1)
    state = torch.arange(environment.states).reshape(-1, 1)
    arm = torch.arange(environment.arms)
    logits = environment.logit_std * normal(seed, salt("initial logits"), state, arm)
    gumbel = -(-uniform(seed, salt("right arms"), state, arm).log()).log()
    score = environment.right_tilt * torch.log_softmax(logits, -1) + gumbel
    chosen = score.topk(environment.right_arms, -1).indices
    right = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, chosen, True)
    success = torch.full_like(logits, environment.reward_wrong).masked_fill(right, environment.reward_right)
    return Problem(logits=(logits + environment.right_logit * right).to(dtype), success=success.to(dtype))


def coupling_kernel(environment: Environment, dtype: torch.dtype) -> Tensor | None:
    """State-similarity kernel (S, S) that logit updates are multiplied by: 1 on the diagonal; None when uncoupled."""
    if environment.coupling == 0:
        return None
    kernel = torch.full((environment.states, environment.states), environment.coupling, dtype=dtype)
    return kernel.fill_diagonal_(1.0)
