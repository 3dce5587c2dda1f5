"""Forecasts of the language model's leaderboard from GRPO's own runs alone; docs/predict.md.

    python -m benchmarks.predict fit                 environments like GRPO's runs      docs/data/predict/fits.json
    python -m benchmarks.predict rank                every entry in them                docs/data/predict/entries.json
    python -m benchmarks.predict fit --without Adam  and rank, without a part           docs/data/predict/without/Adam.*
    python -m benchmarks.predict page [--aside]      tables of docs/predict.md

Without --aside the page has the entries that may be looked at while the environment is made, with it the others too.
"""

import argparse
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from entrostat.about.lineup import entries
from entrostat.registry import REGISTRY
from toybandit import Config
from toybandit.forecast.fit import Fit, fit
from toybandit.forecast.observed import Observed, observe, together
from toybandit.forecast.outlook import look_ahead
from toybandit.trajectory import Array

from .page_tables import leading, read_table

DOCS = Path(__file__).parents[1] / "docs"
LOGS = DOCS / "data" / "leaderboard_lm"
PLACE = DOCS / "data" / "predict"
TARGET = 0.45
SEARCHES = 4
SEEDS = range(8)
RESAMPLES = 2000
WITHOUT: dict[str, dict[str, Any]] = {
    "shared weights": {"features": 128, "coupling": 0.0},
    "a common feature": {"coupling": 0.0},
    "fresh prompts": {"pool": 32},
    "several tokens": {"length": 1, "branching": 1},
    "Adam": {"update": "sgd"},
    "what cannot be learnt": {"predictable": 1.0},
    "a supervised start": {"skill": 0.0},
}
"""Parts of the environment, and the numbers without them."""


def metrics_of(controller: str, seed: int) -> list[dict[str, Any]]:
    """Return the steps of a run of the language model's leaderboard."""
    columns = json.loads(gzip.decompress((LOGS / controller / f"{seed}.json.gz").read_bytes()))["metrics"]
    return [
        {"step": step, **{k: v[i] for k, v in columns.items() if k != "step"}} for i, step in enumerate(columns["step"])
    ]


def observed() -> Observed:
    """Return the numbers of GRPO's three runs."""
    return together([observe(metrics_of("ppo", seed)) for seed in range(3)])


def names(without: str) -> tuple[Path, Path]:
    """Return the files of fits and of entries."""
    folder = PLACE / "without" / without.replace(" ", "_") if without else PLACE
    return folder / "fits.json", folder / "entries.json"


def search(without: str, searches: int) -> None:
    """Fit environments to GRPO's runs, and write them."""
    path = names(without)[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    seen, fixed = observed(), WITHOUT.get(without, {})
    found = []
    for seed in range(searches):
        one = fit(seen, seed=seed, fixed=fixed)
        plain = {key: value for key, value in asdict(one.config).items() if value is not None and value != {}}
        found.append({"distance": one.distance, "config": plain})
        print(without, seed, round(one.distance, 1), flush=True)
        path.write_text(json.dumps(found, indent=1) + "\n")


def read_fits(without: str = "") -> list[Fit]:
    """Return the fitted environments."""
    return [Fit(Config(**one["config"]), one["distance"]) for one in json.loads(names(without)[0].read_text())]


def rank(without: str, only: Sequence[str] = ()) -> None:
    """Run every entry in the fitted environments, and write what each reaches: means over seeds, by fit."""
    fits, path = read_fits(without), names(without)[1]
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for entry in entries():
        if entry.name in done or (only and entry.controller not in only):
            continue
        try:
            ahead = look_ahead(entry, fits, SEEDS, 8, TARGET)
        except ValueError as error:
            done[entry.name] = {"error": str(error)}
            continue
        done[entry.name] = {
            name: np.round(getattr(ahead, name).mean(1), 5).tolist() for name in ("reward", "passed", "entropy")
        }
        path.write_text(json.dumps(done, indent=1) + "\n")


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
    parser.add_argument("stage", choices=("fit", "rank", "judge"))
    parser.add_argument("--without", default="", choices=("", *WITHOUT))
    parser.add_argument("--searches", type=int, default=SEARCHES)
    parser.add_argument("--aside", action="store_true", help="judge by the entries that are held aside")
    given = parser.parse_args()
    if given.stage == "fit":
        search(given.without, given.searches)
    elif given.stage == "rank":
        rank(given.without)
    else:
        print("\n".join(judged(given.without, given.aside)))


if __name__ == "__main__":
    main()
