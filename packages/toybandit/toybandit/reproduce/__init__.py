"""Figures of the papers, reproduced in the bandit: one function per figure. Modules load when a name is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry import FIGURES, FULL, OUT_OF_REACH, QUICK, Effort, Measurement, Reproduction, figure, out_of_reach

MODULES = (
    "entropy_mechanism_law",
    "entropy_mechanism_dynamics",
    "entropy_mechanism_control",
    "revisiting_entropy",
    "revisiting_covariance",
    "steer_surface",
    "steer_quadrants",
    "steer_clipping",
    "steer",
    "steer_properties",
    "steer_estimators",
    "opefo",
    "entropic",
    "entropic_methods",
    "entropic_late",
)
"""Modules of the figures, in the order of the list."""

__all__ = [
    "FIGURES",
    "FULL",
    "OUT_OF_REACH",
    "QUICK",
    "Effort",
    "Measurement",
    "Reproduction",
    "figure",
    "out_of_reach",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in MODULES:
        import_module(f".{module}", __name__)
    return getattr(import_module(".registry", __name__), name)
