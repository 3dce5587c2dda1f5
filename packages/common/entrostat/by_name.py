"""Controllers by name: `make("clip_higher+steer", lambda_min=0.7)`."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

from torch import Tensor

from . import controllers, surrogates  # noqa: F401 (their classes are registered when they are imported)
from .chaining import Chain, chain
from .controller import Controller
from .registry import ALIASES, GROUPS, PRESETS, REGISTRY, hyperparameters, implied_surrogate, imported
from .settings.choosing import near, unknown
from .settings.importing import plug_ins
from .settings.schedules import is_schedule
from .surrogates import SurrogateController

KINDS = {int: "a number", float: "a number", bool: "true or false", str: "a name"}
"""Kind of value in words, by the type of a hyperparameter's default."""


def list_controllers() -> list[str]:
    """Return every name that `make` takes, sorted: of built-in controllers and of plug-ins, which are not imported."""
    return sorted({*REGISTRY, *ALIASES, *(entry.name for entry in plug_ins(*GROUPS))})


def make(spec: str, preset: str = "paper", **settings: Any) -> Chain:
    """Build a chain from names joined by `+`; a controller elsewhere is `module:Class`, or a name of a plug-in.

    preset: "paper" (values as published) or "released" (as in the authors' code).
    settings: hyperparameters; each goes to the one part that has it, or to a named part: `**{"steer.lambda_min": 0.7}`.
    Raises ValueError on an unknown name or preset, and on a hyperparameter that no part or several parts have, that is
    set twice, or whose value has the wrong type.
    """
    if not isinstance(spec, str):
        raise TypeError(
            f"make takes names joined by +, such as 'clip_higher+steer', not {spec!r}; chain takes controllers"
        )
    if preset not in PRESETS:
        raise ValueError(unknown("preset", preset, PRESETS))
    names = names_of(spec)
    classes = [REGISTRY[name] for name in names]
    chosen: list[dict[str, Any]] = [dict(cls.presets.get(preset, {})) for cls in classes]
    given: dict[tuple[int, str], str] = {}
    implied = not any(issubclass(cls, SurrogateController) for cls in classes)
    if implied:
        name, asked = implied_surrogate(classes, preset)
        names.append(name)
        classes.append(REGISTRY[name])
        chosen.append({**REGISTRY[name].presets.get(preset, {}), **asked})
    for key, value in settings.items():
        owner = _owner(key, names, classes)
        hyperparameter = key.rpartition(".")[2]
        _check_kind(names[owner], classes[owner], hyperparameter, value)
        if (other := given.setdefault((owner, hyperparameter), key)) != key:
            raise ValueError(f"{hyperparameter} of {names[owner]} is set twice, as {other} and as {key}: leave one out")
        chosen[owner][hyperparameter] = value
        implied = implied and owner != len(names) - 1  # a surrogate with a setting counts as named
    built = chain(*(cls(**values) for cls, values in zip(classes, chosen, strict=True)))
    built.implied = implied
    return built


def names_of(spec: str) -> list[str]:
    """Return the names that `spec` joins by +, aliases resolved (grpo is ppo), `module:Class` and plug-ins imported.

    Raises ValueError on an unknown name.
    """
    words = [ALIASES.get(word.strip(), word.strip()) for word in spec.split("+")]
    return [word if word in REGISTRY else imported(word) for word in words]


def has_target(spec: str) -> bool:
    """Return True if a controller of the chain `spec` has a target entropy. Raises ValueError on an unknown name."""
    return any("target" in hyperparameters(REGISTRY[name]) for name in names_of(spec))


def with_target(spec: str, settings: Mapping[str, Any], target: float | str) -> dict[str, Any]:
    """Return the hyperparameters of `spec` with a target that was given apart from them.

    Raises ValueError if no controller takes it, if the hyperparameters have one already, and on an unknown name.
    """
    if not has_target(spec):
        able = ", ".join(sorted(filter(has_target, REGISTRY)))
        raise ValueError(f"controller {spec!r} has no target; those with one are {able}")
    if "target" in settings:
        raise ValueError("the target is given twice: as target and in controller_args")
    return {**settings, "target": target}


def _check_kind(part: str, cls: type[Controller], hyperparameter: str, value: Any) -> None:
    kind = type(next(field.default for field in fields(cls) if field.name == hyperparameter))  # type: ignore[arg-type]
    number = (isinstance(value, Real | Tensor) and not isinstance(value, bool)) or is_schedule(value)
    if kind in KINDS and not (number if kind in (int, float) else isinstance(value, kind)):
        raise ValueError(f"{part}: {hyperparameter} must be {KINDS[kind]}, not {value!r}")


def _owner(key: str, names: list[str], classes: list[type[Controller]]) -> int:
    """Return the index of the part that has the hyperparameter `key` (or `part.key`)."""
    part, named, hyperparameter = key.rpartition(".")
    having = [i for i, cls in enumerate(classes) if hyperparameter in hyperparameters(cls)]
    owners = [i for i in having if not named or part == names[i]]
    if not owners:
        close = near(hyperparameter, [known for cls in classes for known in hyperparameters(cls)])
        listed = (f"{name} has {', '.join(hyperparameters(cls))}" for name, cls in zip(names, classes, strict=True))
        told = f"did you mean {' or '.join(close)}?" if close else "; ".join(listed)
        raise ValueError(f"no part of {'+'.join(names)!r} has the hyperparameter {key!r}: {told}")
    if len(owners) > 1:
        parts = " and ".join(names[i] for i in owners)
        raise ValueError(f"hyperparameter {key!r} is ambiguous: {parts} have it; write {names[owners[0]]}.{key}")
    return owners[0]
