"""Writes what came out into docs/predict.md: python -m benchmarks.pages.predict [--aside]

Judges the forecasts of benchmarks/predict.py by the runs of the language model's leaderboard. Without --aside, only by
the entries that may be looked at while the environment is made.
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from entrostat.about.lineup import entries
from entrostat.registry import REGISTRY
from toybandit.trajectory import Array

from ..page_tables import leading, read_table
from ..predict import DOCS, LOGS, metrics_of, names

RESAMPLES = 2000
LATER = ("aem", "clip_b", "clip_v", "dro", "epo", "ipo", "luspo", "quadrant_mask", "temperature_loop")
"""Controllers that the language model's leaderboard did not have when the protocol was written."""
SHOWN = [
    name
    for row in read_table((DOCS / "leaderboard_lm.md").read_text(encoding="utf-8"), "All entries")[0]
    if row["controller"] not in LATER
    and (name := row["controller"] + (f" ({row['values']})" if row["values"] else ""))
    != "thermostat (mode=temperature)"
]
"""Entries that it had."""


def outcomes() -> dict[str, Array]:
    """Return avg@8, pass@8, reward and entropy of each entry's runs of the language model, (4, seeds)."""
    found = {}
    for entry in entries():
        folder = re.sub(r"[^\w.=-]+", "_", entry.name).strip("_")
        if (LOGS / folder).is_dir():
            found[entry.name] = np.array([outcome(metrics_of(folder, seed)) for seed in range(3)]).T
    return found


def outcome(metrics: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the last avg@8 and pass@8 on held-out problems, and reward and entropy over the last third."""
    last = [[line[name] for line in metrics if line.get(name) is not None] for name in ("eval/avg@8", "eval/pass@8")]
    late = [[line[name] for line in metrics if line.get(name) is not None] for name in ("reward", "entropy")]
    return [*(x[-1] for x in last), *(float(np.mean(x[-(len(x) // 3) :])) for x in late)]


def aside(controllers: Sequence[str]) -> set[str]:
    """Return the third of the controllers that is held aside."""
    ordered = sorted(set(controllers))
    return set(np.random.default_rng(0).choice(ordered, len(ordered) // 3, replace=False))


def family(entry: str) -> str:
    """Return the module that defines an entry's controller."""
    return REGISTRY[entry.split(" ")[0]].__module__


class Correlation(NamedTuple):
    """Rank correlation with its interval over families."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def correlation(x: Array, y: Array, families: Sequence[str]) -> Correlation:
    """Return Spearman's correlation of entries, (n,) each, and a 95% percentile bootstrap over families."""
    members: dict[str, list[int]] = {}
    for i, name in enumerate(families):
        members.setdefault(name, []).append(i)
    groups, random = list(members.values()), np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([groups[i] for i in random.integers(len(groups), size=len(groups))])
        drawn.append(float(spearmanr(x[rows], y[rows]).statistic))
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return Correlation(float(spearmanr(x, y).statistic), float(low), float(high))


def ceiling(runs: Array) -> float:
    """Return the correlation to expect between these means and those of as many other seeds, from runs (n, seeds)."""
    noise = runs.var(1, ddof=1).mean() / runs.shape[1]
    return float(1 - noise / runs.mean(1).var(ddof=1))


def of_old_environments() -> dict[str, dict[str, tuple[float, float]]]:
    """Return reward and entropy of each entry in the bandit's leaderboard, by environment."""
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for environment in ("noisy", "on", "det", "coupled"):
        for row in read_table(text, environment)[0]:
            name = row["controller"] + (f" ({row['values']})" if row["values"] else "")
            found.setdefault(environment, {})[name] = leading(row["reward"]), leading(row["entropy"])
    return found


def judged(without: str, held_aside: bool) -> list[str]:
    """Return the table of correlations, over the entries that may be looked at, or over those held aside."""
    model, made = outcomes(), json.loads(names(without)[1].read_text())
    apart = aside([name.split(" ")[0] for name in SHOWN])
    chosen = [n for n in SHOWN if n in made and "error" not in made[n] and (n.split(" ")[0] in apart) == held_aside]
    return table(chosen, model, made)


def table(chosen: Sequence[str], model: Mapping[str, Array], made: Mapping[str, Any]) -> list[str]:
    """Return lines with the correlation of each predictor over these entries."""
    outcome = {name: np.array([model[n][i].mean() for n in chosen]) for i, name in enumerate(("reward", "pass@8"))}
    families = [family(n) for n in chosen]
    means = {name: np.array([np.mean(made[n][name]) for n in chosen]) for name in ("reward", "passed", "entropy")}
    lines = ["| predictor | entries | held-out reward | held-out pass@8 |", "|---|---|---|---|"]

    def line(title: str, x: Array, y: Array, rows: Array) -> None:
        of = [families[i] for i in np.flatnonzero(rows)]
        cells = [correlation(z[rows], outcome[n][rows], of) for z, n in ((x, "reward"), (y, "pass@8"))]
        lines.append(f"| {title} | {rows.sum()} | {cells[0]} | {cells[1]} |")

    everything = np.ones(len(chosen), dtype=bool)
    line("`features`: reward, pass@8", means["reward"], means["passed"], everything)
    line("null: its entropy, upwards", means["entropy"], means["entropy"], everything)
    line("null: its entropy, downwards", -means["entropy"], -means["entropy"], everything)
    for environment, rows in of_old_environments().items():
        shared = np.array([n in rows for n in chosen])
        reward, entropy = (np.array([rows[n][i] if n in rows else np.nan for n in chosen]) for i in (0, 1))
        line(f"null: reward in `{environment}`", reward, reward, shared)
        line(f"null: entropy in `{environment}`", entropy, entropy, shared)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aside", action="store_true", help="judge by the entries that are held aside, too")
    given = parser.parse_args()
    print("\n".join(judged("", given.aside)))


if __name__ == "__main__":
    main()
