"""Parts of a controller chain that experiments need and trainers do not; in the registry only while an experiment runs.

with at_hand(region=Region): simulate(Config(controller="region", controller_args={"factor": 2.0}), seeds)
with at_hand(probe=probe(look, "logp")): simulate(Config(controller="grpo+probe"), seeds).metrics
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import RLock
from typing import ClassVar

import torch
from torch import Tensor

from entrostat.controller import Context, Controller, column
from entrostat.plan import Plan
from entrostat.registry import REGISTRY, register

Look = Callable[[Plan, Context], Mapping[str, Tensor]]
"""Takes the finished plan of an update, gives numbers (runs,) to be recorded."""

LENDING = RLock()
"""Held while the registry holds what is only lent to it."""


@contextmanager
def at_hand(**controllers: type[Controller]) -> Iterator[None]:
    """Make controllers available by these names inside the block. ValueError on a name that is taken.

    The registry is one for all threads: another thread that wants to lend waits until this block has ended.
    """
    lent: list[str] = []
    with LENDING:
        try:
            for name, controller in controllers.items():
                register(name)(controller)
                lent.append(name)
            yield
        finally:
            for name in lent:
                del REGISTRY[name]


@dataclass(kw_only=True)
class Region(Controller):
    """Weight `factor` on a random share of the tokens of one region of the advantage–probability plane."""

    sign: float | Tensor = 1.0
    """Sign of A in the region."""
    p_low: float | Tensor = 0.0
    """Tokens with a probability above this are in the region."""
    p_high: float | Tensor = 1.0
    """Tokens with a probability above this are not."""
    share: float | Tensor = 1.0
    """How many of the region's tokens are touched."""
    factor: float | Tensor = 0.0
    """Their weight: 0 masks them."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage, p = context.tokens.advantage, context.tokens.get("logp").exp()
        inside = (advantage * column(self.sign, p) > 0) & (p > column(self.p_low, p)) & (p <= column(self.p_high, p))
        touched = inside & (context.uniform(self.name) < column(self.share, p))
        return plan.reweight(torch.where(touched, column(self.factor, p), 1.0))


def probe(look: Look, *fields: str) -> type[Controller]:
    """A controller that changes nothing and records what `look` sees of each update; `fields` of Tokens it reads."""

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
    """Sum of `values` in each bin; values and int64 bins (runs, N), result (runs, count)."""
    sums = torch.zeros(*values.shape[:-1], count, dtype=torch.float64)
    return sums.scatter_add_(-1, bins, values.double())
