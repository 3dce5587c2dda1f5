"""Mutations: faults put into the code that a claim tests, to show that its verdict notices them.

    Mutation("the covariance had the other sign", Swap(__name__, "covariance", negated))
    Mutation("the controller did nothing", Swap(HOLDERS, "thermostat", always({"controller": "grpo"})))

The name completes "the verdict turns if …".
"""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from importlib import import_module
from typing import Any

from entrostat.about.claims import Check, Finding
from entrostat.controller import Controller
from entrostat.numbers.per_run import as_state

from .memory import forgotten

Change = Callable[[Any], Any]
"""Function of the original that returns its replacement."""
INHERITED = object()
"""Mark of an attribute that the owner itself does not have."""


class Swap:
    """Replacement of an attribute of a module, class or object, or of an entry of a mapping.

    owner: module, class, object or mapping, or a module's name. change: see `Change`.
    """

    def __init__(self, owner: Any, name: Any, change: Change) -> None:
        self.owner, self.name, self.change = owner, name, change

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Run the block with the replacement in place."""
        owner = import_module(self.owner) if isinstance(self.owner, str) else self.owner
        if isinstance(owner, MutableMapping):
            original = owner[self.name]
            owner[self.name] = self.change(original)
            try:
                yield
            finally:
                owner[self.name] = original
            return
        original, own = getattr(owner, self.name), vars(owner).get(self.name, INHERITED)
        setattr(owner, self.name, self.change(original))
        try:
            yield
        finally:
            if own is INHERITED:
                delattr(owner, self.name)
            else:
                setattr(owner, self.name, own)


class Mutation:
    """Named fault, made of one swap or of a few that belong together."""

    def __init__(self, name: str, *swaps: Swap) -> None:
        self.name, self.swaps = name, swaps

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Run the block with the fault, without results remembered from code without it. Not for several threads."""
        with ExitStack() as stack:
            stack.enter_context(forgotten())
            for swap in self.swaps:
                stack.enter_context(swap())
            yield

    def finding(self, check: Check, subject: Any) -> Finding:
        """Return what the check finds with the fault."""
        with self():
            return check(subject)


def always(value: Any) -> Change:
    """Return the change to `value`, whatever the original."""
    return lambda original: value


def negated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the other sign."""
    return lambda *args, **kwargs: -function(*args, **kwargs)


def constant(value: Any) -> Change:
    """Return the change to a function that returns `value`, whatever its arguments."""
    return lambda original: lambda *args, **kwargs: value


def scaled(name: str, factor: float) -> Change:
    """Return the change of a controller's method to one that reads its number `name` times `factor`."""

    def change(method: Callable[..., Any]) -> Callable[..., Any]:
        def changed(self: Controller, *args: Any) -> Any:
            other = copy(self)
            setattr(other, name, getattr(self, name) * factor)
            return method(other, *args)

        return changed

    return change


OFF = always(lambda self, plan, context: plan)
"""Change of a controller's `transform` that switches it off."""


def mirrored(observe: Callable[..., None]) -> Callable[..., None]:
    """Return `observe` with the error of the measured entropy of the other sign."""
    return lambda self, stats: observe(self, replace(stats, entropy=2 * as_state(self.target) - stats.entropy))


def faults(controller: type[Controller]) -> tuple[Mutation, ...]:
    """Return the faults that no controller with a target can have and hold it."""
    return (
        Mutation("the error had the other sign", Swap(controller, "observe", mirrored)),
        Mutation("the controller were switched off", Swap(controller, "transform", OFF)),
    )
