"""User-defined classes and functions, named as module:attribute on a command line."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def attribute(kind: str, path: str) -> Any:
    """Return the attribute that `module:attribute` names. The working folder is searched first.

    kind: name of the kind of object, for the message. Raises a one-line ValueError if the import fails.
    """
    module, _, name = path.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{kind} {path!r} cannot be imported: {error}") from None
