"""Curves of a run as text: entropy and reward in braille dots, with the steps of its events below.

    print(sketch(metrics, [(60, "fell"), (140, "exploded")]))

A column of text is two dots wide and four dots high; where several steps share a dot's column, the line runs from their
lowest to their highest value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numbers import numbers

Array = NDArray[np.float64]

WIDE, HIGH = 72, 5
"""Columns and lines of a curve."""
BRAILLE = 0x2800
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of a dot in its character, by row and column."""
CURVES = {"entropy": "entropy (nats)", "reward": "reward"}
DECADES = 30.0
"""Ratio of the highest to the lowest value, both positive, from which a curve is drawn by its logarithm."""


def sketch(metrics: Sequence[Mapping[str, Any]], marks: Sequence[tuple[int, str]]) -> str:
    """Return the curves of CURVES that have two values or more, and the marks below them; empty without a curve.

    metrics: a mapping for each step with `step` and metrics under entrostat's names. marks: steps with a word each.
    """
    drawn = {name: found for name in CURVES if len((found := numbers(metrics, name))[0]) > 1}
    if not drawn:
        return ""
    first, last = (ends(at[end] for at, _ in drawn.values()) for ends, end in ((min, 0), (max, -1)))
    lines = []
    for name, (at, values) in drawn.items():
        low, high = float(values.min()), float(values.max())
        logarithmic = is_logarithmic(values)
        labels = [f"{high:.3g}", *[""] * (HIGH - 2), f"{low:.3g}"]
        lines.append(f"{CURVES[name]}{', logarithmic' if logarithmic else ''}")
        rows = curve((at - first) / (last - first), np.log(values) if logarithmic else values)
        lines += [f"{label:>8} {row}".rstrip() for label, row in zip(labels, rows, strict=True)]
    columns = [round((step - first) / (last - first) * (WIDE - 1)) for step, _ in marks]
    ruler = [" "] * WIDE
    for column in columns:
        ruler[min(max(column, 0), WIDE - 1)] = "▲"
    told = ", ".join(f"{word} {step}" for step, word in marks)
    ends = f"step {first}"
    lines.append(f"{'':8} {''.join(ruler)}".rstrip() if marks else "")
    lines.append(f"{'':8} {ends}{f'{last}':>{WIDE - len(ends)}}")
    return "\n".join([line for line in lines if line] + ([f"{'':8} ▲ {told}"] if told else []))


def is_logarithmic(values: Array) -> bool:
    """Return True if a curve of these values (n,) is drawn by its logarithm."""
    return bool(0 < values.min() <= values.max() / DECADES)


def curve(x: Array, y: Array, wide: int = WIDE, high: int = HIGH) -> list[str]:
    """Return lines of braille, from top to bottom, of a curve through points (n,) whose x lie between 0 and 1."""
    span = float(np.ptp(y)) or 1.0
    column = np.round(x * (2 * wide - 1)).astype(int)
    row = np.round((1 - (y - y.min()) / span) * (4 * high - 1)).astype(int)
    at = np.arange(2 * wide)
    drawn = (at >= column[0]) & (at <= column[-1])
    line = np.round(np.interp(at, column, row)).astype(int)
    top, bottom = line.copy(), line.copy()
    np.minimum.at(top, column, row)
    np.maximum.at(bottom, column, row)
    top[1:], bottom[1:] = np.minimum(top[1:], line[:-1] + 1), np.maximum(bottom[1:], line[:-1] - 1)
    rows = np.arange(4 * high)[:, None]
    dots = (rows >= top) & (rows <= bottom) & drawn
    bits = dots.reshape(high, 4, wide, 2).transpose(0, 2, 1, 3) * DOTS
    return ["".join(chr(BRAILLE + int(bit)) for bit in line) for line in bits.sum((2, 3))]
