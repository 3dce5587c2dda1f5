"""Pictures of claims, drawn from the measurements behind the verdicts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from entrostat.about.colours import PALETTE, linestyle
from entrostat.about.end_labels import End, label_ends

from ..figures import series_styles
from ..trajectory import Array
from ..workspace import one_thread
from .registry import Effort

Draw = Callable[[Figure, Effort], None]
LOOK: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=PALETTE),
    "legend.frameon": False,
}
SIZE = (5.5, 3.4)
"""Width and height of a picture, inches."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Picture of a claim."""

    caption: str
    draw: Draw

    def save(self, effort: Effort, path: Path) -> None:
        """Draw the picture and write it to `path`."""
        with mpl.rc_context(LOOK), one_thread():
            figure = Figure(figsize=SIZE, layout="constrained")
            FigureCanvasAgg(figure)
            self.draw(figure, effort)
            figure.savefig(path, dpi=150)


PICTURES: dict[str, Picture] = {}
"""Pictures by the name of their claim."""


def picture(claim: str, *, caption: str) -> Callable[[Draw], Draw]:
    """Register the decorated function to draw the picture of a claim."""

    def add(draw: Draw) -> Draw:
        if claim in PICTURES:
            raise ValueError(f"claim {claim!r} has two pictures")
        PICTURES[claim] = Picture(caption=caption, draw=draw)
        return draw

    return add


def panels(figure: Figure, curves: Mapping[str, Mapping[str, Array]]) -> list[Axes]:
    """Draw a panel for each title, with the mean over runs of each entropy (nats), (runs, rollouts + 1).

    Names stand at the ends of the lines in the last panel. Return the panels.
    """
    found = list(figure.subplots(1, len(curves), sharey=True, squeeze=False)[0])
    for axes, (title, shown) in zip(found, curves.items(), strict=True):
        ends = []
        for (name, values), style in zip(shown.items(), series_styles(list(shown)), strict=True):
            mean = values.mean(0)
            axes.plot(mean, color=style.colour, linestyle=linestyle(style.dash))
            ends.append(End(name, (len(mean) - 1, float(mean[-1])), style.colour))
        axes.set(title=title, xlabel="rollout")
    found[0].set(ylabel="mean entropy (nats)", ylim=(0, None))
    label_ends(found[-1], ends)
    return found
