"""Pictures of claims, drawn from the measurements behind the verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..workspace import one_thread
from .registry import Effort

Draw = Callable[[Figure, Effort], None]
LOOK: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
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
