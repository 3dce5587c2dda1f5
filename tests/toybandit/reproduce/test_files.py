"""The files of a figure."""

import csv
import json

import numpy as np
import pytest
from matplotlib.image import imread

from toybandit.reproduce import FULL, QUICK, Measurement, Reproduction
from toybandit.reproduce.files import command, save
from toybandit.uncertainty import Measured

TABLE = {"series": np.array(["a", "b"]), "x": np.array([1, 2]), "y": np.array([0.1, 1 / 3])}
DATA = Measurement(TABLE, {"n": Measured(2.0, 0.5), "never": float("inf")}, "so")


@pytest.fixture
def reproduction():
    def draw(canvas, data):
        canvas.subplots().plot(data.table["x"], data.table["y"])

    return Reproduction(
        name="x-1", source="X, figure 1", shows="a line", changes_if="not", measure=lambda effort: DATA, draw=draw
    )


def test_four_files(reproduction, tmp_path):
    save(reproduction, DATA, QUICK, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["x-1.csv", "x-1.json", "x-1.png", "x-1.svg"]
    assert imread(tmp_path / "new/x-1.png").shape[:2] == (450, 687)
    assert "<svg" in (tmp_path / "new/x-1.svg").read_text()


def test_the_table_keeps_every_digit(reproduction, tmp_path):
    save(reproduction, DATA, QUICK, tmp_path)
    with (tmp_path / "x-1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["series"] for row in rows] == ["a", "b"]
    assert [row["x"] for row in rows] == ["1", "2"]
    assert [float(row["y"]) for row in rows] == [0.1, 1 / 3]


def test_the_manifest_says_how_to_make_it_again(reproduction, tmp_path):
    save(reproduction, DATA, QUICK, tmp_path)
    record = json.loads((tmp_path / "x-1.json").read_text())
    assert record["command"] == "toybandit reproduce x-1 --quick"
    assert record["numbers"] == {"n": 2.0, "never": None}
    assert record["standard_errors"] == {"n": 0.5}
    assert (record["seeds"], record["sample"], record["changes_if"]) == ([0, 1], "2 seeds", "not")
    assert (record["source"], record["shows"], record["found"]) == ("X, figure 1", "a line", "so")
    assert {"versions", "git_revision", "created"} <= set(record)
    assert command("x-1", FULL) == "toybandit reproduce x-1"


def test_pictures_are_the_same_each_time(reproduction, tmp_path):
    for folder in ("a", "b"):
        save(reproduction, DATA, QUICK, tmp_path / folder)
    for suffix in ("svg", "png", "csv"):
        assert (tmp_path / f"a/x-1.{suffix}").read_bytes() == (tmp_path / f"b/x-1.{suffix}").read_bytes()
