"""entrostat: entropy control for RLVR.

    tokens = Tokens(logp=..., old_logp=..., advantage=...)      one optimizer mini-batch, (..., N)
    controller = make("clip_higher+steer", lambda_min=0.7)
    plan = controller.plan(tokens, reduce=LocalReduce())        looks at the whole mini-batch, no gradient
    plan.loss(logp, entropy, index).backward()                  any slice of it, at any time
    controller.observe(StepStats(entropy=...))                  once a rollout step

Entropies are in nats throughout.
"""

from . import advantages, controllers, diagnostics, entropy_change, laws, pi_control
from .advantages import get_advantage
from .by_name import make
from .chain import Chain, chain
from .composition import CompositionWarning
from .controller import Controller, StepStats
from .describe import describe
from .diagnostics import diagnose
from .plan import Plan
from .policy_stats import PolicyStats, policy_stats
from .reduce import DistReduce, LocalReduce
from .registry import list_controllers
from .tokens import Tokens

__all__ = [
    "Chain",
    "CompositionWarning",
    "Controller",
    "DistReduce",
    "LocalReduce",
    "Plan",
    "PolicyStats",
    "StepStats",
    "Tokens",
    "advantages",
    "chain",
    "controllers",
    "describe",
    "diagnose",
    "diagnostics",
    "entropy_change",
    "get_advantage",
    "laws",
    "list_controllers",
    "make",
    "pi_control",
    "policy_stats",
]
