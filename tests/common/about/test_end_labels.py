"""Names at the ends of lines: apart, as near to their lines as that allows, and in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from entrostat.about.end_labels import End, apart, label_ends


def heights(axes):
    return {text.get_text(): text.get_position()[1] for text in axes.texts}


def test_names_stand_at_their_lines_if_nothing_is_near():
    axes = Figure().subplots()
    axes.set_ylim(0, 2)
    label_ends(axes, [End("high", (1, 1.5), "red"), End("low", (1, 0.5), "blue")])
    assert heights(axes) == pytest.approx({"high": 0.75, "low": 0.25})
    assert [text.get_color() for text in axes.texts] == ["blue", "red"]


def test_heights_are_those_of_the_scale():
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=(1, 100))
    label_ends(axes, [End("ten", (1, 10), "red")])
    assert heights(axes)["ten"] == pytest.approx(0.5)


def test_names_that_would_cover_each_other_move_apart():
    axes = Figure(dpi=100).subplots()
    axes.set_ylim(0, 1)
    label_ends(axes, [End("b", (1, 0.51), "red"), End("a", (1, 0.5), "blue")], size=10)
    found = heights(axes)
    pixels = (found["b"] - found["a"]) * axes.get_window_extent().height
    assert pixels >= 10 / 72 * 100  # a line of text
    assert (found["a"] + found["b"]) / 2 == pytest.approx(0.505)


@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0, 0.5))
def test_places_are_the_nearest_that_are_apart(at, least):
    """Against projections by hand: feasible, and no feasible neighbour is nearer."""
    at = np.sort(at)
    found = apart(at, least)
    assert (np.diff(found) >= least - 1e-9).all()
    cost = ((found - at) ** 2).sum()
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = found + rng.normal(0, 0.05, len(at))
        if (np.diff(other) >= least).all():
            assert ((other - at) ** 2).sum() >= cost - 1e-9


def test_a_line_without_an_end_has_no_name():
    """A metric that a run never logged is NaN, and a leader to it cannot be drawn."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    label_ends(axes, [End("none", (1, np.nan), "red"), End("some", (1, 0.5), "blue")], leaders=True)
    figure.draw_without_rendering()
    assert [text.get_text() for text in axes.texts] == ["some"]
