"""Configurations as nested dictionaries and YAML: written out, read, laid over one another. No torch."""

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
KINDS = {int: "integer", float: "number", str: "text", bool: "true or false", dict: "mapping", NoneType: "null"}
"""What types are called in YAML."""


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
    values = {}
    for key, value in changes.items():
        if key not in hints:
            raise ValueError(f"unknown configuration key {where}{key}; choose from {', '.join(sorted(hints))}")
        if dataclasses.is_dataclass(hints[key]):
            values[key] = merge(getattr(config, key), value, f"{where}{key}.")
            continue
        try:
            values[key] = fit(value, hints[key])
        except ValueError:
            raise ValueError(f"{where}{key} must be of type {_words(hints[key])}; got {value!r}") from None
    return replace(config, **values)  # type: ignore[type-var]


def fit(value: Any, hint: Any) -> Any:
    """A value of YAML as what a type hint asks for; ValueError when it is something else.

    Lists become tuples; integers, and 1e-4, which YAML reads as text, become floats.
    """
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        for kind in inner:
            with suppress(ValueError):
                return fit(value, kind)
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        kinds = inner[:1] * len(value) if inner[-1] is ... else inner
        return tuple(fit(item, kind) for item, kind in zip(value, kinds, strict=True))
    if hint is float and isinstance(value, int | str) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, get_origin(hint) or hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError
    return value


def _words(hint: Any) -> str:
    """A type hint as one would write it in YAML."""
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        return " or ".join(map(_words, inner))
    if get_origin(hint) is tuple:
        return f"[{', '.join('...' if kind is ... else _words(kind) for kind in inner)}]"
    return KINDS[get_origin(hint) or hint]


def load_yaml(path: str | Path) -> Any:
    """Content of a YAML file; ValueError when it is missing or is not YAML."""
    import yaml

    if not Path(path).is_file():
        raise ValueError(f"configuration file {path} does not exist")
    try:
        return yaml.safe_load(Path(path).read_text()) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"configuration file {path} is not YAML: {str(error).splitlines()[0]}") from None
