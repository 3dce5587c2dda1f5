"""Base class of controllers, and the statistics and the context that they get.

    Tokens ──► plan(tokens, reduce) ──► Plan ──► plan.loss(logp, entropy, index) ──► gradient
    StepStats ──► observe(stats)         the only place where state changes

`plan` reads the whole mini-batch and has no side effect; `observe` is called once per rollout step, with the entropy of
that rollout, before the plans of that step are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar
from zlib import crc32

import torch
from torch import Tensor

from .numbers.draws import hash_bits, salt, uniform
from .numbers.lazy import lazy
from .numbers.per_run import as_reading as as_reading  # rules of others import these three from here
from .numbers.per_run import as_state
from .numbers.per_run import column as column
from .numbers.per_run import reading as reading
from .numbers.reduce import LocalReduce
from .numbers.resets import ResetEvery, is_due, is_whole
from .numbers.segments import Segments
from .numbers.support import Support
from .plan import Plan
from .settings.allowed import allowed, complaint
from .settings.schedules import Moving, schedule, trial_steps
from .tokens import Tokens

COUNTS = ("step", "total_steps", "epoch", "epochs", "delay")
"""Fields of StepStats that count something."""


@dataclass(frozen=True, kw_only=True)
class StepStats:
    """Statistics that closed loops observe once per rollout step; entropies are (...,), one per leading run.

    No field carries a gradient: it is cut off. Raises TypeError if a field is no number, and ValueError on a count that
    is none.
    """

    entropy: float | Tensor
    """Mean entropy over the response tokens of the rollout (nats). NaN and ±inf leave every closed loop unchanged."""
    step: int | None = None
    """Rollout step, from 0; a chain counts its observations if None."""
    total_steps: int | None = None
    epoch: int | None = None
    """Pass over the data, from 1."""
    epochs: int | None = None
    delay: int | None = None
    """Age of `entropy`: rollout steps between the policy that it was measured on and the one to be updated now; 0 if it
    is the present policy's, None if that is not known."""
    planned: Mapping[str, float | Tensor] = field(default_factory=dict)
    """`Plan.info` summed over the updates since the last observation: the changes that controllers planned."""

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and float(value) >= 0 and float(value) % 1 == 0):
                raise ValueError(f"StepStats.{name} must be a whole number, 0 or more, not {value!r}")
        object.__setattr__(self, "entropy", _measured("entropy", self.entropy))
        if not isinstance(self.planned, Mapping):
            raise TypeError(f"StepStats.planned must be numbers by name, as Plan.info, not {self.planned!r}")
        planned = {name: _measured(f"planned[{name!r}]", value) for name, value in self.planned.items()}
        object.__setattr__(self, "planned", planned)

    @classmethod
    def over_ranks(cls, entropy: Tensor, reduce: LocalReduce, **others: Any) -> "StepStats":
        """Return the statistics of a rollout that lies on several ranks: its entropy is the mean over all tokens.

        entropy: of this rank's response tokens, (..., N); a rank may have none. others: the fields above.
        Raises ValueError, on all ranks, if one of the others is not the same everywhere: closed loops would part.
        """
        if not isinstance(entropy, Tensor) or not entropy.ndim:
            raise ValueError("StepStats.over_ranks takes the entropy of each token, (..., N), and makes their mean")
        stats = cls(entropy=reduce.mean(entropy.detach()), **others)
        planned = dict(sorted(stats.planned.items()))
        told: dict[str, Any] = {name: getattr(stats, name) for name in COUNTS}
        told["planned"] = float(crc32(repr(list(planned)).encode()))  # names, then numbers
        for values in (told, {f"planned[{name!r}]": value for name, value in planned.items()}):
            parts = [as_state(-1.0 if x is None else x).to(entropy.device).reshape(-1, 1) for x in values.values()]
            if not parts:
                continue
            differs = (reduce.max(torch.cat(parts)) != reduce.min(torch.cat(parts))).split([len(x) for x in parts])
            if wrong := [name for name, here in zip(values, differs, strict=True) if bool(here.any())]:
                raise ValueError(f"StepStats.{wrong[0]} differs between ranks: it must be the same on all")
        return stats


def _measured(name: str, value: Any) -> Any:
    """Return a number or a tensor without its gradient. Raises TypeError if it is neither."""
    if isinstance(value, Tensor):
        return value.detach() if value.requires_grad else value
    try:
        as_state(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"StepStats.{name} must be a number or a tensor, not {value!r}") from None
    return value


@dataclass(frozen=True)
class Context:
    """Mini-batch, reduction over ranks, and random-number keys of the plan being made."""

    tokens: Tokens
    reduce: LocalReduce
    seed: int | Tensor
    step: int | Tensor

    @lazy
    def size(self) -> int:
        """Number of tokens in the mini-batch over all ranks."""
        return self.reduce.total(self.tokens.size)

    @lazy
    def sequences(self) -> Segments:
        """Segments of the tokens by response: the S responses of the mini-batch on this rank."""
        return Segments(self.tokens.get("seq_id"))

    @lazy
    def turns(self) -> Segments:
        """Segments of the tokens by turn: all turns of the S responses."""
        turn = self.tokens.get("turn_id")
        if turn.is_floating_point():
            raise ValueError(f"Tokens.turn_id must hold integers, the index of each token's turn; got {turn.dtype}")
        if turn.numel():
            turn = turn - turn.min()
        return Segments(self.sequences.index * (int(turn.max()) + 1 if turn.numel() else 1) + turn)

    @lazy
    def groups(self) -> Segments:
        """Segments of the S responses by prompt. A whole group must be on one rank."""
        return Segments(self.sequences.pick(self.tokens.get("group_id")))

    def share(self, mask: Tensor) -> Tensor:
        """Return the share of the mini-batch's tokens in the mask (..., N): float64 (...,)."""
        return self.reduce.count(mask).double() / max(self.size, 1)

    def identity(self, index: Tensor) -> Tensor:
        """Return an integer per token of `index` (n,) that does not depend on how the tokens are split: (..., n)."""
        held = vars(self.tokens)  # also of a rule that does not read them
        response, position = held["seq_id"], held["position"]
        if response is not None and position is not None:
            return hash_bits(response.index_select(-1, index), position.index_select(-1, index))
        return self.reduce.offset(self.tokens.size) + index

    def uniform(self, purpose: str, among: Tensor | None = None) -> Tensor:
        """Return a uniform number for each token, float64 (..., N), the same on any number of ranks.

        among: mask (..., N) of the tokens that need one; the others get −inf at no cost.
        """
        shape, device = self.tokens.advantage.shape, self.tokens.advantage.device
        seed, step = (x.unsqueeze(-1) if isinstance(x, Tensor) else x for x in (self.seed, self.step))
        if among is None:
            every = torch.arange(shape[-1], device=device)
            return uniform(seed, step, salt(purpose), self.identity(every)).expand(shape)
        index = (among if among.ndim == 1 else among.flatten(0, -2).any(0)).nonzero()[:, 0]
        drawn = torch.full(shape, -torch.inf, dtype=torch.float64, device=device)
        number = uniform(seed, step, salt(purpose), self.identity(index))
        drawn.index_copy_(-1, index, number.expand(*shape[:-1], len(index)))
        return drawn if len(shape) == 1 else drawn.masked_fill_(~among, -torch.inf)


class RuleFacts:
    """Facts about a rule, with values for a rule that has nothing special."""

    name: ClassVar[str] = ""
    """Name in `make`; of a class outside it is made from the class's own."""
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "released": {}}
    """Settings of each preset that differ from the defaults."""
    source: ClassVar[str] = ""
    """Source of the rule: paper, equation."""
    quadrants: ClassVar[tuple[str, ...]] = ()
    """Quadrants it acts on (STEER, figure 2). I: A > 0, likely token; II: A > 0, unlikely; III: A < 0, unlikely;
    IV: A < 0, likely."""
    implied_surrogate: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """Name and settings of the surrogate that the rule needs if a chain names none."""
    released_surrogate: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """Surrogate of the authors' runs, used by the preset `released` if a chain names and implies none."""
    last: ClassVar[bool] = False
    """True if the rule depends on the plans of all other parts; `chain` puts such a part at the end."""
    strictly_on_policy: ClassVar[bool] = False
    """True if the rule holds only for samples of the current policy; reused samples then give a warning."""
    idle_on_policy: ClassVar[bool] = False
    """True if the rule has no gradient while the policy is still the one that made the rollout."""
    learns: ClassVar[bool] = False
    """True if `observe` reads what its own plans told since the last observation, `StepStats.planned`."""
    initial_only: ClassVar[tuple[str, ...]] = ()
    """Hyperparameters that set the initial state and are not read again; they take no schedule."""

    @property
    def support(self) -> Support | None:
        """Actions whose truncated entropy the plan has a bonus for; None if it has none."""
        return None

    @property
    def proxy(self) -> Support | None:
        """Actions and temperature of the policy of `Tokens.proxy_logp`; None if it is not needed."""
        return None

    @property
    def controls(self) -> str | None:
        """Actuators of a closed loop: "weight", "bonus", "clip", "anchor" or "temperature", joined by +; None for other
        rules."""
        return None

    @property
    def temperature(self) -> Tensor | None:
        """Sampling temperature for the next rollout, (...,), set by a closed loop; None if the rule leaves it alone."""
        return None

    @property
    def anchored(self) -> bool:
        """True if its plan penalises the divergence from a policy; a plan has one such penalty at most."""
        return False


class Controller(RuleFacts):
    """One rule. Subclasses are dataclasses whose fields are the hyperparameters, with the paper's values as defaults.

    A rule overrides `transform`; a closed loop names in `state` what `observe` changes. What it reads of the tokens is
    found, see `entrostat.reads`.

    Annotations give the allowed values, see `entrostat.settings.allowed`. A number may be a tensor (runs…,), one value
    per leading run, or a schedule, see `entrostat.settings.schedules`: the attribute then holds the number of the
    moment, a tensor that the chain sets once per rollout step.
    """

    state: ClassVar[tuple[str, ...]] = ()
    """Attributes that `observe` changes."""
    reset_every: ResetEvery = 0
    """Rollout steps between two resets of the reference policy to the present one; 0: it never changes."""

    def transform(self, plan: Plan, context: Context) -> Plan:
        """Return the plan with this controller's rule applied."""
        return plan

    def observe(self, stats: StepStats) -> None:
        """Update the state. The base class has none."""

    def resets_reference(self, step: int) -> Tensor:
        """Return True where the reference policy becomes the present policy before rollout step `step`, bool (...,)."""
        return is_due(self.reset_every, step)

    def metrics(self) -> dict[str, Tensor]:
        """Return the state for the log, (...,) each."""
        return {f"{self.name}/{key}": torch.as_tensor(getattr(self, key)) for key in self.state}

    @property
    def needs(self) -> frozenset[str]:
        """Fields of Tokens that `transform` reads besides the advantage; they are found if a subclass names none."""
        return frozenset()

    schedules: Mapping[str, Moving] = MappingProxyType({})
    """Schedules by hyperparameter."""
    checked: bool = False
    """True once `__post_init__` has checked the hyperparameters."""

    def __post_init__(self) -> None:
        """Raise ValueError if a hyperparameter has a value that is not allowed; subclasses call this first."""
        self.checked = True
        self._require(not isinstance(self.state, str), f"state must be a tuple of names, such as ({self.state!r},)")
        for name in self._numeric():
            learned = isinstance(value := getattr(self, name), Tensor) and value.requires_grad
            self._require(not learned, f"{name} has a gradient, and a plan is plain numbers: pass {name}.detach()")
        self.move(**{key: value for key in self._numeric() if is_moving(value := getattr(self, key))})
        for hyperparameter in fields(self):  # type: ignore[arg-type]
            name = hyperparameter.name
            wrong = complaint(getattr(self, name), allowed(type(self), name))
            self._require(wrong is None, f"{name} {wrong}")
        self._require(is_whole(self.reset_every), "reset_every must be a whole number of rollout steps")

    def move(self, **schedules: Any) -> None:
        """Let hyperparameters follow schedules, from their numbers at rollout step 0.

        Raises ValueError if a schedule is invalid, or leads to a value that is not allowed at any of its knots or at
        steps between them.
        """
        for name, value in schedules.items():
            self._require(name not in self.initial_only, f"{name} only sets the initial state: it takes no schedule")
            try:
                found = schedule(value)
            except ValueError as error:
                raise ValueError(f"{self.name}: {name}: {error}") from None
            relative = found.relative and name != "target"
            self._require(not relative, f"{name}: only a target may be relative, such as 0.4x")
            self.schedules = {**self.schedules, name: found}
        others = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        steps, total = trial_steps(self.schedules.values()) if schedules else ([], 1)
        for step in steps:
            numbers = {name: numbers_at(moving, step, total) for name, moving in self.schedules.items()}
            try:
                type(self)(**{**others, **numbers})
            except ValueError as error:
                said = ", ".join(f"{name}={moving}" for name, moving in self.schedules.items())
                raise ValueError(f"{error}, with {said}") from None
        for name in schedules:
            setattr(self, name, numbers_at(self.schedules[name], 0, total))

    def _numeric(self) -> list[str]:
        """Return the names of the numeric hyperparameters."""
        return [field.name for field in fields(self) if type(field.default) in (int, float)]  # type: ignore[arg-type]

    def state_dict(self) -> dict[str, Any]:
        return {key: torch.as_tensor(getattr(self, key)).clone() for key in self.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore exactly what `state_dict` returned. Raises ValueError on the state of another controller."""
        held, expected = self.state_dict(), sorted(self._kept())
        if sorted(state) != expected:
            raise ValueError(f"{self.name}: state has {sorted(state)}, expected {expected}")
        self._restore({key: torch.as_tensor(value, dtype=held[key].dtype).clone() for key, value in state.items()})

    def _kept(self) -> tuple[str, ...]:
        """Return the names in `state_dict`."""
        return self.state

    def _restore(self, state: dict[str, Tensor]) -> None:
        """Set the state to the tensors of `state_dict`."""
        for key, value in state.items():
            setattr(self, key, value)

    def _require(self, condition: bool | Tensor, message: str) -> None:
        if not bool(torch.as_tensor(condition).all()):
            raise ValueError(f"{self.name}: {message}")


def is_moving(value: Any) -> bool:
    """Return True if the value of a numeric hyperparameter is a schedule, or text."""
    return isinstance(value, Moving | str)


def numbers_at(moving: Moving, step: float, total_steps: int | None, initial: float | Tensor = 1.0) -> Tensor:
    """Return the value of a schedule at a rollout step, float64 () or (runs…,).

    initial: entropy of the first rollout (nats). Raises ValueError if total_steps is needed and None.
    """
    number, share = (as_state(x) for x in moving.at(step, total_steps))
    return number + share * as_state(initial).to(number.device) if moving.relative else number
