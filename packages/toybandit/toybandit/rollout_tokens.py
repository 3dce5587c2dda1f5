"""Tokens of one update of a run, one by one: the controller's effect on each, and the effect of each on the entropy.

update = watch(Config(controller="clip_cov"), rollout=20)      the mini-batch and its plan
tokens = described(update.tokens, update.plan)                 as arrays
others = described(update.tokens, planned_by(Config(controller="steer"), update))      the same tokens, another plan
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from entrostat import LocalReduce, Plan, StepStats, Tokens, entropy_change
from entrostat.about.description import QUADRANTS
from entrostat.plan import importance_ratio

from .config import Config
from .control import build_controller
from .simulator import simulate
from .trajectory import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Update:
    """One mini-batch of one run; tensors have shape (1, N)."""

    tokens: Tokens
    plan: Plan
    config: Config
    seed: int
    rollout: int
    number: int
    """Index of the update among those on the samples of the rollout, from 0."""

    @property
    def step(self) -> int:
        """Updates of the run before this one."""
        return self.rollout * self.config.environment().updates + self.number


@dataclass(frozen=True, eq=False, kw_only=True)
class RolloutTokens:
    """N tokens as arrays (N,). Entropies are in nats; entropy changes are first-order, per unit of learning rate."""

    p: Array
    """Probability of the token under the current policy."""
    ratio: Array
    """π/π_old."""
    advantage: Array
    entropy: Array
    """H of the token's distribution."""
    weight: Array
    """Factor of the controller on the advantage."""
    kept: Array
    """True if the token has a policy gradient: neither dropped nor stopped by clipping. Bool."""
    flow: Array
    """Change of H of the token's distribution by a step on A·ratio, unweighted."""
    planned: Array
    """Change of H of the token's distribution by the token's part of the plan, bonus and penalties included.
    Times N, to be comparable with `flow`."""
    likely: Array
    """True if p > e^(−H), STEER's boundary. Bool."""
    beyond: Array
    """True if p > p*, above which a rewarded token lowers H. Bool; p* is at least e^(−H)."""

    def quadrant(self, *, exact: bool = False) -> Array:
        """Return I to IV of `entrostat.numbers.quadrants`, or "" if A = 0; cut at p* if `exact`, else at e^(−H)."""
        likely = self.beyond if exact else self.likely
        one, two, three, four = QUADRANTS
        positive, negative = np.where(likely, one, two), np.where(likely, four, three)
        return np.where(self.advantage > 0, positive, np.where(self.advantage < 0, negative, ""))


class Quadrant(NamedTuple):
    """Effect of a plan on the tokens of a quadrant."""

    tokens: int
    weight: float
    """Mean weight, NaN without tokens."""
    kept: float
    """Share of the tokens that has a policy gradient, NaN without tokens."""
    change: float
    """Contribution of the tokens to the first-order change of the mean entropy, per unit of learning rate, nats."""


def by_quadrant(tokens: RolloutTokens, *, exact: bool = False) -> dict[str, Quadrant]:
    """Return the quadrants I to IV, cut at p* if `exact`, else at e^(−H). Tokens with A = 0 are in none."""
    names = tokens.quadrant(exact=exact)
    found = {}
    for name in QUADRANTS:
        inside = names == name
        weight, kept = (float(x[inside].mean()) if inside.any() else nan for x in (tokens.weight, tokens.kept))
        change = float(tokens.planned[inside].sum()) / names.size
        found[name] = Quadrant(tokens=int(inside.sum()), weight=weight, kept=kept, change=change)
    return found


class _Reached(Exception):
    """Exception that ends the simulation at the wanted update."""


def watch(config: Config, seed: int = 0, *, rollout: int = 0, number: int = -1) -> Update:
    """Simulate `config` up to one update and return that update. number: index within the rollout; −1 is the last.

    Raises ValueError on a rollout or an update that the run does not have, and if outcomes are enumerated.
    """
    environment = config.environment()
    if environment.enumerated:
        raise ValueError(f"env {config.env!r} enumerates outcomes and samples no tokens; choose noisy, on, pure or det")
    if not 0 <= rollout < environment.rollouts:
        raise ValueError(f"rollout must be between 0 and {environment.rollouts - 1}, not {rollout}")
    if not -environment.updates <= number < environment.updates:
        raise ValueError(f"number must be between 0 and {environment.updates - 1}, not {number}")
    number %= environment.updates
    seen = 0

    def look(tokens: Tokens, plan: Plan) -> None:
        nonlocal seen
        seen += 1
        if seen > rollout * environment.updates + number:
            raise _Reached(tokens, plan)

    try:
        simulate(config, (seed,), watch=look)
    except _Reached as found:
        tokens, plan = found.args
    return Update(tokens=tokens, plan=plan, config=config, seed=seed, rollout=rollout, number=number)


def planned_by(config: Config, update: Update) -> Plan:
    """Return the plan of the controller of `config` for the tokens of `update`; the environment of `config` is unused.

    A closed loop starts from its initial state and observes one entropy, the rollout's. Raises ValueError on a
    controller that needs fields that the update does not have.
    """
    controller = build_controller(config, 1)
    if controller.support is not None:
        raise ValueError(f"controller {config.controller!r} needs truncated entropies, which an update lacks")
    environment = update.config.environment()
    entropy = update.tokens.get("old_entropy").double().mean(-1)
    with torch.no_grad():
        stats = StepStats(entropy=entropy, step=update.rollout, total_steps=environment.rollouts, delay=0)
        controller.observe(stats)
        return controller.plan(update.tokens, LocalReduce(), seed=torch.tensor([update.seed]), step=update.step)


def described(tokens: Tokens, plan: Plan) -> RolloutTokens:
    """Return the tokens of one run, (1, N), under a plan for them, as arrays."""
    logp, entropy = tokens.get("logp"), tokens.get("entropy")
    s2, s2l = tokens.get("s2"), tokens.get("s2l")
    ratio = importance_ratio(logp, tokens.get("old_logp"))
    of_one = entropy_change.exact(logp, entropy, s2, s2l, torch.ones_like(logp))
    shaped = torch.where(tokens.advantage == 0, 1.0, plan.advantage / tokens.advantage)
    shape = logp.shape
    found: Mapping[str, Tensor] = {
        "p": logp.exp(),
        "ratio": ratio,
        "advantage": tokens.advantage,
        "entropy": entropy,
        "weight": plan.weight * shaped,
        "kept": plan.keep & ~plan.clipped(logp),
        "flow": tokens.advantage * ratio * of_one,
        "planned": shape[-1] * entropy_change.planned(tokens, plan).total,
        "likely": logp + entropy > 0,
        "beyond": of_one < 0,
    }
    return RolloutTokens(**{name: value.expand(shape)[0].cpu().numpy() for name, value in found.items()})
