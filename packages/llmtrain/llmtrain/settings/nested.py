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


def keys(kind: Any, where: str = "") -> list[str]:
    """All keys of a configuration, those of its sections with dots."""
    hints, found = get_type_hints(kind), []
    for field in dataclasses.fields(kind):
        inner = hints[field.name]
        found += keys(inner, f"{where}{field.name}.") if dataclasses.is_dataclass(inner) else [where + field.name]
    return found


def merge(config: T, changes: Mapping[str, Any], where: str = "", root: type | None = None) -> T:
    """`config` with the nested mapping `changes` laid over it.

    root: what `config` is a section of.
    Raises ValueError naming a key that the configuration does not have, or whose value is not of its type.
    """
    root = root or type(config)
    if not isinstance(changes, Mapping):
        raise ValueError(f"{where.rstrip('.') or 'configuration'} must be a mapping of keys; got {changes!r}")
    hints = get_type_hints(type(config))
    for unknown in (key for key in changes if key not in hints):
        if meant := [key for key in keys(root) if key.rpartition(".")[2] == unknown]:
            raise ValueError(f"unknown key {where}{unknown}: did you mean {' or '.join(meant)}?")
    parts = {key for key in changes if dataclasses.is_dataclass(hints.get(key))}
    values = fit_fields(type(config), {key: value for key, value in changes.items() if key not in parts}, where)
    for key in parts:
        values[key] = merge(getattr(config, key), changes[key], f"{where}{key}.", root)
    return replace(config, **values)  # type: ignore[type-var]
