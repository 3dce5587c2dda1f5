"""Fields of the tokens that a rule reads: found by a trial, and kept to.

Who calls a controller computes what it reads and nothing more: a field that was not asked for is absent, or, like log π
after an update, an older one. So a rule in a chain is handed only the fields that it reads in a trial, or that its own
`needs` names, and reading another raises an error, with all trainers and in the simulator alike.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from traceback import extract_tb
from typing import Any

import torch
from torch import Tensor

from .controller import Context, Controller, StepStats
from .numbers.reduce import LocalReduce
from .plan import Plan
from .registry import REGISTRY
from .sample_batch import ragged_batch
from .tokens import Tokens

ENTROPIES = (None, 0.9, 0.2, 1.6)
"""Entropies that a rule observes before a trial plan (nats), one after another; None: it has observed nothing."""
SEEDS = (0, 2)
"""Mini-batches of each trial."""


class ContractError(ValueError):
    """A rule broke the contract of controllers; the message names the rule."""


class UndeclaredReadError(ContractError):
    """A rule read a field of the tokens that it does not need by its trial or its own statement."""


class Handed(Tokens):
    """Tokens as the rule sees them whose turn it is."""

    def __init__(self, held: Mapping[str, Any] | None = None, **all_fields: Any) -> None:
        if held is None:  # dataclasses.replace
            raise TypeError("a copy of the tokens would read all fields: change what was read, or the plan")
        self.__dict__.update(held, _rule=None, _allowed=frozenset(FIELDS), _read=set())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"Tokens have no {name}; they have {', '.join(FIELDS)}")


def handed(tokens: Tokens, advantage: Tensor | None = None) -> Tokens:
    """Return the tokens for rules, perhaps with another advantage.

    While torch compiles they are plain tokens: what is compiled has been tried before.
    """
    changed = {} if advantage is None else {"advantage": advantage}
    if torch.compiler.is_compiling():
        return replace(tokens, **changed)
    return Handed({**vars(tokens), **changed})


def _complaint(rule: Controller, name: str, allowed: Iterable[str]) -> str:
    """Return why a rule may not read this field."""
    others = ", ".join(sorted(allowed)) or "nothing"
    if states_needs(rule):
        why = f"its `needs` names {others}; name it there, or leave `needs` out and let the fields be found"
    else:
        why = f"in its trial plans it read {others}; read it in all of them, or name all fields in `needs`"
    return f"controller {rule.name!r} reads Tokens.{name}, which it was not handed: {why}"


def hand_to(tokens: Tokens, rule: Controller, allowed: Iterable[str]) -> None:
    """Begin the turn of a rule, which may read the advantage and these fields."""
    if isinstance(tokens, Handed):
        tokens.__dict__.update(_rule=rule, _allowed=frozenset(allowed) | {"advantage"})


FIELDS = tuple(field.name for field in fields(Tokens))


def _guarded(name: str) -> property:
    def read(self: Handed) -> Any:
        held = self.__dict__
        if name not in held["_allowed"]:
            raise UndeclaredReadError(_complaint(held["_rule"], name, held["_allowed"] - {"advantage"}))
        held["_read"].add(name)
        return held[name]

    return property(read)


for _name in FIELDS:
    setattr(Handed, _name, _guarded(_name))


def states_needs(rule: Controller) -> bool:
    """Return True if a rule says by itself what it reads."""
    return type(rule).needs is not Controller.needs


def needs_of(rule: Controller) -> frozenset[str]:
    """Return the fields of tokens that a rule needs: those that it names, or else those that it reads in a trial.

    Raises ValueError if it names what is no field, or fails in its trial.
    """
    if not states_needs(rule):
        return found_reads(rule)
    named = [rule.needs] if isinstance(rule.needs, str) else sorted(rule.needs)
    if unknown := [name for name in named if name not in FIELDS]:
        raise ValueError(
            f"controller {rule.name!r} needs {unknown[0]}, which is no field of Tokens; these are {', '.join(FIELDS)}"
        )
    return frozenset(named)


def found_reads(rule: Controller) -> frozenset[str]:
    """Return the fields besides the advantage that a rule reads in trial plans, before and after it has observed.

    A copy of the rule makes them. Raises ValueError if it fails there, naming the rule.
    """
    if type(rule).transform is Controller.transform:
        return frozenset()
    found, info = set[str](), dict[str, Any]()
    try:
        rule = copy.deepcopy(rule)
    except TypeError as error:
        raise ValueError(
            f"controller {rule.name!r} cannot be copied to find what it reads: {error}; name these fields in `needs`"
        ) from None
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for step, entropy in enumerate(ENTROPIES):
                if entropy is not None:
                    rule.observe(StepStats(entropy=entropy, step=step, total_steps=8, epoch=1, epochs=2, planned=info))
                for seed in SEEDS:
                    tokens = trial_tokens(seed)
                    plan, seen = REGISTRY["ppo"]().start(tokens), handed(tokens)  # type: ignore[attr-defined]
                    plan = judged(rule, rule.transform(plan, Context(seen, LocalReduce(), seed=0, step=step)), tokens)
                    info, found = plan.info, found | vars(seen)["_read"]
    except ContractError:
        raise
    except Exception as error:
        said = (str(error).strip() or "no reason given").splitlines()[0]
        said = f"{type(error).__name__}: {said}{_place(error)}"
        raise ValueError(f"controller {rule.name!r} fails on a few tokens: {said}") from error
    return frozenset(found - {"advantage"})


def _place(error: Exception) -> str:
    """Return the last line of the rule's own file that an error passed, in brackets; "" if there is none."""
    here = Path(__file__).parent
    frames = [frame for frame in extract_tb(error.__traceback__) if here not in Path(frame.filename).parents]
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""


def judged(rule: Controller, plan: Any, tokens: Tokens) -> Plan:
    """Return what the rule's `transform` returned. Raises ContractError if it is no plan for these tokens."""
    if not isinstance(plan, Plan):
        raise ContractError(f"controller {rule.name!r}: transform returned a {type(plan).__name__} instead of a Plan")
    for name in ("weight", "advantage"):
        value = getattr(plan, name)
        if value.shape[-1:] not in ((1,), (tokens.size,)):
            raise ContractError(
                f"controller {rule.name!r}: the plan's {name} has shape {tuple(value.shape)} for {tokens.size} tokens"
            )
        if value.requires_grad:
            raise ContractError(f"controller {rule.name!r}: the plan's {name} has a gradient; a plan is plain numbers")
    return plan


def trial_tokens(seed: int) -> Tokens:
    """Return a small mini-batch with all fields."""
    tokens = ragged_batch(seed).tokens
    return replace(tokens, truncated_entropy=tokens.get("entropy") / 2)
