"""Every controller class by its name. `entrostat.make` builds from them."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeVar

from .settings.importing import is_made_again, outside

if TYPE_CHECKING:
    from .controller import Controller

REGISTRY: dict[str, "type[Controller]"] = {}
ALIASES = {"grpo": "ppo"}
PRESETS = ("paper", "released")
GROUPS = ("entrostat.controllers", "entrostat.surrogates")
"""Groups of entry points that declare controllers."""
C = TypeVar("C", bound="type[Controller]")


def register(name: str) -> Callable[[C], C]:
    """Class decorator: make the controller available to `make` as `name`."""

    def add(cls: C) -> C:
        if name in REGISTRY and not is_made_again(REGISTRY[name], cls):
            raise ValueError(
                f"controller {name!r} is registered twice, in {REGISTRY[name].__module__} and in {cls.__module__}"
            )
        cls.name = name
        REGISTRY[name] = cls
        return cls

    return add


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that their classes are registered."""
    for found in iter_modules(path):
        import_module(f"{package}.{found.name}")


def named_class(package: str, name: str) -> type:
    """Return the class of this name that a module of the package registered; AttributeError if there is none."""
    for cls in REGISTRY.values():
        if cls.__name__ == name and cls.__module__.startswith(f"{package}."):
            return cls
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def imported(word: str) -> str:
    """Return the name of the controller class at `module:Class` or at an entry point; register it if it is not yet.

    A class without a name gets that of the entry point, or for `module:Class` one derived from the class, such as
    my_rule for MyRule. Raises a one-line ValueError if there is no such class.
    """
    from .controller import Controller

    place = outside("controller", word, sorted((*REGISTRY, *ALIASES)), *GROUPS)
    cls = place.load()
    if not (isinstance(cls, type) and issubclass(cls, Controller)):
        raise ValueError(f"{place} is no subclass of entrostat.Controller")
    own = [name for name, hint in vars(cls).get("__annotations__", {}).items() if "ClassVar" not in str(hint)]
    if not is_dataclass(cls) or (own and "__dataclass_fields__" not in vars(cls)):
        raise ValueError(f"{place} is no dataclass: write @dataclass(kw_only=True) above it")
    derived = word if place.distribution else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    name = vars(cls).get("name") or derived
    if REGISTRY.get(name) is not cls:
        register(name)(cls)
    return name


def hyperparameters(cls: "type[Controller]") -> list[str]:
    """Return the names of the hyperparameters of a controller class."""
    return [field.name for field in fields(cls)]  # type: ignore[arg-type]


def implied_surrogate(classes: "Sequence[type[Controller]]", preset: str = "paper") -> tuple[str, dict[str, Any]]:
    """Return name and settings of the surrogate that controllers ask for if a chain names none; PPO by default.

    With the preset `released`, the surrogate of the authors' runs comes before that default.
    Raises ValueError if they ask for different ones.
    """
    asked = {cls.name: cls.implied_surrogate for cls in classes if cls.implied_surrogate is not None}
    if not asked and preset == "released":
        asked = {cls.name: cls.released_surrogate for cls in classes if cls.released_surrogate is not None}
    choices = list(asked.values()) or [("ppo", {})]
    if any(choice != choices[0] for choice in choices):
        raise ValueError(f"{' and '.join(map(repr, asked))} imply different surrogates: name one in the chain")
    return choices[0]
