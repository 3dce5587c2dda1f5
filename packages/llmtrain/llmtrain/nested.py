"""Configurations as nested dictionaries and YAML: written out, read, laid over one another. No torch."""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

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

    Raises ValueError naming a key that the configuration does not have.
    """
    if not isinstance(changes, Mapping):
        raise ValueError(f"{where.rstrip('.') or 'configuration'} must be a mapping of keys; got {changes!r}")
    known = {f.name for f in dataclasses.fields(config)}  # type: ignore[arg-type]
    values = {}
    for key, value in changes.items():
        if key not in known:
            raise ValueError(f"unknown configuration key {where}{key}; choose from {', '.join(sorted(known))}")
        current = getattr(config, key)
        if dataclasses.is_dataclass(current):
            value = merge(current, value, f"{where}{key}.")
        elif isinstance(current, tuple):
            value = tuple(value)
        elif isinstance(current, float) and isinstance(value, int | str) and not isinstance(value, bool):
            value = _number(value, f"{where}{key}")  # YAML reads 1e-4 as a string
        elif current is not None and not isinstance(value, type(current)):
            raise ValueError(f"{where}{key} must be of type {type(current).__name__}; got {value!r}")
        values[key] = value
    return replace(config, **values)  # type: ignore[type-var]


def _number(value: Any, key: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{key} must be a number; got {value!r}") from None


def load_yaml(path: str | Path) -> Any:
    """Content of a YAML file; ValueError when it is missing or is not YAML."""
    import yaml

    if not Path(path).is_file():
        raise ValueError(f"configuration file {path} does not exist")
    try:
        return yaml.safe_load(Path(path).read_text()) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"configuration file {path} is not YAML: {str(error).splitlines()[0]}") from None
