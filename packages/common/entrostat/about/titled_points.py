"""Pictures of many entries: the best have names, others are grey; in an SVG each shows its name under the pointer."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path, PurePosixPath
from textwrap import shorten
from typing import Any, NamedTuple

NAMED = 5
"""Number of entries that a panel names beside the baseline: the best."""
OTHERS = "#c4c4c4"
"""Colour of the other entries."""
LONGEST = 32
"""Upper limit for the characters of a name at the right of a panel."""
REACH = 6
"""Diameter around a point in which the pointer finds it, points."""
VECTOR = ".svg"
"""Suffix of the picture with titles."""


class Titled(NamedTuple):
    """Point of a picture."""

    axes: Any
    at: tuple[float, float]
    """x and y, in units of the data."""
    title: str


def short(name: str) -> str:
    """Return a name that fits at the right of a panel."""
    return shorten(name, LONGEST, placeholder=" …")


def explain_marks(axes: Any) -> None:
    """Add both kinds of marks to the legend."""
    for filled, text in ((OTHERS, "without a target"), ("white", "with a target")):
        axes.plot([], [], "o", ms=5, color=OTHERS, markerfacecolor=filled, label=text)


def save(figure: Any, path: Path, points: Sequence[Titled]) -> None:
    """Write a figure as PNG to `path`, and beside it as SVG, in which a point shows its title under the pointer."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    for number, point in enumerate(points):
        point.axes.plot(*([value] for value in point.at), "o", ms=REACH, alpha=0, gid=_id(number))
    vector = path.with_suffix(VECTOR)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):  # text as text; the same file each time
        figure.savefig(vector, metadata={"Date": None})
    vector.write_text(_with_titles(vector.read_text(), [point.title for point in points]))


def markdown(words: str, picture: str) -> str:
    """Return a picture that `save` wrote, described in `words`, as Markdown; a click opens the SVG."""
    return f"[![{words}]({picture})]({PurePosixPath(picture).with_suffix(VECTOR)})"


def _id(number: int) -> str:
    return f"point-{number}"


def _with_titles(svg: str, titles: Iterable[str]) -> str:
    """Return the picture with a <title> in the group of each point."""
    for number, title in enumerate(titles):
        opening = f'<g id="{_id(number)}">'
        svg = svg.replace(opening, f"{opening}<title>{escape(title)}</title>", 1)
    return svg
