"""Every controller class by its name. `entrostat.make` builds from them."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .controller import Controller

REGISTRY: dict[str, "type[Controller]"] = {}
ALIASES = {"grpo": "ppo"}
PRESETS = ("paper", "released")
C = TypeVar("C", bound="type[Controller]")


def register(name: str) -> Callable[[C], C]:
    """Class decorator: make the controller available to `make` as `name`."""

    def add(cls: C) -> C:
        if name in REGISTRY:
            raise ValueError(
                f"controller {name!r} is registered twice, in {REGISTRY[name].__module__} and in {cls.__module__}"
            )
        cls.name = name
        REGISTRY[name] = cls
        return cls

    return add


def hyperparameters(cls: "type[Controller]") -> list[str]:
    """Names of the settings of a controller class."""
    return [field.name for field in fields(cls)]  # type: ignore[arg-type]


def implied_surrogate(classes: "Sequence[type[Controller]]") -> tuple[str, dict[str, Any]]:
    """Name and settings of the surrogate that controllers ask for when a chain names none; PPO by default.

    Raises ValueError when they ask for different ones.
    """
    asked = {cls.name: cls.implied_surrogate for cls in classes if cls.implied_surrogate is not None}
    choices = list(asked.values()) or [("ppo", {})]
    if any(choice != choices[0] for choice in choices):
        raise ValueError(f"{' and '.join(map(repr, asked))} imply different surrogates: name one in the chain")
    return choices[0]
