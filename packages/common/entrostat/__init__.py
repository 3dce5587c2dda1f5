"""entrostat: entropy control for RLVR.

    tokens = Tokens(logp=..., old_logp=..., advantage=...)      one optimizer mini-batch, (..., N)
    controller = make("clip_higher+steer", lambda_min=0.7)
    controller.observe(StepStats(entropy=...))                  once per rollout step
    plan = controller.plan(tokens, reduce=LocalReduce())        reads the whole mini-batch, no gradient
    plan.loss(logp, entropy, index).backward()                  any slice of it, at any time

Entropies are in nats throughout. The names below are imported on first use, and torch with them.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import advantages, controllers, diagnostics, entropy_change, laws, pi_control
    from .advantages import get_advantage
    from .by_name import list_controllers, make
    from .chaining import Chain, chain
    from .composition import CompositionWarning
    from .controller import Context, Controller, StepStats, column, reading
    from .description import describe
    from .diagnostics import diagnose
    from .hyperparameters import NotNegative, Number, Positive, Share
    from .plan import Plan
    from .policy_moments import PolicyStats, policy_stats
    from .reduce import DistReduce, LocalReduce
    from .schedules import Schedule, cosine, linear, piecewise
    from .tokens import Tokens

__version__ = "0.2.0"

__all__ = [
    "Chain",
    "CompositionWarning",
    "Context",
    "Controller",
    "DistReduce",
    "LocalReduce",
    "NotNegative",
    "Number",
    "Plan",
    "PolicyStats",
    "Positive",
    "Schedule",
    "Share",
    "StepStats",
    "Tokens",
    "advantages",
    "chain",
    "column",
    "controllers",
    "cosine",
    "describe",
    "diagnose",
    "diagnostics",
    "entropy_change",
    "get_advantage",
    "laws",
    "linear",
    "list_controllers",
    "make",
    "pi_control",
    "piecewise",
    "policy_stats",
    "reading",
]

_HOME = {
    "Chain": "chaining",
    "CompositionWarning": "composition",
    "Context": "controller",
    "Controller": "controller",
    "DistReduce": "reduce",
    "LocalReduce": "reduce",
    "NotNegative": "hyperparameters",
    "Number": "hyperparameters",
    "Plan": "plan",
    "PolicyStats": "policy_moments",
    "Positive": "hyperparameters",
    "Schedule": "schedules",
    "Share": "hyperparameters",
    "StepStats": "controller",
    "Tokens": "tokens",
    "chain": "chaining",
    "column": "controller",
    "cosine": "schedules",
    "describe": "description",
    "diagnose": "diagnostics",
    "get_advantage": "advantages",
    "linear": "schedules",
    "list_controllers": "by_name",
    "make": "by_name",
    "piecewise": "schedules",
    "policy_stats": "policy_moments",
    "reading": "controller",
}
"""Module of each name above that is not itself a module."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
