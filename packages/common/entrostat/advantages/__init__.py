"""Advantages of a group of responses to one prompt.

registry.py     advantages by name, with their hyperparameters and what they need
inputs.py       checks of what they are told
groups.py       relative to the group, or of a verdict alone
pass_at_k.py    those that aim at the best of several responses
process.py      one number per token, by an implicit process reward or a baseline of its own
running.py      relative to a running mean over earlier responses of the same source
"""

from .groups import dr_grpo, gdpo, grpo, nsr, opo, psr, qae, reinforce_pp, remax, rloo, w_reinforce
from .pass_at_k import max_rl, pass_at_k
from .process import optimal_token, prime
from .registry import (
    GROUP,
    REGISTRY,
    Advantage,
    AdvantageEntry,
    Groups,
    advantage_needs,
    advantage_settings,
    advantage_uses,
    get_advantage,
    imported,
    register,
)
from .running import rae, rae_baseline

__all__ = [
    "GROUP",
    "REGISTRY",
    "Advantage",
    "AdvantageEntry",
    "Groups",
    "advantage_needs",
    "advantage_settings",
    "advantage_uses",
    "dr_grpo",
    "gdpo",
    "get_advantage",
    "grpo",
    "imported",
    "max_rl",
    "nsr",
    "opo",
    "optimal_token",
    "pass_at_k",
    "prime",
    "psr",
    "qae",
    "rae",
    "rae_baseline",
    "register",
    "reinforce_pp",
    "remax",
    "rloo",
    "w_reinforce",
]
