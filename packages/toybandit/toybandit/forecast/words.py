"""Outlooks as a table, with the notes that a reader needs to judge them."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table

from entrostat.about.lineup import Entry

from ..run import PLAIN, SAME
from ..trajectory import Array
from .fit import Fit
from .observed import SCALE, Observed
from .outlook import Outlook

FACTOR = 2.0
"""Standard errors from which a difference is told apart."""
BAD = 1.0
"""Root mean square of the differences from the run, in units of SCALE, from which an environment is not like it."""


def table(outlooks: Sequence[Outlook], k: int, like: bool = True) -> Table:
    """Return a table of the rules, the highest pass@k first. The first outlook is plain GRPO's.

    like: the environments do what the run did. If not, nothing is told apart.
    """
    plain = outlooks[0]
    out = Table(
        caption=f"late, on held-out prompts; ± is {FACTOR:g} standard errors of the difference from "
        f"{name_of(plain.entry)}, over environments and seeds; * tells apart",
        caption_justify="left",
        box=SIMPLE,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    out.add_column("rule", overflow="fold")
    for title in ("entropy", "reward", "difference", f"pass@{k}", "difference"):
        out.add_column(title, justify="right")
    for one in sorted(outlooks, key=lambda one: -one.passed.mean()):
        cells = [name_of(one.entry), f"{one.entropy.mean():.3f}"]
        for here, there in ((one.reward, plain.reward), (one.passed, plain.passed)):
            cells += [f"{here.mean():.3f}", "" if one is plain else told(*difference(here, there), like)]
        out.add_row(*cells)
    return out


def difference(here: Array, there: Array) -> tuple[float, float]:
    """Return the mean difference of two rules, (fits, seeds) each, and its standard error.

    Environments are fitted independently, and rules share seeds: the error is that of the environments' mean
    differences, at least that of the seeds.
    """
    each = here - there
    of_fits = each.mean(1).std(ddof=1) / sqrt(len(each)) if len(each) > 1 else 0.0
    of_seeds = sqrt(float((each.var(1, ddof=1) / each.shape[1]).mean()) / len(each))
    return float(each.mean()), max(float(of_fits), of_seeds)


def name_of(entry: Entry) -> str:
    """Return the name of a rule as users know it."""
    return PLAIN if entry.name in SAME else entry.name


def told(value: float, error: float, like: bool = True) -> str:
    """Return a difference with half its interval, marked if it is told apart from 0 in environments like the run."""
    mark = "*" if like and abs(value) > FACTOR * error else " "
    return f"{value:+.3f} ±{FACTOR * error:.3f}{mark}"


def notes(seen: Observed, fits: Sequence[Fit]) -> list[str]:
    """Return sentences: what was read, how like it the environments are, and how often such forecasts were right."""
    off = distances(seen, fits)
    reward = "" if np.isnan(seen.reward).any() else f"reward {seen.reward[0]:.2f} → {seen.reward[1]:.2f}, "
    lines = [
        f"read: {seen.steps} of {seen.total} steps, entropy {seen.entropy[0]:.2f} → {seen.entropy[-1]:.2f} nats, "
        f"{reward}{len(seen.passed)} evaluations",
        f"environments: {len(fits)}, off by {min(off):.3f} to {max(off):.3f} "
        f"(root mean square of {known(seen)} numbers)",
    ]
    if not alike(seen, fits):
        lines.append("warning: no environment does what this run did, so the order says nothing about it")
    if not np.isfinite(seen.passed).any():
        lines.append("warning: without pass@k on held-out problems in the log, its forecast rests on the rest alone")
    return [*lines, *seen.doubts, past()]


def past() -> str:
    """Return how often forecasts of one leaderboard were right, a sentence."""
    record = measured()
    return (
        f"past: over {record['entries']} entries of one small model's leaderboard that were held aside, the rank "
        f"correlation with the outcome was {record['reward']} for reward and {record['pass@8']} for pass@8; where "
        f"pass@8 was told apart from GRPO's, its sign was right in {record['right']} of {record['told']} "
        "(docs/predict.md)"
    )


def distances(seen: Observed, fits: Sequence[Fit]) -> list[float]:
    """Return the root mean square of each environment's differences from the run."""
    return [sqrt(one.distance / known(seen)) * SCALE for one in fits]


def known(seen: Observed) -> int:
    """Return how many numbers of a run were logged."""
    return int(np.isfinite(seen.numbers).sum())


def alike(seen: Observed, fits: Sequence[Fit]) -> bool:
    """Return True if an environment does what the run did."""
    return min(distances(seen, fits)) <= BAD * SCALE


@cache
def measured() -> dict[str, Any]:
    """Return the record of past forecasts."""
    record: dict[str, Any] = json.loads((files(__package__) / "record.json").read_text())
    return record
