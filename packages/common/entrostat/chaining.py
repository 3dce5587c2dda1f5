"""Composition: `chain(a, b, c)` is a controller whose plan combines the numbers of all its parts.

Weights multiply, masks intersect, bonuses add. At most one part is a surrogate; if there is none, the parts imply it,
and plain PPO with clip 0.2 / 0.2 is the default. Parts that contradict each other are refused: docs/composition.md.
Closed loops on the same actuator, or on the same entropy, are found when a chain is built; only the plans show whether
the policy has moved since the rollout. A chain also sets the numbers of its schedules, once per rollout step.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .controller import Context, Controller, StepStats
from .numbers.per_run import reading
from .numbers.reduce import LocalReduce
from .numbers.support import Support
from .plan import Plan
from .reads import FIELDS, hand_to, handed, judged, needs_of
from .registry import REGISTRY, implied_surrogate
from .sample_watch import CompositionWarning as CompositionWarning
from .sample_watch import SampleWatch, named, warn
from .scheduling import Scheduling
from .surrogates import SurrogateController
from .tokens import ROUNDED, Tokens, expands

UNFED = 4
"""Plans without any observation at which a chain says what waits for one."""
HIGHEST = 20.0
"""Mean entropy that no policy has (nats): ln of 485 million tokens."""
REASONS = {
    "weight": "the weights of tokens",
    "bonus": "the entropy bonus",
    "clip": "the clip bounds",
    "anchor": "the penalty to the reference policy",
    "temperature": "the sampling temperature",
}
OPPOSITES = {
    frozenset({"positive_only", "negative_only"}): "together they drop every token that has an advantage",
    frozenset({"adaptive_clip", "bapo"}): "both set the clip bounds",
    frozenset({"adapo", "bapo"}): "both set the clip bounds",
    frozenset({"arbitrary_entropy", "lp_reg"}): "both need log π of a proxy, and tokens have one",
    frozenset({"siren", "truncated_entropy_bonus"}): "both set the bonus on truncated entropies",
}
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
        self._plans = 0
        """Plans since the last observation."""
        self._observed: torch.Size | None = None
        """Shape of the last entropy that was observed, the leading runs; None before."""
        self._rows_told = False
        """True once there was a warning about runs that share an entropy."""
        self._learning = [part.name for part in parts if part.learns]
        """Parts that need to know what their plans told, until a warning that they were not told."""
        self._temperature_read = False
        """True once the caller has asked for the temperature, or was warned."""
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

    @property
    def temperature(self) -> Tensor | None:
        self._temperature_read = True
        return self._temperature

    def plan(
        self, tokens: Tokens, reduce: LocalReduce | None = None, seed: int | Tensor = 0, step: int | Tensor = 0
    ) -> Plan:
        if not isinstance(tokens, Tokens):
            raise TypeError(f"plan takes Tokens(...), not {type(tokens).__name__}")
        if self._observed is not None:
            self._check_runs(self._observed, tokens.advantage.shape)
        for part, needed in self._needs:
            if missing := [f"Tokens.{name}" for name in sorted(needed) if getattr(tokens, name) is None]:
                raise ValueError(f"controller {part.name!r} needs {', '.join(missing)}")
        self.samples.saw(tokens)
        self._plans += 1
        if self._plans == UNFED and self._observed is None and (waiting := self._waiting()):
            warn(
                f"{UNFED} plans and no entropy observed: {named(waiting)} waiting for "
                "controller.observe(StepStats(entropy=...)), once for each rollout, before its plans"
            )
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

    def _check_runs(self, observed: torch.Size, shape: torch.Size) -> None:
        """Raise ValueError unless the entropy is that of the runs of the tokens; warn if runs share one number."""
        if not expands(observed, shape[:-1]):
            raise ValueError(
                f"StepStats.entropy has shape {tuple(observed)}, a number for each run, and Tokens.advantage "
                f"{tuple(shape)}: observe one number, the mean over the tokens"
            )
        if not observed and shape[:-1].numel() > 1 and not self._rows_told:
            self._rows_told = True
            warn(
                f"Tokens.advantage has shape {tuple(shape)}: {shape[:-1].numel()} runs with a loss each, and one "
                "entropy was observed for all: if the rows are responses, pass the tokens flat, as in advantage[mask]"
            )

    @torch.no_grad()  # hyperparameters may be tensors, and a state keeps no graph
    def observe(self, stats: StepStats) -> None:
        """Let all parts observe a rollout.

        Raises ValueError if the first entropy is below 0, and if it is 0 and a target relative to it; a later one below
        0 counts as 0. Warns with a CompositionWarning if the first is not finite and a part waits for it.
        """
        if not isinstance(stats, StepStats):
            raise TypeError(f"observe takes StepStats(entropy=...), not {type(stats).__name__}")
        entropy = reading(stats.entropy)
        if self.scheduling.step < 0:
            self._check_first(entropy)
        stats = replace(stats, entropy=entropy.clamp(min=0))
        self._observed = entropy.shape
        self.samples.rollout_ended()
        if self._plans and self._learning and not stats.planned:
            warn(
                f"{named(self._learning)} not told what came of the last plans: pass `planned` in StepStats, the sum "
                "of `Plan.info` over the updates since the last observation"
            )
            self._learning = []
        self._plans = 0
        stats = self.scheduling.observe(stats)
        for part in self._observing:
            part.observe(stats)
        moved = self._temperature
        if not self._temperature_read and moved is not None and bool((moved != 1).any()):
            self._temperature_read = True
            warn(
                f"{self.name!r} sets the sampling temperature, and nobody has read it: sample each rollout at "
                "`controller.temperature`, or its entropy stays as it is"
            )

    def _check_first(self, entropy: Tensor) -> None:
        lowest = float(entropy.nan_to_num(nan=0.0).amin()) if entropy.numel() else 0.0
        if lowest < -ROUNDED:
            raise ValueError(f"StepStats.entropy is {lowest:.3g} nats, below 0: pass the entropy, not its negative")
        if (highest := float(entropy.nan_to_num(nan=0.0, posinf=0.0).amax()) if entropy.numel() else 0.0) > HIGHEST:
            raise ValueError(
                f"StepStats.entropy is {highest:.4g} nats, more than any vocabulary allows: pass the mean over the "
                "tokens, not their sum"
            )
        if (waiting := self._waiting()) and bool(entropy.isnan().any()):
            warn(f"the first StepStats.entropy is not finite: {named(waiting)} waiting for one that is")

    def _waiting(self) -> list[str]:
        """Return the names of the parts that move with what is observed."""
        return [part.name for part in self.parts if part.controls is not None or part.schedules]

    @property
    def _temperature(self) -> Tensor | None:
        return next((part.temperature for part in self.parts if part.temperature is not None), None)

    def resets_reference(self, step: int) -> Tensor:
        due = torch.tensor(False)
        for part in self.parts:
            due = due | part.resets_reference(step)
        return due

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
        if not isinstance(controller, Controller):
            raise TypeError(f"chain takes controllers, such as make('clip_higher'), not {controller!r}")
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


def check_parts(parts: Sequence[Controller]) -> None:
    """Raise ValueError if parts contradict each other or closed loops share an actuator; warn of other loop pairs."""
    names = {part.name for part in parts}
    for pair, reason in OPPOSITES.items():
        if pair <= names:
            raise _contradiction(pair, reason)
    anchored = [part.name for part in parts if part.anchored]
    if len(anchored) > 1:
        raise _contradiction(
            anchored[:2], "both penalise the divergence from a policy, and a plan has one such penalty"
        )
    settings = [vars(part) for part in parts]
    if any(s.get("denominator") == "kept" for s in settings) and any(s.get("tokens") == "kept" for s in settings):
        raise ValueError("entropy_bonus with tokens=kept averages over the kept tokens itself: set denominator to all")
    loops = [part for part in parts if part.controls is not None]
    for i, first in enumerate(loops):
        for second in loops[:i]:
            shared = [what for what in _moves(first) if what in _moves(second)]
            if shared:
                what = " and ".join(shared)
                raise ValueError(
                    f"{second.name!r} and {first.name!r} are both closed loops on {what}: each would react to the "
                    "other's changes, so choose one"
                )
    if len(loops) > 1:
        who = " and ".join(f"{part.name!r} ({' and '.join(_moves(part))})" for part in loops)
        warn(
            f"{who} are closed loops on one entropy: unless their targets are equal they work against each other, "
            "and the one with an integral winds up"
        )


def _contradiction(names: Iterable[str], reason: str) -> ValueError:
    return ValueError(f"{' and '.join(map(repr, sorted(names)))} contradict each other: {reason}")


def _moves(loop: Controller) -> list[str]:
    """Return the actuators of a closed loop, in words."""
    return [REASONS.get(name, name) for name in str(loop.controls).split("+")]
