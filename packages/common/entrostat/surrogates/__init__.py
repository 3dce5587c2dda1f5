"""Surrogates: the elementwise loss of a token under its plan. A new one needs one file in this folder, nothing else."""

from ..registry import import_all, named_class
from .base import ClippedRatio, SurrogateController

__all__ = ["ClippedRatio", "SurrogateController"]

import_all(__name__, __path__)


def __getattr__(name: str) -> type:
    """Return a surrogate class by its own name, such as GSPO."""
    return named_class(__name__, name)
