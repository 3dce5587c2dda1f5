"""Draw docs/picture: GRPO and a thermostat as their runs unfold (picture.gif), entropy and pass@8 (panels.png).

    python docs/picture.py

Runs and seeds are those of `toybandit.picture`. A line is the mean over seeds, its band reaches from the lowest to the
highest seed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from entrostat.about.colours import colour_of
from entrostat.about.end_labels import End, label_ends
from toybandit.figures import band
from toybandit.picture import PAYS, TARGET, TOP, K, Side, sides

OUT = Path(__file__).parent / "picture"
FRAMES = 65
"""Pictures of the animation."""
MILLISECONDS, LAST = 80, 5000
"""Time for which a picture is shown, and the last one."""
COLOURS = 64
"""Colours of the animation, which keep it small."""


def panels(runs: Mapping[str, Side]) -> Figure:
    """Return the figure of entropy and pass@K."""
    figure = Figure(figsize=(8, 3), dpi=150, layout="constrained")
    draw_lines(figure.subplots(1, 2), runs)
    return figure


def moment(runs: Mapping[str, Side], rollout: int) -> Figure:
    """Return the figure of the lines up to a rollout, and of both policies before it as bars."""
    figure = Figure(figsize=(8, 4.4), dpi=110, layout="constrained")
    above, below = figure.subplots(2, 2, height_ratios=(3, 2))
    draw_lines(above, runs, rollout)
    for axes, (name, run) in zip(below, runs.items(), strict=True):
        policy = run.policy[rollout]
        axes.bar(range(len(policy)), policy, color=colour_of(name))
        middle = (len(policy) - 1) / 2
        axes.set(ylim=(0, 1), yticks=(0, 0.5, 1), xticks=(-0.4, middle, 2 * middle + 0.4), xticklabels=PAYS)
        for label, side in zip(axes.get_xticklabels(), ("left", "center", "right"), strict=True):
            label.set_horizontalalignment(side)
        axes.tick_params("x", length=0)
        dress(axes, f"policy of {name}: reward {run.reward[:, rollout].mean():.2f}")
    return figure


def draw_lines(axes: Any, runs: Mapping[str, Side], rollout: int | None = None) -> None:
    """Draw entropy and pass@K into two axes, up to a rollout if one is given."""
    shown = slice(None if rollout is None else rollout + 1)
    for one, what, title, top in zip(
        axes, ("entropy", "passed"), ("entropy (nats)", f"pass@{K}"), (TOP, 1.05), strict=True
    ):
        ends = []
        for name, run in runs.items():
            values = getattr(run, what)[:, shown]
            band(one, values, colour_of(name))
            ends.append(End(name, (values.shape[1] - 1, float(values[:, -1].mean())), colour_of(name)))
        one.set(xlim=(0, len(run.policy) - 1), ylim=(0, top), xlabel="rollout")
        if what == "entropy":
            one.axhline(TARGET, color="black", linestyle="--", linewidth=1)
            ends.append(End(f"target {TARGET:g}", (len(run.policy) - 1, TARGET), "black"))
        label_ends(one, ends)
        dress(one, title)


def dress(axes: Any, title: str) -> None:
    """Give axes a title, and take away the lines above and to the right."""
    axes.set_title(title, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def image(figure: Figure) -> Image.Image:
    """Return a figure as pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def main() -> None:
    """Write both files."""
    OUT.mkdir(exist_ok=True)
    runs = sides()
    image(panels(runs)).quantize(256).save(OUT / "panels.png", optimize=True)
    last = len(next(iter(runs.values())).policy) - 1
    drawn = [image(moment(runs, round(rollout))) for rollout in np.linspace(0, last, FRAMES)]
    palette = drawn[-1].quantize(COLOURS)
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in drawn)
    shown = [MILLISECONDS] * (FRAMES - 1) + [LAST]
    first.save(OUT / "picture.gif", save_all=True, append_images=others, duration=shown, loop=0)


if __name__ == "__main__":
    main()
