"""Rules whose plan of a mini-batch is not the plans of its parts: they compare tokens, or draw a number of them."""

import copy
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..chaining import Chain
from ..numbers.reduce import LocalReduce
from ..plan import Plan
from ..reads import SEEDS, trial_tokens
from ..tokens import Tokens

TOLERANCE = 1e-9
"""Largest relative difference that rounding causes in float64."""


def compares_tokens(controller: Chain) -> bool:
    """Return True if the chain, in the state it is in, plans a mini-batch otherwise than its responses one by one.

    A copy plans a few tokens in float64, whole and split. True also for a chain that asks for a statistic of the
    mini-batch, since tokens of the trial may not meet its thresholds, and for one that reads which responses belong to
    a group. The aggregation, which divides by the number of tokens, does not count.
    """
    if "group_id" in controller.needs:
        return True
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        return any(_differs(copy.deepcopy(controller), trial_tokens(seed)) for seed in SEEDS)


class Watch(LocalReduce):
    """Local reduction that notes if a rule asks for a statistic of the mini-batch, other than the counts for a log."""

    asked = False

    def _across(self, x: Tensor, op: Any) -> Tensor:
        self.asked |= x.is_floating_point()
        return x

    def kth_largest(self, score: Tensor, k: Tensor) -> Tensor:
        self.asked = True
        return super().kth_largest(score, k)


def _differs(controller: Chain, tokens: Tokens) -> bool:
    watch = Watch()
    whole = _slopes(controller.plan(tokens, watch), tokens)
    if watch.asked:
        return True
    for response in tokens.get("seq_id").unique():
        index = (tokens.get("seq_id") == response).nonzero()[:, 0]
        held = {name: value for name, value in vars(tokens).items() if value is not None}
        part = replace(tokens, **{name: value[..., index] for name, value in held.items()})
        if not torch.allclose(_slopes(controller.plan(part), part), whole[:, index], TOLERANCE, TOLERANCE):
            return True
    return False


def _slopes(plan: Plan, tokens: Tokens) -> Tensor:
    """Return the derivatives of the tokens' losses in log π, entropy and truncated entropy, (3, N), unscaled."""
    logp, entropy = plan.coefficients(tokens.get("logp"), tokens.get("entropy"))
    found = (logp, entropy, plan.truncated_coefficient())
    return torch.stack([torch.zeros_like(logp) if x is None else x for x in found]) / plan.scale
