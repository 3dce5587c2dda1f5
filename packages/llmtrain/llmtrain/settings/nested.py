"""Configurations as nested dictionaries. No torch."""

from typing import Any


def to_dict(config: Any) -> dict[str, Any]:
    """Return a configuration as plain nested values, as written to config.yaml."""
    from pydantic_core import to_jsonable_python

    return dict(to_jsonable_python(config))
