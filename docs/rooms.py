"""Draw docs/architecture/PACKAGE.png: the rooms of each package on their floors, and the way of a token, by numbers.

    python docs/rooms.py

Floors are those of the import-linter contracts in pyproject.toml: a room imports only from the floors below it.
"""

import ast
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[1]
CODE = {
    "entrostat": ROOT / "packages/common/entrostat",
    "toybandit": ROOT / "packages/toybandit/toybandit",
    "llmtrain": ROOT / "packages/llmtrain/llmtrain",
}
WAYS = {
    "entrostat": {
        "advantages": "rewards of a group become advantages",
        "tokens": "a mini-batch becomes Tokens",
        "chaining": "each part of a chain gets the tokens it reads",
        "controllers": "rules set weights, bonuses and masks",
        "surrogates": "the surrogate clips or reweights the ratio",
        "plan": "a Plan gives the loss of any slice",
    },
    "toybandit": {
        "environments": "prompts, arms and what they pay",
        "policy": "logits give log π and H",
        "rollout": "arms are drawn and paid",
        "control": "the controller plans each pass",
        "simulator": "passes over the rollout",
        "updates": "a gradient becomes a step on the logits",
        "trajectory": "entropy and reward of all runs",
    },
    "llmtrain": {
        "data": "a question becomes token ids",
        "rollout": "a response is drawn, with log π",
        "verifiers": "a verdict",
        "tasks": "a reward",
        "sequences": "responses move to the ranks that train them",
        "policy": "log π and H under the trainer's policy",
        "kernels": "loss and gradient, a chunk of logits at a time",
        "training": "an optimizer step; the controller observes",
    },
}
"""Rooms that a token passes, in order, and what happens there."""
LEFT_OUT = {"__main__", "moved", "demo"}
WIDTH, FLOOR, GAP = 13.0, 1.05, 0.012
"""Width of a picture and height of a floor, inches; distance of rooms as a share of the width."""


def floors(package: str) -> list[list[str]]:
    """Return the rooms on each floor, from the top, as the contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [package])
    named = [[name for name in layer.split(" | ") if name not in LEFT_OUT] for layer in layers]
    return [names for names in named if names]


def files(package: str, room: str) -> list[Path]:
    """Return the files of a room, the one with its docstring first."""
    folder = CODE[package] / room
    return (
        [folder / "__init__.py", *sorted(folder.rglob("[!_]*.py"))] if folder.is_dir() else [folder.with_suffix(".py")]
    )


def idea(package: str, room: str) -> str:
    """Return the idea of a room: the beginning of its docstring."""
    said = (ast.get_docstring(ast.parse(files(package, room)[0].read_text())) or "").partition("\n")[0]
    return said.partition(". ")[0].rstrip(".").replace("`", "")


def rows(package: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of rooms with their floor's number; a floor of many rooms takes two rows."""
    for number, names in enumerate(floors(package)):
        size = -(-len(names) // (2 if len(names) > 4 else 1))
        for start in range(0, len(names), size):
            yield number, names[start : start + size]


def draw(package: str) -> None:
    """Write the picture of a package."""
    found, way = list(rows(package)), list(WAYS[package])
    figure, axes = plt.subplots(figsize=(WIDTH, FLOOR * len(found)))
    for level, (number, names) in enumerate(found):
        axes.axhspan(-level - 0.5, -level + 0.5, color="0.95" if number % 2 else "1", zorder=0)
        for i, name in enumerate(names):
            step = way.index(name) + 1 if name in way else 0
            room(axes, package, name, i / len(names) + GAP, (i + 1) / len(names) - GAP, -level, step)
    axes.set(xlim=(0, 1), ylim=(-len(found) + 0.5, 0.5))
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    out = ROOT / f"docs/architecture/{package}.png"
    out.parent.mkdir(exist_ok=True)
    figure.savefig(out, dpi=110)
    plt.close(figure)


def room(axes: Axes, package: str, name: str, left: float, right: float, y: float, step: int) -> None:
    """Draw one room: its name, its size, its idea, and the step of the way in it; 0 for none."""
    box = FancyBboxPatch(
        (left, y - 0.42),
        right - left,
        0.84,
        boxstyle="round,pad=0,rounding_size=0.006",
        facecolor="#fff4e5" if step else "white",
        edgecolor="tab:orange" if step else "0.55",
        mutation_aspect=WIDTH,
    )
    axes.add_patch(box)
    lines = sum(len(file.read_text().splitlines()) for file in files(package, name))
    x = left + 0.006
    axes.text(x, y + 0.25, name, va="center", fontsize=11, weight="bold")
    axes.text(right - 0.006, y + 0.25, f"{lines:,} lines", va="center", ha="right", fontsize=8, color="0.5")
    wrapped = textwrap.wrap(idea(package, name), int(175 * (right - left)))
    text = "\n".join(wrapped[:2]) + (" …" if len(wrapped) > 2 else "")
    axes.text(x, y + 0.11, text, va="top", fontsize=8.5, color="0.25")
    if step:
        number = {"boxstyle": "circle,pad=0.2", "facecolor": "tab:orange", "edgecolor": "none"}
        axes.text(x + 0.008, y - 0.29, str(step), ha="center", va="center", fontsize=8.5, color="white", bbox=number)
        axes.text(x + 0.022, y - 0.29, WAYS[package][name], va="center", fontsize=9, color="#b35900")


if __name__ == "__main__":
    for package in CODE:
        draw(package)
