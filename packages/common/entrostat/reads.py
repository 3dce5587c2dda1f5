"""Fields of the tokens that a rule reads: found by a trial, and kept to.

Who calls a controller computes what it reads and nothing more: a field that was not asked for is absent, or, like log π
after an update, an older one. So a rule in a chain is handed only the fields that it reads in a trial, or that its own
`needs` names, and reading another raises an error, with all trainers and in the simulator alike.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from .controller import Context, Controller, StepStats
from .reduce import LocalReduce
from .registry import REGISTRY
from .sample_batch import ragged_batch
from .tokens import Tokens

ENTROPIES = (None, 0.9, 0.2, 1.6)
"""Entropies that a rule observes before a trial plan (nats), one after another; None: it has observed nothing."""
SEEDS = (0, 2)
"""Mini-batches of each trial."""


class UndeclaredReadError(ValueError):
    """A rule read a field of the tokens that it does not need by its trial or its own statement."""


class Handed(Tokens):
    """Tokens as the rule sees them whose turn it is."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self.__dict__.update(held, _rule=None, _allowed=frozenset(FIELDS), _read=set())


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
    """Return the fields of tokens that a rule needs: those that it names, or else those that it reads in a trial."""
    return rule.needs if states_needs(rule) else found_reads(rule)


def found_reads(rule: Controller) -> frozenset[str]:
    """Return the fields besides the advantage that a rule reads in trial plans, before and after it has observed.

    A copy of the rule makes them. Raises ValueError if it fails there, naming the rule.
    """
    if type(rule).transform is Controller.transform:
        return frozenset()
    rule, found, info = copy.deepcopy(rule), set[str](), dict[str, Any]()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for step, entropy in enumerate(ENTROPIES):
                if entropy is not None:
                    rule.observe(StepStats(entropy=entropy, step=step, total_steps=8, epoch=1, epochs=2, planned=info))
                for seed in SEEDS:
                    tokens = trial_tokens(seed)
                    plan, seen = REGISTRY["ppo"]().start(tokens), handed(tokens)  # type: ignore[attr-defined]
                    info = rule.transform(plan, Context(seen, LocalReduce(), seed=0, step=step)).info
                    found |= vars(seen)["_read"]
    except Exception as error:
        said = (str(error).strip() or "no reason given").splitlines()[0]
        raise ValueError(f"controller {rule.name!r} fails on a few tokens: {type(error).__name__}: {said}") from error
    return frozenset(found - {"advantage"})


def trial_tokens(seed: int) -> Tokens:
    """Return a small mini-batch with all fields."""
    tokens = ragged_batch(seed).tokens
    return replace(tokens, truncated_entropy=tokens.get("entropy") / 2)
