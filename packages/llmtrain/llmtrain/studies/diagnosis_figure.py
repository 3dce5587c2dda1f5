"""Figure of a diagnosis: entropy and reward of a run above each other, with the steps of its events."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from entrostat.about.colours import PALETTE
from entrostat.logs.diagnosis.events import Happened
from entrostat.logs.diagnosis.numbers import numbers
from entrostat.logs.diagnosis.sketch import CURVES, is_logarithmic


def figure(name: str, metrics: Sequence[Mapping[str, Any]], happened: Happened, path: str | Path) -> None:
    """Draw the curves with a dashed line at each event and its sentence as title; save them to `path`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn = {label: found for key, label in CURVES.items() if len((found := numbers(metrics, key))[0])}
    if not drawn:
        raise ValueError(f"{name} has logged neither entropy nor reward: there is nothing to draw")
    fig, panels = plt.subplots(len(drawn), 1, figsize=(8, 2.4 * len(drawn) + 0.8), sharex=True, squeeze=False)
    for axes, colour, (label, (at, values)) in zip(panels[:, 0], PALETTE, drawn.items(), strict=False):
        axes.plot(at, values, color=colour, linewidth=1.6)
        axes.set(ylabel=label, yscale="log" if is_logarithmic(values) else "linear")
        axes.grid(alpha=0.3)
        for step, word in happened.marks:
            axes.axvline(step, color="#333333", linestyle="--", linewidth=1)
            if axes is panels[0, 0]:
                place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
                axes.annotate(f"{word} {step}", (step, 1), (3, -10), fontsize=8, **place)
    panels[-1, 0].set_xlabel("step")
    fig.suptitle(fill(happened.told or "Nothing of note.", 95), fontsize=9, x=0.02, ha="left")
    fig.set_layout_engine("constrained")
    fig.savefig(path, dpi=130)
    plt.close(fig)
