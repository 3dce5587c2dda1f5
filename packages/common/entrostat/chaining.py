"""Composition: `chain(a, b, c)` is a controller whose plan combines the numbers of all its parts.

Weights multiply, masks intersect, bonuses add. At most one part is a surrogate; if there is none, the parts imply it,
and plain PPO with clip 0.2 / 0.2 is the default. Parts that contradict each other are refused: docs/composition.md.
Closed loops on the same actuator, or on the same entropy, are found when a chain is built; only the plans show whether
the policy has moved since the rollout. A chain also sets the numbers of its schedules, once per rollout step.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from .controller import Context, Controller, StepStats, numbers_at
from .numbers.per_run import as_state, reading
from .numbers.reduce import LocalReduce
from .numbers.support import Support
from .plan import Plan
from .reads import FIELDS, hand_to, handed, judged, needs_of
from .registry import REGISTRY, implied_surrogate
from .settings.schedules import Moving
from .surrogates import SurrogateController
from .tokens import Tokens

SAME_POLICY = 1e-5
"""Largest |log π − log π_old| (nats) that rounding causes between equal policies."""
ROUNDED = 0.05
"""Largest distance from 0, on its wrong side, that rounding may cause in the mean entropy or the log-probabilities of a
policy that is certain (nats)."""
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


class CompositionWarning(UserWarning):
    """Warning about controllers that run, but not as their rules intend."""


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
        for part, needed in self._needs:
            if missing := [f"Tokens.{name}" for name in sorted(needed) if getattr(tokens, name) is None]:
                raise ValueError(f"controller {part.name!r} needs {', '.join(missing)}")
        self.samples.saw(tokens)
        self._plans += 1
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
        """Let all parts observe a rollout.

        Raises ValueError on a delay that is no count, and if the first entropy is below 0; a later one counts as 0.
        """
        entropy = reading(stats.entropy)
        if self.scheduling.step < 0 and (lowest := float(entropy.nan_to_num(nan=0.0).amin())) < -ROUNDED:
            raise ValueError(f"StepStats.entropy is {lowest:.3g} nats, below 0: pass the entropy, not its negative")
        stats = replace(stats, entropy=entropy.clamp(min=0))
        if stats.delay is not None and (not isinstance(stats.delay, Integral) or stats.delay < 0):
            raise ValueError(f"StepStats.delay must be a number of rollout steps, 0 or more, not {stats.delay!r}")
        self.samples.rollout_ended()
        if self._plans and self._learning and not stats.planned:
            _warn(
                f"{_names(self._learning)} not told what came of the last plans: pass `planned` in StepStats, the sum "
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
            _warn(
                f"{self.name!r} sets the sampling temperature, and nobody has read it: sample each rollout at "
                "`controller.temperature`, or its entropy stays as it is"
            )

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
        _warn(
            f"{who} are closed loops on one entropy: unless their targets are equal they work against each other, "
            "and the one with an integral winds up"
        )


def _contradiction(names: Iterable[str], reason: str) -> ValueError:
    return ValueError(f"{' and '.join(map(repr, sorted(names)))} contradict each other: {reason}")


class SampleWatch:
    """Check of a chain's samples that warns once if they do not suit its parts, and refuses an entropy of NaN.

    Call `saw` with the tokens of every plan and `rollout_ended` once per rollout step. On a GPU what is found stays on
    the device until then, so that planning never waits for it; once it is known whether samples suit, they are not
    compared any more. A token whose log-probability is not finite either is left to whoever takes the step.
    """

    def __init__(self, parts: Sequence[Controller]) -> None:
        self.strict = [part.name for part in parts if part.strictly_on_policy]
        self.idle = [part.name for part in parts if part.idle_on_policy]
        self.plans = 0
        self.looked = False
        self.gap: Tensor | None = None
        """Largest |log π − log π_old| since the last rollout step, on the device; None while it cannot have moved."""
        self.lost: Tensor | None = None
        """Number of tokens since the last rollout step that have a probability and no entropy, on the device."""

    def saw(self, tokens: Tokens) -> None:
        self._look(tokens)
        self._count(tokens)
        if not (self.strict or self.idle) or tokens.logp is None or tokens.old_logp is None or not tokens.size:
            return
        self.plans += 1
        if tokens.logp is tokens.old_logp:
            return
        gap = torch.dist(tokens.logp.detach(), tokens.old_logp, p=torch.inf)
        self.gap = gap if self.gap is None else torch.maximum(self.gap, gap)
        if gap.device.type == "cpu":
            self._judge(ended=False)

    def _look(self, tokens: Tokens) -> None:
        """Refuse probabilities in place of their logarithms, once."""
        if self.looked or tokens.logp is None or not tokens.logp.numel() or torch.compiler.is_compiling():
            return
        self.looked = True
        if all(_are_probabilities(x) for x in (tokens.logp, tokens.old_logp) if x is not None):
            raise ValueError("Tokens.logp is between 0 and 1: pass log-probabilities (nats), which are 0 or less")

    def _count(self, tokens: Tokens) -> None:
        """Look for entropies of NaN. A trainer's numbers are not those of a compiled simulation, which has none."""
        if tokens.entropy is None or tokens.logp is None or torch.compiler.is_compiling():
            return
        if tokens.entropy.device.type == "cpu" and not isnan(float(tokens.entropy.sum())):
            return
        lost = (tokens.entropy.isnan() & tokens.logp.isfinite()).sum()
        self.lost = lost if self.lost is None else self.lost + lost
        if lost.device.type == "cpu":
            self._refuse()

    def _refuse(self) -> None:
        lost, self.lost = int(self.lost or 0), None
        if lost:
            raise ValueError(
                f"Tokens.entropy is NaN for {lost:,} tokens with a finite logp: −Σ p·log p is NaN where a logit is "
                "−inf, unless 0·log 0 counts as 0, as in torch.special.entr(p)"
            )

    def rollout_ended(self) -> None:
        self._refuse()
        if self.plans:
            self._judge(ended=True)
        self.plans, self.gap = 0, None

    def _judge(self, ended: bool) -> None:
        moved = self.gap is not None and float(self.gap) > SAME_POLICY
        if moved:
            self.idle = []
            if self.strict:
                _warn(
                    f"{_names(self.strict)} strictly on-policy by its rule, but log π differs from log π_old: samples "
                    "are used more than once, or the rollout engine computes other log-probabilities, so the entropy "
                    "change that it balances is not the one of the update"
                )
                self.strict = []
        elif ended and self.idle:
            _warn(
                f"{_names(self.idle)} without effect: log π equalled log π_old in all updates of a "
                "rollout, so the rule changed no gradient; use samples for several updates, or another controller"
            )
            self.idle = []


class Scheduling:
    """Schedules of the parts of a chain, the rollout step, and the entropy of the first rollout.

    That entropy counts as 1 nat until it is measured; before that no closed loop acts.
    """

    def __init__(self, parts: Sequence[Controller]) -> None:
        self.moving: list[tuple[Controller, str, Moving]] = [
            (part, name, schedule) for part in parts for name, schedule in part.schedules.items()
        ]
        self.step = -1
        """Rollout step observed last; −1 before the first."""
        self.total_steps: int | None = None
        """Rollout steps of the training; None if no schedule needs it."""
        self.initial = as_state(torch.nan)
        """Entropy of the first rollout, (...,), nats; NaN until it is measured."""

    def observe(self, stats: StepStats) -> StepStats:
        """Set the numbers of this rollout step; return the statistics with the step, counted here if they have none."""
        self.step = self.step + 1 if stats.step is None else stats.step
        if self.moving:
            whole = any(one.whole for _, _, moving in self.moving for one in moving.single)
            self.total_steps = stats.total_steps if whole else None
            self.initial = torch.where(self.initial.isnan(), reading(stats.entropy), self.initial)
            self._set_numbers()
        return replace(stats, step=self.step)

    def _set_numbers(self) -> None:
        initial = torch.where(self.initial.isnan(), 1.0, self.initial)
        for part, name, schedule in self.moving:
            try:
                setattr(part, name, numbers_at(schedule, self.step, self.total_steps, initial))
            except ValueError as error:
                raise ValueError(f"{part.name}: {name}={error}") from None

    def metrics(self) -> dict[str, Tensor]:
        """Return the numbers of the moment as `<controller>/<hyperparameter>`, (...,) each."""
        return {f"{part.name}/{name}": torch.as_tensor(getattr(part, name)) for part, name, _ in self.moving}

    def state_dict(self) -> dict[str, Any]:
        """Return step and initial entropy; empty if nothing moves."""
        if not self.moving:
            return {}
        total = 0 if self.total_steps is None else self.total_steps
        return {"step": torch.tensor(self.step), "total_steps": torch.tensor(total), "initial": self.initial.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state and the numbers of its step."""
        self.step, self.total_steps = int(state["step"]), int(state["total_steps"]) or None
        self.initial = as_state(state["initial"]).clone()
        if self.step >= 0:
            self._set_numbers()


def _are_probabilities(x: Tensor) -> bool:
    """Return True if numbers differ and lie from 0 to 1; those that rounding puts above 0 are close to it."""
    low, high = (float(each) for each in x.aminmax())
    return 0 < low < high <= 1 and high > ROUNDED


def _moves(loop: Controller) -> list[str]:
    """Return the actuators of a closed loop, in words."""
    return [REASONS.get(name, name) for name in str(loop.controls).split("+")]


def _names(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names)) + (" is" if len(names) == 1 else " are")


def _warn(message: str) -> None:
    warnings.warn(message, CompositionWarning, stacklevel=2)
