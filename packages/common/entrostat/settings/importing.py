"""Classes and functions outside the package: `module:attribute`, or the name of an entry point.

    [project.entry-points."entrostat.controllers"]      in the pyproject.toml of an installed distribution
    floor = "entrostat_example.rules:Floor"

The callers look among their own names first. So a built-in name is never replaced, entry points are read only for a
name that is not built in, and the module of an entry point is imported only when its name is asked for.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .choosing import unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Outside(NamedTuple):
    """Class or function outside the package, not imported yet. As text it is its kind and name, for messages."""

    kind: str
    name: str
    """Name or import path, as given."""
    path: str
    """Import path, `module:attribute`."""
    distribution: str = ""
    """Distribution that declares the name; empty for an import path."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" + (f" of the distribution {self.distribution}" if self.distribution else "")

    def load(self) -> Any:
        """Return the class or function. For an import path, the working folder is searched first.

        Raises a one-line ValueError if the import fails.
        """
        module, _, name = self.path.partition(":")
        folder = str(Path.cwd())
        if not self.distribution and folder not in sys.path:
            sys.path.insert(0, folder)
        expected = Exception if self.distribution else (ImportError, AttributeError, ValueError)
        if module.endswith(".py"):
            named = Path(module).stem
            raise ValueError(f"{self} names a file: give its module, {named}:{name}, from the folder {named}.py is in")
        try:
            return getattr(import_module(module), name)
        except expected as error:
            raise ValueError(f"{self} cannot be imported: {error}") from error
        except SystemExit:
            raise ValueError(
                f"{self} cannot be imported: {module} ends the program; "
                "put what it runs under if __name__ == '__main__'"
            ) from None


def is_made_again(before: Any, after: Any) -> bool:
    """Return True if a class or function is another one made anew: a notebook's cell ran again, a module reloaded."""
    return (before.__module__, before.__qualname__) == (after.__module__, after.__qualname__)


def outside(kind: str, name: str, built_in: Iterable[str], *groups: str, form: str = "module:Class") -> Outside:
    """Return the class or function at an import path or at an entry point of one of the groups.

    kind: name of the kind of object, for messages. built_in: names that the caller knows, for the message about a name
    that nobody knows. form: form of an import path, likewise.
    Raises ValueError if no entry point has the name, and if several have it.
    """
    if ":" in name:
        return Outside(kind, name, name)
    declared = plug_ins(*groups)
    found = [entry for entry in declared if entry.name == name]
    if not found:
        known = list(dict.fromkeys([*built_in, *sorted(entry.name for entry in declared)]))
        raise ValueError(unknown(kind, name, known, f"choose from {', '.join(known)}, or give {form}"))
    if len(found) > 1:
        owners = " and ".join(map(distribution, found))
        raise ValueError(f"{kind} {name!r} is declared by {owners}: uninstall one of them, or give {form}")
    return Outside(kind, name, f"{found[0].module}:{found[0].attr}", distribution(found[0]))


def plug_ins(*groups: str) -> "list[EntryPoint]":
    """Return the entry points of these groups. Their modules are not imported."""
    from importlib.metadata import entry_points

    return [entry for group in groups for entry in entry_points(group=group)]


def distribution(entry: "EntryPoint") -> str:
    """Return the name of the distribution that declares an entry point."""
    return entry.dist.name if entry.dist else "unknown"
