"""Results of rules in fitted environments: what each reaches on held-out prompts, and against plain GRPO."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from entrostat.about.lineup import Entry

from ..config import Config
from ..trajectory import Array
from .fit import Fit, tried

LAST = 3
"""Evaluations at the end whose mean counts."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """Results of a rule, (fits, seeds) each."""

    entry: Entry
    reward: Array
    """Probability that a response to a held-out prompt is right, at the end."""
    passed: Array
    """pass@k on held-out prompts, at the end."""
    entropy: Array
    """Mean over the last third, nats."""


def look_ahead(entry: Entry, fits: Sequence[Fit], seeds: Sequence[int], k: int, target: float | None = None) -> Outlook:
    """Return what a rule reaches in each environment. target: of a rule that has one and is not given it, nats.

    Raises ValueError if the rule cannot run there.
    """
    found = [results(of_entry(entry, one.config, target), seeds, k) for one in fits]
    reward, passed, entropy = (np.stack(values) for values in zip(*found, strict=True))
    return Outlook(entry, reward, passed, entropy)


def of_entry(entry: Entry, environment: Config, target: float | None) -> Config:
    """Return the environment with the rule of an entry. Raises ValueError on a target that it cannot reach."""
    own = any(name.rpartition(".")[2] == "target" for name in entry.args)
    most = log(environment.environment().arms)
    for name, value in entry.args.items():
        if name.rpartition(".")[2] == "target" and isinstance(value, int | float) and value > most:
            raise ValueError(
                f"{entry.name}: the target exceeds {most:.3f} nats, the greatest entropy of an environment like the run"
            )
    return replace(
        environment,
        controller=entry.controller,
        controller_args=dict(entry.args),
        target=target if entry.has_target and not own else None,
    )


def results(config: Config, seeds: Sequence[int], k: int) -> tuple[Array, Array, Array]:
    """Return the late held-out reward, held-out pass@k and entropy of a simulation, (seeds,) each."""
    run = tried(config, seeds)
    assert run.held_out is not None
    return run.held_out.pass_at(1)[:, -LAST:].mean(1), run.held_out.pass_at(k)[:, -LAST:].mean(1), run.entropy_held
