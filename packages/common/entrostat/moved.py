"""Old addresses of modules: `entrostat.laws` is `entrostat.logs.laws` now, and is found under both names."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROOMS = {
    "numbers": "correlation draws kl lazy ordered_bits pi_control plant policy_moments quadrants reduce segments "
    "support water_level",
    "settings": "allowed choosing commandline compilers field_types hyperparameters importing installation out_folder "
    "plain_yaml schedules",
    "logs": "diagnosis doubts foreign laws probe_log regular_file runlog",
    "about": "check_controller description lineup",
    "surrogates": "aggregation",
}
HOME = {name: f"{room}.{name}" for room, names in ROOMS.items() for name in names.split()}
HOME |= {
    "composition": "chaining",
    "constants": "numbers.per_run",
    "rule_facts": "controller",
}
"""New address of each module, within entrostat."""
PACKAGE = __name__.rpartition(".")[0]


def new_address(name: str) -> str | None:
    """Return the new address of the module `entrostat.…`, or None if it has not moved."""
    package, _, inside = name.partition(".")
    first, _, deeper = inside.partition(".")
    if package != PACKAGE or first not in HOME:
        return None
    return ".".join(filter(None, (PACKAGE, HOME[first], deeper)))


class Forwarding(MetaPathFinder, Loader):
    """Import of an old address: the module at the new one."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if new_address(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        now = new_address(spec.name)
        assert now is not None
        warnings.warn(f"{spec.name} is {now} now", DeprecationWarning, stacklevel=2)
        module = import_module(now)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, which the import of its old address replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def understand() -> None:
    """Let old addresses be imported; first of all finders, or files below an old address were loaded twice."""
    if not any(isinstance(finder, Forwarding) for finder in sys.meta_path):
        sys.meta_path.insert(0, Forwarding())
