"""Parts of a controller chain for experiments, not for training; in the registry only while an experiment runs.

with at_hand(region=QuadrantMask):
    simulate(Config(controller="region", controller_args=weights("correction", 2.0)), seeds)
with at_hand(probe=probe(look, "logp")): simulate(Config(controller="grpo+probe"), seeds).metrics
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import RLock
from typing import ClassVar

import torch
from torch import Tensor

from entrostat.controller import Context, Controller
from entrostat.diagnostics import QUADRANTS
from entrostat.plan import Plan
from entrostat.registry import REGISTRY, register

Look = Callable[[Plan, Context], Mapping[str, Tensor]]
"""Function of an update's finished plan that returns numbers (runs,) to record."""

LENDING = RLock()
"""Lock held while the registry contains temporary controllers."""


@contextmanager
def at_hand(**controllers: type[Controller]) -> Iterator[None]:
    """Run the block with controllers registered under these names. Raise ValueError if a name is taken.

    A controller that draws tokens draws them by the name that it has here.
    All threads share one registry: another thread that calls this waits until the block has ended.
    """
    lent: list[str] = []
    with LENDING:
        try:
            for name, controller in controllers.items():
                register(name)(type(controller.__name__, (controller,), {}))  # the class keeps its own name
                lent.append(name)
            yield
        finally:
            for name in lent:
                del REGISTRY[name]


def weights(quadrant: str, factor: float) -> dict[str, float]:
    """Return the weights of the four quadrants, by hyperparameter, that change one of them."""
    return {name: factor if name == quadrant else 1.0 for name in QUADRANTS}


def by_key(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return for each hyperparameter its value in each of the settings, which have the same keys."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def probe(look: Look, *fields: str) -> type[Controller]:
    """Return a controller that changes nothing and records `look` of each update; `fields` are the Tokens it reads."""

    @dataclass(kw_only=True)
    class Probe(Controller):
        last: ClassVar[bool] = True

        @property
        def needs(self) -> frozenset[str]:
            return frozenset(fields)

        def transform(self, plan: Plan, context: Context) -> Plan:
            return replace(plan, info={**plan.info, **look(plan, context)})

    return Probe


def binned(values: Tensor, bins: Tensor, count: int) -> Tensor:
    """Return the sum of `values` in each bin; values and int64 bins (runs, N), result (runs, count)."""
    sums = torch.zeros(*values.shape[:-1], count, dtype=torch.float64)
    return sums.scatter_add_(-1, bins, values.double())
