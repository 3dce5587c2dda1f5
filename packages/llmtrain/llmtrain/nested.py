"""Configurations as nested dictionaries: written out, and laid over one another. No torch."""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, get_type_hints

from entrostat.field_types import fit_fields

T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:
    """Plain nested dictionary of a configuration, as written to config.yaml."""
    return _plain(dataclasses.asdict(config))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def merge(config: T, changes: Mapping[str, Any], where: str = "") -> T:
    """`config` with the nested mapping `changes` laid over it.

    Raises ValueError naming a key that the configuration does not have, or whose value is not of its type.
    """
    if not isinstance(changes, Mapping):
        raise ValueError(f"{where.rstrip('.') or 'configuration'} must be a mapping of keys; got {changes!r}")
    hints = get_type_hints(type(config))
    parts = {key for key in changes if dataclasses.is_dataclass(hints.get(key))}
    values = fit_fields(type(config), {key: value for key, value in changes.items() if key not in parts}, where)
    for key in parts:
        values[key] = merge(getattr(config, key), changes[key], f"{where}{key}.")
    return replace(config, **values)  # type: ignore[type-var]
