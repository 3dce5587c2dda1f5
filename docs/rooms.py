"""Draw docs/architecture/PACKAGE.png: the rooms of each package on their floors, and the way of a token, by numbers.

    python docs/rooms.py

Floors are those of the import-linter contracts in pyproject.toml: a room imports only from the floors below it.
"""

import ast
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from entrostat.about.colours import PALETTE

ROOT = Path(__file__).parents[1]
CODE = {
    "entrostat": ROOT / "packages/common/entrostat",
    "toybandit": ROOT / "packages/toybandit/toybandit",
    "llmtrain": ROOT / "packages/llmtrain/llmtrain",
}
WAYS = {
    "entrostat": {
        "advantages": "rewards become advantages",
        "tokens": "a mini-batch becomes Tokens",
        "chaining": "each part of a chain gets the tokens it reads",
        "controllers": "rules set weights and masks",
        "surrogates": "the surrogate clips ratios",
        "plan": "a Plan gives the loss of any slice",
    },
    "toybandit": {
        "environments": "prompts, arms and what they pay",
        "policy": "logits give log π and H",
        "rollout": "arms are drawn and paid",
        "control": "the controller plans each pass",
        "simulator": "passes over the rollout",
        "updates": "a gradient moves the logits",
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
ORANGE = PALETTE[1]
LEFT_OUT = {"__main__", "moved", "demo"}
WIDTH, GAP, LINE = 8.0, 0.08, 0.165
"""Width of a picture, half the distance of rooms, and height of a line of text, inches."""
ABREAST, LETTER, MOST = 3, 0.069, 3
"""Most rooms in a row, width of a letter (inches), and most lines of an idea."""


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
    """Yield the rows of rooms with their floor's number; a floor of many rooms takes several rows."""
    for number, names in enumerate(floors(package)):
        size = -(-len(names) // -(-len(names) // ABREAST))
        for start in range(0, len(names), size):
            yield number, names[start : start + size]


def lines_of(package: str, name: str, width: float) -> list[str]:
    """Return the idea of a room `width` inches wide in lines, with the step of the way in the room as the last one."""
    wrapped = textwrap.wrap(idea(package, name), int((width - 4 * GAP) / LETTER), max_lines=MOST, placeholder=" …")
    return [*wrapped, *([WAYS[package][name]] if name in WAYS[package] else [])]


def draw(package: str) -> None:
    """Write the picture of a package."""
    found = [
        (number, {name: lines_of(package, name, WIDTH / len(names)) for name in names})
        for number, names in rows(package)
    ]
    heights = [LINE * (2.1 + max(map(len, texts.values()))) + 2 * GAP for _, texts in found]
    figure, axes = plt.subplots(figsize=(WIDTH, sum(heights)))
    top = sum(heights)
    axes.set(xlim=(0, WIDTH), ylim=(0, top))
    for (number, texts), height in zip(found, heights, strict=True):
        axes.axhspan(top - height, top, color="0.95" if number % 2 else "1", zorder=0)
        for i, (name, text) in enumerate(texts.items()):
            wide = WIDTH / len(texts)
            room(axes, package, name, text, (i * wide + GAP, top - height + GAP, wide - 2 * GAP, height - 2 * GAP))
        top -= height
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    out = ROOT / f"docs/architecture/{package}.png"
    out.parent.mkdir(exist_ok=True)
    figure.savefig(out, dpi=150)
    plt.close(figure)


def room(axes: Axes, package: str, name: str, text: Sequence[str], place: tuple[float, float, float, float]) -> None:
    """Draw one room: its name, its size and its text. place: left, bottom, width and height, inches."""
    left, bottom, width, height = place
    step = list(WAYS[package]).index(name) + 1 if name in WAYS[package] else 0
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor="#fff4e5" if step else "white",
            edgecolor=ORANGE if step else "0.55",
        )
    )
    x, y = left + GAP, bottom + height - LINE
    size = sum(len(file.read_text().splitlines()) for file in files(package, name))
    axes.text(x, y, name, va="center", fontsize=10, weight="bold")
    axes.text(left + width - GAP, y, f"{size:,} lines", va="center", ha="right", fontsize=8, color="0.4")
    for i, line in enumerate(text):
        y -= LINE * (1.15 if i == 0 else 1)
        if step and i == len(text) - 1:
            number = {"boxstyle": "circle,pad=0.15", "facecolor": ORANGE, "edgecolor": "none"}
            axes.text(x + 0.07, y, str(step), ha="center", va="center", fontsize=8, color="white", bbox=number)
            axes.text(x + 0.22, y, line, va="center", fontsize=8.5, color="#a34700")
        else:
            axes.text(x, y, line, va="center", fontsize=8.5, color="0.25")


if __name__ == "__main__":
    for package in CODE:
        draw(package)
