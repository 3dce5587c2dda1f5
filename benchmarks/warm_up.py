"""Entropy and pass@8 that supervised warm-ups leave before RL: docs/trainer.md's table of a pretrained model.

python benchmarks/warm_up.py                 print the table from docs/data/warm_up.json
python benchmarks/warm_up.py EVALUATION...   first store those of folders ev-LOSS-SEED-TEMPERATURE
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent.parent / "docs/data/warm_up.json"
NAME = re.compile(r"ev-(\w+)-(\d+)-([\d.]+)")
COLUMNS = ("avg@n", "pass@8", "entropy")
"""Columns of results.md that are kept: percent, percent, nats."""


def results(folder: Path) -> dict[str, list[float]]:
    """Return the numbers of COLUMNS for each benchmark of an evaluation."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    for line in (folder / "results.md").read_text().splitlines():
        found = line.strip("| ").split(" | ")
        if found[0] == "benchmark":
            heading = found
        elif line.startswith("| ") and found[0] != "---" and len(found) == len(heading):
            cells[found[0]] |= zip(heading, found, strict=True)
    rows = {name: row for name, row in cells.items() if row.keys() >= {*COLUMNS}}
    return {name: [float(row[column].split("%")[0]) for column in COLUMNS] for name, row in rows.items()}


def store(folders: list[Path]) -> None:
    """Write the numbers of evaluations, by loss, temperature and seed."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for folder in folders:
        loss, seed, temperature = NAME.fullmatch(folder.name).groups()  # type: ignore[union-attr]
        found[f"{loss} at {temperature}"][seed] = results(folder)
    DATA.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def table() -> str:
    """Return means over seeds, ± one standard error, of the means over benchmarks."""
    lines = ["| warm-up | seeds | avg@8 | pass@8 | entropy at 1 (nats) |", "|---|---|---|---|---|"]
    for name, seeds in json.loads(DATA.read_text()).items():
        numbers = np.array([[*seeds[seed].values()] for seed in sorted(seeds)]).mean(1)
        errors = numbers.std(0, ddof=1) / len(numbers) ** 0.5
        mean = numbers.mean(0)
        cells = [f"{mean[i]:.1f}% ± {errors[i]:.1f}" for i in (0, 1)] + [f"{mean[2]:.3f} ± {errors[2]:.3f}"]
        lines.append(f"| {name} | {len(numbers)} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        store([Path(one) for one in sys.argv[1:]])
    print(table())
