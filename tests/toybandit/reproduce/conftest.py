"""Checks that figures of all papers go through."""

import csv

import numpy as np
import pytest

from toybandit.reproduce import Measurement
from toybandit.reproduce.files import picture, write_table


def pixels(canvas):
    canvas.canvas.draw()
    return np.asarray(canvas.canvas.buffer_rgba())


def read_table(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, map(np.array, zip(*rows, strict=True)), strict=True))
    for name, column in columns.items():
        try:
            columns[name] = column.astype(int)
        except ValueError:
            try:
                columns[name] = column.astype(float)
            except ValueError:
                continue
    return columns


@pytest.fixture
def drawn_from_its_table(tmp_path):
    """Whether the picture is the same when nothing but the CSV is there to draw from, and has something on it."""

    def check(reproduction, data):
        write_table(data, tmp_path / "table.csv")
        again = Measurement(read_table(tmp_path / "table.csv"), {}, "")
        image = pixels(picture(reproduction, data))
        return np.array_equal(image, pixels(picture(reproduction, again))) and image.min() < 128

    return check
