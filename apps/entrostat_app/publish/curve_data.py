"""Lines as data of a page, their colours, and the legend that names them."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ..shared.charts import Panel, thinned
from ..shared.palette import styles
from .claim_grid import rounded

DIGITS = 4
"""Significant digits of a line's numbers."""
COLUMNS = {"x": "x", "y": "value", "low": "low", "high": "high"}
"""Columns of a panel's frame, by their names in a page."""


def panel(given: Panel, names: Sequence[str], most: int) -> dict[str, Any]:
    """Return a panel's means and bands for `lines` of curves.js, at most `most` points each.

    names: all series in the order of their colours; a series that is not there is the target.
    """
    series = []
    for name, frame in given.frame.groupby("series", sort=False):
        at = thinned(len(frame), most)
        columns = {key: rounded(frame[column].to_numpy()[at], DIGITS) for key, column in COLUMNS.items()}
        if name not in names:  # one number for all seeds: no band
            columns = {key: columns[key] for key in "xy"}
        series.append({"style": names.index(name) if name in names else f"{len(names)} target", **columns})
    return {"title": given.title, "series": series}


def coloured(section: str, names: Sequence[str]) -> str:
    """Return the style of the lines s0, s1, … of a section, in the order of their names; section: its id."""
    rules = []
    for number, (colour, dash) in enumerate(styles(names)):
        dashes = " ".join(map(str, dash)) if dash[1] else "none"
        rules.append(f"#{section} .s{number} {{ stroke: {colour}; stroke-dasharray: {dashes} }}")
        rules.append(f"#{section} .band.s{number} {{ stroke: none; fill: {colour} }}")
        rules.append(f"#{section} .raw.s{number} {{ stroke-dasharray: none }}")
    return f"<style>{' '.join(rules)}</style>"


def legend(names: Iterable[str], controls: bool = False) -> str:
    """Return the names beside a sample of their lines; controls: with a box that shows or hides each."""
    parts = []
    for number, name in enumerate(names):
        line = f'<path class="line s{number}" d="M0 4h26"/>'
        sample = f'<svg class="key" aria-hidden="true" viewBox="0 0 26 8">{line}</svg>'
        box = f'<input type="checkbox" value="{number}" checked autocomplete="off">' if controls else ""
        tag = "label" if controls else "span"
        parts.append(f"<li><{tag}>{box}{sample}{escape(name)}</{tag}></li>")
    return f'<ul class="legend">{"".join(parts)}</ul>'
