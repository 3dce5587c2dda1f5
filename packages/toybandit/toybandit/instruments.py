"""Parts of a controller chain for experiments, not for training; in the registry only while an experiment runs.

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

from entrostat.controller import Context, Controller
from entrostat.numbers.per_run import column
from entrostat.plan import Plan
from entrostat.registry import REGISTRY, register

Look = Callable[[Plan, Context], Mapping[str, Tensor]]
"""Function of an update's finished plan that returns numbers (runs,) to record."""

LENDING = RLock()
"""Lock held while the registry contains temporary controllers."""


@contextmanager
def at_hand(**controllers: type[Controller]) -> Iterator[None]:
    """Run the block with controllers registered under these names. Raise ValueError if a name is taken.

    All threads share one registry: another thread that calls this waits until the block has ended.
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
    """Controller that puts the weight `factor` on a random share of tokens in a region of the advantage–p plane."""

    sign: float | Tensor = 1.0
    """Sign of A in the region."""
    p_low: float | Tensor = 0.0
    """Lower limit for the probability of the region's tokens, exclusive."""
    p_high: float | Tensor = 1.0
    """Upper limit for the probability of the region's tokens, inclusive."""
    share: float | Tensor = 1.0
    """Share of the region's tokens that get the weight."""
    factor: float | Tensor = 0.0
    """Weight of the chosen tokens; 0 masks them."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage, p = context.tokens.advantage, context.tokens.get("logp").exp()
        inside = (advantage * column(self.sign, p) > 0) & (p > column(self.p_low, p)) & (p <= column(self.p_high, p))
        touched = inside & (context.uniform(self.name) < column(self.share, p))
        return plan.reweight(torch.where(touched, column(self.factor, p), 1.0))


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
