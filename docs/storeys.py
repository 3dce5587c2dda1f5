"""Draw docs/architecture/storeys.png: the folders of llmtrain on their floors, and who imports whom.

    python docs/storeys.py

Floors are those of the import-linter contract in pyproject.toml, arrows those that the code has.
"""

import tomllib
from collections import Counter
from itertools import count
from pathlib import Path

import grimp
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).parents[1]
PACKAGE = "llmtrain"
CODE = ROOT / "packages" / PACKAGE / PACKAGE
OUT = ROOT / "docs/architecture/storeys.png"
WIDTH, FLOOR = 12.0, 1.0
"""Width of the picture and height of a floor, inches."""


def storeys() -> list[list[str]]:
    """Return the folders on each floor, from the top, as the contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [PACKAGE])
    folders = [[name for name in layer.split(" | ") if (CODE / name).is_dir()] for layer in layers]
    return [names for names in folders if names]


def arrows() -> Counter[tuple[str, str]]:
    """Return the number of imports from each folder to each other one."""
    graph = grimp.build_graph(PACKAGE)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = tuple(name.split(".")[1] for name in (module, imported) if "." in name)
            if len(pair) == 2 and pair[0] != pair[1]:
                found[pair[0], pair[1]] += 1
    return found


def lines(folder: str) -> int:
    """Return the lines of code in a folder of the package."""
    return sum(len(file.read_text().splitlines()) for file in (CODE / folder).rglob("*.py"))


def draw() -> None:
    """Write the picture."""
    floors = storeys()
    figure, axes = plt.subplots(figsize=(WIDTH, FLOOR * len(floors)))
    places: dict[str, tuple[float, float]] = {}
    for level, names in zip(count(len(floors) - 1, -1), floors, strict=False):
        for i, name in enumerate(names):
            places[name] = ((i + 0.5) / len(names), level)
    for (a, b), number in arrows().items():
        if a in places and b in places:
            (x, y), (u, v) = places[a], places[b]
            axes.add_patch(
                FancyArrowPatch(
                    (x, y - 0.25),
                    (u, v + 0.25),
                    arrowstyle="-|>",
                    mutation_scale=8,
                    color="tab:blue",
                    alpha=0.25,
                    linewidth=0.5 + 0.15 * min(number, 12),
                    connectionstyle="arc3,rad=0.06",
                )
            )
    for name, (x, y) in places.items():
        box = (x - 0.085, y - 0.24)
        axes.add_patch(
            FancyBboxPatch(box, 0.17, 0.48, boxstyle="round,pad=0.004", facecolor="white", edgecolor="0.3", zorder=2)
        )
        axes.text(x, y + 0.06, name, ha="center", va="center", fontsize=11, weight="bold", zorder=3)
        axes.text(x, y - 0.13, f"{lines(name):,} lines", ha="center", va="center", fontsize=8, color="0.4", zorder=3)
    axes.set(xlim=(0, 1), ylim=(-0.5, len(floors) - 0.5))
    axes.axis("off")
    figure.tight_layout(pad=0.2)
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    draw()
