"""Entropy controllers, one idea per file. A new controller needs one file in this folder and nothing else."""

from ..registry import import_all, named_class

import_all(__name__, __path__)


def __getattr__(name: str) -> type:
    """Return a controller class by its own name, such as Steer."""
    return named_class(__name__, name)
