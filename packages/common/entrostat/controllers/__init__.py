"""Every entropy controller, one idea a file. A file in this folder is all that a new controller needs."""

from ..registry import import_all, named_class

import_all(__name__, __path__)


def __getattr__(name: str) -> type:
    """Return a controller class by its own name, such as Steer."""
    return named_class(__name__, name)
