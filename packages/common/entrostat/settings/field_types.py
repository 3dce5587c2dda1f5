"""Check of values from YAML, command lines and callers against the annotations of a dataclass.

pydantic checks types and nesting, `complaint` checks ranges; errors are one line.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import cache, partial
from numbers import Integral
from reprlib import repr as shortened
from typing import Annotated, Any, TypeVar, get_type_hints

from .allowed import Allowed, allowed, complaint
from .choosing import unknown

T = TypeVar("T")
WORDS = {
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "missing": "given",
}
"""Words of YAML for types that a value should have, by pydantic's name of the error."""


def check_fields(settings: Any) -> None:
    """Raise ValueError naming a field, at any depth of dataclasses in dataclasses, whose value does not fit."""
    fit_fields(type(settings), settings)


def merge(config: T, changes: Any, where: str = "", strict: bool = True) -> T:
    """Return the dataclass `config` with the nested mapping `changes` laid over it; see `fit_fields`."""
    return _laid_over(config, fit_fields(type(config), changes, where, strict))


def _laid_over(config: Any, values: Mapping[str, Any]) -> Any:
    parts = {key: _laid_over(part, values[key]) for key in values if is_dataclass(part := getattr(config, key))}
    return replace(config, **{**values, **parts})


def fit_fields(cls: type, values: Any, where: str = "", strict: bool = True) -> dict[str, Any]:
    """Return `values` as what the fields of the dataclass `cls` are annotated with; those of a section are nested.

    Lists become tuples and integers floats; text and true are no numbers, but text may be one if not `strict`.
    values: a mapping with some of the fields, or an instance. where: put before names in errors.
    Raises ValueError naming a key that is no field, or whose value does not fit.
    """
    from pydantic import ValidationError

    try:
        fitting: dict[str, Any] = _judge(cls).validate_python(_plain(values), strict=strict)
    except ValidationError as error:
        closest = max(error.errors(), key=lambda fault: len(fault["loc"]))  # one for each type that a union allows
        raise ValueError(_message(cls, closest, where)) from None
    return fitting


@cache
def _judge(cls: type) -> Any:
    """Return the check of dicts that have some of the fields of a dataclass."""
    from pydantic import AfterValidator, BeforeValidator, TypeAdapter, with_config
    from typing_extensions import TypedDict

    def shape(cls: Any) -> Any:
        kinds = {}
        for key, hint in get_type_hints(cls, include_extras=True).items():
            kind, choice = shape(hint) if is_dataclass(hint) else hint, allowed(cls, key)
            validator = BeforeValidator if isinstance(choice, tuple) else AfterValidator  # a range is one of numbers
            kinds[key] = Annotated[kind, BeforeValidator(_plain), validator(partial(_within, choice))]
        return with_config({"extra": "forbid"})(TypedDict(cls.__name__, kinds, total=False))  # type: ignore[operator]

    return TypeAdapter(shape(cls))


def _within(choice: Allowed, value: Any) -> Any:
    """Return the value. Raises ValueError if it is not allowed."""
    if wrong := complaint(value, choice):
        raise ValueError(wrong)
    return value


def _plain(value: Any) -> Any:
    """Return dataclasses and mappings as dicts, lists as tuples and integers of NumPy as Python's."""
    if is_dataclass(value) or isinstance(value, Mapping):
        return dict(value if isinstance(value, Mapping) else vars(value))
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _message(cls: Any, fault: Mapping[str, Any], where: str) -> str:
    """Return in one line what pydantic found, with the name of the field and the value that it has."""
    kind, name = cls, where
    for part in fault["loc"]:
        if is_dataclass(kind):
            kind, within, name = get_type_hints(kind).get(part), kind, f"{name}{'.' * (kind is not cls)}{part}"
        elif isinstance(part, int):
            name += f"[{part}]"
    if fault["type"] == "extra_forbidden":
        meant = [key for key in keys(cls) if key.rpartition(".")[2] == part]
        if meant:
            return f"unknown key {name}: did you mean {' or '.join(meant)}?"
        return unknown("key", part, sorted(get_type_hints(within)), word=name)
    said = fault["msg"].removeprefix("Value error, ").replace("Input should", "must").replace("Tuple should", "must")
    said = f"must be {WORDS[fault['type']]}" if fault["type"] in WORDS else said.partition(", unable to parse")[0]
    return f"{name or 'configuration'} {said}; got {shortened(fault['input'])}"


def keys(cls: Any, where: str = "") -> list[str]:
    """Return all keys of a dataclass, those of its sections with dots."""
    found = []
    for key, kind in get_type_hints(cls).items():
        found += keys(kind, f"{where}{key}.") if is_dataclass(kind) else [where + key]
    return found
