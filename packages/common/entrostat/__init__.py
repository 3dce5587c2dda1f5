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

from . import moved

if TYPE_CHECKING:
    from . import advantages, controllers, diagnostics, entropy_change
    from .about.description import describe
    from .advantages import get_advantage
    from .by_name import list_controllers, make
    from .chaining import Chain, chain
    from .controller import Context, Controller, StepStats
    from .diagnostics import diagnose
    from .logs import laws
    from .numbers import pi_control
    from .numbers.per_run import column, reading
    from .numbers.policy_moments import PolicyStats, policy_stats
    from .numbers.reduce import DistReduce, LocalReduce
    from .plan import Plan
    from .sample_watch import CompositionWarning
    from .settings.hyperparameters import NotNegative, Number, Positive, Share
    from .settings.schedules import Schedule, cosine, linear, piecewise
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
    "CompositionWarning": "sample_watch",
    "Context": "controller",
    "Controller": "controller",
    "DistReduce": "numbers.reduce",
    "LocalReduce": "numbers.reduce",
    "NotNegative": "settings.hyperparameters",
    "Number": "settings.hyperparameters",
    "Plan": "plan",
    "PolicyStats": "numbers.policy_moments",
    "Positive": "settings.hyperparameters",
    "Schedule": "settings.schedules",
    "Share": "settings.hyperparameters",
    "StepStats": "controller",
    "Tokens": "tokens",
    "chain": "chaining",
    "column": "numbers.per_run",
    "cosine": "settings.schedules",
    "describe": "about.description",
    "diagnose": "diagnostics",
    "get_advantage": "advantages",
    "linear": "settings.schedules",
    "list_controllers": "by_name",
    "make": "by_name",
    "piecewise": "settings.schedules",
    "policy_stats": "numbers.policy_moments",
    "reading": "numbers.per_run",
}
"""Module of each name above that is not itself a module."""
_ROOMS = {"laws": "logs", "pi_control": "numbers"}
"""Package of each module above that is in one."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{_ROOMS[name]}.{name}", __name__)
    if find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


moved.understand()
