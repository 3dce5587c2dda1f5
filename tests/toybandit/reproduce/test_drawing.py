"""How pictures look."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from entrostat.about.colours import BASELINE, PALETTE, colour_of
from toybandit.reproduce import Measurement
from toybandit.reproduce.drawing import (
    COLOURS,
    LOOK,
    entropy_and_reward,
    line_style,
    lines,
    named_styles,
    point_style,
    whiskers,
)

DATA = Measurement(
    {
        "series": np.array(["a", "a", "b", "b"]),
        "rollout": np.array([0, 1, 0, 1]),
        **{key: np.array([1.0, 2, 3, 4]) for key in ("entropy", "entropy_low", "entropy_high", "reward")},
    },
    {},
    "",
)


def test_series_can_be_told_apart_without_colour():
    neighbours = [(line_style(i), line_style(i + 1)) for i in range(len(COLOURS) - 1)]
    assert all(a["linestyle"] != b["linestyle"] for a, b in neighbours)
    assert len({str(sorted(point_style(i).items())) for i in range(2 * len(COLOURS))}) == 2 * len(COLOURS)


def test_a_controller_has_its_colour_and_others_the_free_ones():
    styles = named_styles(["GRPO", "Clip-Higher .2/.28", "τ = 0.5", "Clip-Cov", "all tokens"])
    colours = [style["color"] for style in styles]
    assert [colours[0], colours[4]] == [BASELINE, BASELINE]
    assert [colours[1], colours[3]] == [colour_of("clip_higher"), colour_of("clip_cov")]
    assert colours[2] == PALETTE[0]
    assert len({str(style["linestyle"]) for style in styles}) == 5  # the two grey ones too


def test_colours_are_apart_in_lightness():
    rgb = np.array([matplotlib.colors.to_rgb(colour) for colour in COLOURS])
    lightness = np.sort(rgb @ [0.2126, 0.7152, 0.0722])
    assert lightness.max() < 0.75  # on white


def test_lines_are_the_table():
    axes = Figure().subplots()
    lines(axes, DATA, "rollout", "entropy")
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    np.testing.assert_array_equal(axes.lines[1].get_xydata(), [[0, 3], [1, 4]])
    assert len(axes.collections) == 2


def test_a_band_needs_its_columns():
    axes = Figure().subplots()
    lines(axes, DATA, "rollout", "reward")
    assert not axes.collections


def test_two_panels_and_a_legend():
    canvas = Figure(layout="constrained")
    entropy_and_reward(canvas, DATA)
    assert [axes.get_ylabel() for axes in canvas.axes] == ["entropy (nats)", "expected reward"]
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["a", "b"]


def test_whiskers_are_distances():
    table = {"y": np.array([1.0, 2.0]), "y_low": np.array([0.5, 1.5]), "y_high": np.array([2.0, 2.25])}
    assert whiskers(table, "y").tolist() == [[0.5, 0.5], [1.0, 0.25]]


def test_every_setting_is_one_of_matplotlib():
    with matplotlib.rc_context(LOOK):
        assert matplotlib.rcParams["svg.fonttype"] == "none"
