"""Panels of entropies: means, colours, and names at the ends of the last panel."""

import numpy as np
from matplotlib.figure import Figure

from entrostat.about.colours import BASELINE, colour_of
from toybandit.claims.pictures import panels

CURVES = {
    "once": {"GRPO": np.array([[1.0, 0.2], [1.0, 0.4]]), "thermostat": np.array([[1.0, 0.9], [1.0, 0.7]])},
    "reused": {"GRPO": np.array([[3.0, 0.1], [3.0, 0.1]]), "thermostat": np.array([[3.0, 2.0], [3.0, 2.0]])},
}


def test_lines_are_means_in_the_colours_of_their_controllers():
    left, right = panels(Figure(), CURVES)
    assert [axes.get_title() for axes in (left, right)] == ["once", "reused"]
    grpo, thermostat = left.lines
    np.testing.assert_allclose(grpo.get_ydata(), [1.0, 0.3])
    np.testing.assert_allclose(thermostat.get_ydata(), [1.0, 0.8])
    for axes in (left, right):
        assert [line.get_color() for line in axes.lines] == [BASELINE, colour_of("thermostat")]
    assert not left.texts
    assert {text.get_text(): text.xy[1] for text in right.texts} == {"GRPO": 0.1, "thermostat": 2.0}


def test_the_highest_line_of_any_panel_is_inside():
    for axes in panels(Figure(), CURVES):
        low, high = axes.get_ylim()
        assert low == 0
        assert high >= 3
