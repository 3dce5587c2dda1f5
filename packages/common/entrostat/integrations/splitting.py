"""Rules whose plan of a mini-batch is not the plans of its parts: they compare tokens, or draw a number of them."""

import copy
import warnings
from dataclasses import replace

import torch
from torch import Tensor

from ..chaining import Chain
from ..plan import Plan
from ..reads import SEEDS, trial_tokens
from ..tokens import Tokens

TOLERANCE = 1e-9
"""Largest relative difference that rounding causes in float64."""


def compares_tokens(controller: Chain) -> bool:
    """Return True if the chain, in the state it is in, plans a mini-batch otherwise than its responses one by one.

    A copy plans a few tokens in float64, whole and split. True also for a chain that reads which responses belong to a
    group. The aggregation, which divides by the number of tokens, does not count.
    """
    if "group_id" in controller.needs:
        return True
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        return any(_differs(copy.deepcopy(controller), trial_tokens(seed)) for seed in SEEDS)


def _differs(controller: Chain, tokens: Tokens) -> bool:
    whole = _slopes(controller.plan(tokens), tokens)
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
