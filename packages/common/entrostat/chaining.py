"""Composition: `chain(a, b, c)` is a controller whose plan combines the numbers of all its parts.

Weights multiply, masks intersect, bonuses add. At most one part is a surrogate; if there is none, the parts imply it,
and plain PPO with clip 0.2 / 0.2 is the default. Parts that contradict each other are refused: docs/composition.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .composition import SampleWatch, check_parts
from .controller import Context, Controller, StepStats
from .plan import Plan
from .reads import FIELDS, hand_to, handed, judged, needs_of
from .reduce import LocalReduce
from .registry import REGISTRY, implied_surrogate
from .scheduling import Scheduling
from .support import Support
from .surrogates import SurrogateController
from .tokens import Tokens

SCHEDULES = "schedules"
"""Key of the schedules in the state of a chain."""


class Chain(Controller):
    """One surrogate and the controllers that are applied to its plan in order. Built by `chain` and `make`."""

    def __init__(self, surrogate: SurrogateController, parts: tuple[Controller, ...], implied: bool) -> None:
        for part in parts:
            if not part.checked:
                raise ValueError(f"controller {part.name!r}: its __post_init__ must call super().__post_init__() first")
        self.surrogate = surrogate
        self.parts = parts
        self.implied = implied
        """True if the surrogate was not named, so that a longer chain may choose another."""
        self.name = "+".join(part.name for part in (surrogate, *parts))  # type: ignore[misc]
        self.samples = SampleWatch((surrogate, *parts))
        self.scheduling = Scheduling((surrogate, *parts))
        self._needs = [(part, needs_of(part)) for part in (surrogate, *parts)]
        """Fields that each part needs."""

    def __repr__(self) -> str:
        return f"chain({', '.join(map(repr, (self.surrogate, *self.parts)))})"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset[str]().union(*(needed for _, needed in self._needs))

    @property
    def support(self) -> Support | None:
        return next((part.support for part in self.parts if part.support is not None), None)

    @property
    def proxy(self) -> Support | None:
        return next((part.proxy for part in self.parts if part.proxy is not None), None)

    def plan(
        self, tokens: Tokens, reduce: LocalReduce | None = None, seed: int | Tensor = 0, step: int | Tensor = 0
    ) -> Plan:
        for part, needed in self._needs:
            if missing := [f"Tokens.{name}" for name in sorted(needed) if getattr(tokens, name) is None]:
                raise ValueError(f"controller {part.name!r} needs {', '.join(missing)}")
        self.samples.saw(tokens)
        context = Context(handed(tokens), reduce or LocalReduce(), seed, step)
        with torch.no_grad():
            plan = self.surrogate.start(tokens)
            for part, needed in self._needs[1:]:
                hand_to(context.tokens, part, needed)
                plan = judged(part, part.transform(plan, context), tokens)
                if plan.advantage is not context.tokens.advantage:  # the next part gets the new advantage
                    context = replace(context, tokens=handed(tokens, plan.advantage))
            hand_to(context.tokens, self.surrogate, FIELDS)
            return self.surrogate.finish(plan, context)

    def observe(self, stats: StepStats) -> None:
        self.samples.rollout_ended()
        stats = self.scheduling.observe(stats)
        for part in self._observing:
            part.observe(stats)

    def metrics(self) -> dict[str, Tensor]:
        own = {key: value for part in self._observing for key, value in part.metrics().items()}
        return self.scheduling.metrics() | own

    def state_dict(self) -> dict[str, Any]:
        scheduled = self.scheduling.state_dict()
        return {part.name: part.state_dict() for part in self._observing} | (
            {SCHEDULES: scheduled} if scheduled else {}
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore exactly what `state_dict` returned. Raises ValueError on the state of other controllers.

        A state of a version without schedules is accepted: the next observation sets the numbers.
        """
        scheduled = {SCHEDULES} if self.scheduling.moving else set()
        if set(state) - scheduled != {part.name for part in self._observing}:
            raise ValueError(f"state is of controllers {sorted(state)}, not of {self.name!r}")
        for part in self._observing:
            part.load_state_dict(state[part.name])
        if SCHEDULES in state:
            self.scheduling.load_state_dict(state[SCHEDULES])

    @property
    def _observing(self) -> tuple[Controller, ...]:
        """Controllers that may have a state: the parts, and a surrogate that is a closed loop."""
        return (self.surrogate, *self.parts) if self.surrogate.state else self.parts


def chain(*controllers: Controller) -> Chain:
    """Return the chain of these controllers.

    Raises ValueError if two are surrogates, if one appears twice, if two contradict each other, and if two closed loops
    share an actuator. Warns with a CompositionWarning if two closed loops have different actuators.
    """
    flat: list[Controller] = []
    for controller in controllers:
        if isinstance(controller, Chain):
            flat += controller.parts if controller.implied else (controller.surrogate, *controller.parts)
        else:
            flat.append(controller)
    surrogates = [c for c in flat if isinstance(c, SurrogateController)]
    parts = tuple(sorted((c for c in flat if not isinstance(c, SurrogateController)), key=lambda c: c.last))
    if len(surrogates) > 1:
        raise ValueError(f"{' and '.join(repr(s.name) for s in surrogates)} both decide the surrogate: name one")
    names = [part.name for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"controller {name!r} appears twice in the chain")
    check_parts((*surrogates, *parts))
    implied = not surrogates
    if implied:
        name, settings = implied_surrogate([type(part) for part in parts])
        surrogates = [REGISTRY[name](**settings)]  # type: ignore[list-item]
    return Chain(surrogates[0], parts, implied)
