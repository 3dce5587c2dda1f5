"""Forecasts of the language model's leaderboard from GRPO's own runs alone; docs/predict.md.

    python -m benchmarks.predict fit                 environments like GRPO's runs      docs/data/predict/fits.json
    python -m benchmarks.predict rank                every entry in them                docs/data/predict/entries.json
    python -m benchmarks.predict fit --without Adam  and rank, without a part           docs/data/predict/without/Adam

benchmarks/pages/predict.py writes the page.
"""

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from entrostat.about.lineup import entries
from toybandit import Config
from toybandit.forecast.fit import Fit, fit
from toybandit.forecast.observed import Observed, observe, together
from toybandit.forecast.outlook import look_ahead

DOCS = Path(__file__).parents[1] / "docs"
LOGS = DOCS / "data" / "leaderboard_lm"
OTHERS = DOCS / "data" / "leaderboard_lm_2"
"""Runs of entries and of GRPO from another start model."""
PLACE = DOCS / "data" / "predict"
TARGET = 0.45
SEARCHES = 4
SEEDS = range(8)
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


def metrics_of(controller: str, seed: int, logs: Path = LOGS) -> list[dict[str, Any]]:
    """Return the steps of a run in a folder of compact logs, by default the language model's leaderboard."""
    columns = json.loads(gzip.decompress((logs / controller / f"{seed}.json.gz").read_bytes()))["metrics"]
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
    """Run every entry in the fitted environments, and write what each reaches, by fit and seed."""
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
            name: np.round(getattr(ahead, name), 4).tolist() for name in ("reward", "passed", "entropy")
        }
        path.write_text(one_a_line(done))


def one_a_line(entries: Mapping[str, Any]) -> str:
    """Return JSON with a line for each entry."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(of)}" for name, of in entries.items()) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("fit", "rank"))
    parser.add_argument("--without", default="", choices=("", *WITHOUT))
    parser.add_argument("--searches", type=int, default=SEARCHES)
    given = parser.parse_args()
    if given.stage == "fit":
        search(given.without, given.searches)
    else:
        rank(given.without)


if __name__ == "__main__":
    main()
