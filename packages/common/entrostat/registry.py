"""Controllers by name: `make("clip_higher+steer", lambda_min=0.7)`."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .chain import Chain
    from .controller import Controller

REGISTRY: dict[str, "type[Controller]"] = {}
ALIASES = {"grpo": "ppo"}
PRESETS = ("paper", "released")
C = TypeVar("C", bound="type[Controller]")


def register(name: str) -> Callable[[C], C]:
    """Class decorator: make the controller available to `make` as `name`."""

    def add(cls: C) -> C:
        if name in REGISTRY:
            raise ValueError(f"controller {name!r} is registered twice")
        cls.name = name
        REGISTRY[name] = cls
        return cls

    return add


def list_controllers() -> list[str]:
    """Every name that `make` takes, sorted."""
    return sorted((*REGISTRY, *ALIASES))


def hyperparameters(cls: "type[Controller]") -> list[str]:
    """Names of the settings of a controller class."""
    return [field.name for field in fields(cls)]  # type: ignore[arg-type]


def make(spec: str, preset: str = "paper", **settings: Any) -> "Chain":
    """Build a chain from names joined by `+`.

    preset: "paper" (values as published) or "released" (as in the authors' code).
    settings: a hyperparameter goes to the one part that has it; `**{"steer.lambda_min": 0.7}` names the part.
    Raises ValueError on an unknown name or preset, and on a hyperparameter that no part or several parts have.
    """
    from .chain import chain
    from .surrogates import SurrogateController

    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; choose from {', '.join(PRESETS)}")
    names = [ALIASES.get(name.strip(), name.strip()) for name in spec.split("+")]
    for name in names:
        if name not in REGISTRY:
            raise ValueError(f"unknown controller {name!r}; choose from {', '.join(list_controllers())}")
    classes = [REGISTRY[name] for name in names]
    chosen: list[dict[str, Any]] = [dict(cls.presets.get(preset, {})) for cls in classes]
    implied = not any(issubclass(cls, SurrogateController) for cls in classes)
    if implied:
        name, asked = implied_surrogate(classes)
        names.append(name)
        classes.append(REGISTRY[name])
        chosen.append({**REGISTRY[name].presets.get(preset, {}), **asked})
    for key, value in settings.items():
        owner = _owner(key, names, classes)
        chosen[owner][key.rpartition(".")[2]] = value
        implied = implied and owner != len(names) - 1  # a setting makes the surrogate a choice
    built = chain(*(cls(**values) for cls, values in zip(classes, chosen, strict=True)))
    built.implied = implied
    return built


def implied_surrogate(classes: "Sequence[type[Controller]]") -> tuple[str, dict[str, Any]]:
    """Name and settings of the surrogate that controllers ask for when a chain names none; PPO by default.

    Raises ValueError when they ask for different ones.
    """
    default: tuple[str, dict[str, Any]] = ("ppo", {})
    asked = {cls.name: cls.implied_surrogate for cls in classes if cls.implied_surrogate != default}
    choices = list(asked.values()) or [default]
    if any(choice != choices[0] for choice in choices):
        raise ValueError(f"{' and '.join(map(repr, asked))} imply different surrogates: name one in the chain")
    return choices[0]


def _owner(key: str, names: list[str], classes: "list[type[Controller]]") -> int:
    """Which part the hyperparameter `key` (or `part.key`) belongs to."""
    part, _, hyperparameter = key.rpartition(".")
    owners = [i for i, cls in enumerate(classes) if hyperparameter in hyperparameters(cls) and part in ("", names[i])]
    if not owners:
        known = "; ".join(f"{n} has {', '.join(hyperparameters(c))}" for n, c in zip(names, classes, strict=True))
        raise ValueError(f"no part of {'+'.join(names)!r} has the hyperparameter {key!r}: {known}")
    if len(owners) > 1:
        parts = " and ".join(names[i] for i in owners)
        raise ValueError(f"hyperparameter {key!r} is ambiguous: {parts} have it; write {names[owners[0]]}.{key}")
    return owners[0]
