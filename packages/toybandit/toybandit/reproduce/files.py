"""Files of a figure: NAME.csv with the data drawn; NAME.svg and NAME.png; NAME.json with numbers and findings."""

import csv
import json
from math import isfinite
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from entrostat.logs.runlog import manifest

from ..uncertainty import Measured
from .drawing import LOOK, SIZE
from .registry import QUICK, Effort, Measurement, Reproduction

RESOLUTION = 125
"""Dots per inch of the PNG."""
PALETTE = 96
"""Number of colours in the PNG."""


def command(name: str, effort: Effort) -> str:
    """Return the command line that makes a figure."""
    return f"toybandit reproduce {name}" + (" --quick" if effort == QUICK else "")


def is_full(name: str, folder: Path) -> bool:
    """Return True if the folder contains a figure of this name that was made without --quick."""
    path = folder / f"{name}.json"
    return path.exists() and "--quick" not in json.loads(path.read_text())["command"]


def save(reproduction: Reproduction, data: Measurement, effort: Effort, folder: Path) -> None:
    """Write the four files into `folder`; create it if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    name = reproduction.name
    write_table(data, folder / f"{name}.csv")
    canvas = picture(reproduction, data)
    with matplotlib.rc_context(LOOK):
        canvas.savefig(folder / f"{name}.svg", metadata={"Date": None})
    pixels(canvas).save(folder / f"{name}.png", optimize=True)
    content = {
        **manifest(seed=0),
        "command": command(name, effort),
        "figure": name,
        "source": reproduction.source,
        "shows": reproduction.shows,
        "found": data.found,
        "changes_if": reproduction.changes_if,
        "numbers": {key: value if isfinite(value) else None for key, value in data.numbers.items()},
        "standard_errors": {
            key: value.error
            for key, value in data.numbers.items()
            if isinstance(value, Measured) and isfinite(value.error)
        },
        "sample": data.sample or f"{effort.runs} seeds",
        "seeds": list(range(effort.runs)),
        "scale": effort.scale,
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def picture(reproduction: Reproduction, data: Measurement) -> Figure:
    """Return the drawn figure; it contains nothing that is not in `data`."""
    with matplotlib.rc_context(LOOK):
        canvas = Figure(figsize=SIZE, layout="constrained", dpi=RESOLUTION)
        FigureCanvasAgg(canvas)
        reproduction.draw(canvas, data)
        canvas.draw_without_rendering()
    return canvas


def pixels(canvas: Figure) -> Image.Image:
    """Return the picture with few colours, which makes the file a few times smaller."""
    with matplotlib.rc_context(LOOK):
        agg = FigureCanvasAgg(canvas)
        agg.draw()
    return Image.fromarray(np.asarray(agg.buffer_rgba())).convert("RGB").quantize(PALETTE)


def write_table(data: Measurement, path: Path) -> None:
    """Write the table as CSV: a header, then a row for each mark."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data.table)
        writer.writerows(zip(*(column.tolist() for column in data.table.values()), strict=True))
