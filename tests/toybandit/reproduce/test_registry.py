"""The registry of figures."""

import numpy as np
import pytest

from toybandit.reproduce import FIGURES, OUT_OF_REACH, QUICK, Effort, Measurement, figure, out_of_reach
from toybandit.reproduce.registry import in_order


def test_effort_scales_counts_down_to_what_is_needed():
    assert QUICK.of(150) == 30
    assert QUICK.of(150, least=80) == 80
    assert Effort(runs=1, scale=0).of(9) == 1


def test_series_keep_order_and_rows():
    table = {"series": np.array(["b", "a", "b"]), "x": np.array([1, 2, 3])}
    parts = Measurement(table, {"n": 1.0}, "found").series("series")
    assert list(parts) == ["b", "a"]
    assert parts["b"].table["x"].tolist() == [1, 3]
    assert parts["a"].numbers == {"n": 1.0}


@pytest.mark.parametrize("name", ["entropy-mechanism-2", "entropy-mechanism-9"])
def test_a_name_is_taken_once(name):
    with pytest.raises(ValueError, match=f"'{name}' is registered twice"):
        out_of_reach(name, "")
    with pytest.raises(ValueError, match=f"'{name}' is registered twice"):
        figure(name, source="", shows="", changes_if="", draw=lambda canvas, data: None)(
            lambda effort: Measurement({}, {}, "")
        )


def test_what_is_asked_for_is_there():
    mechanism = {f"entropy-mechanism-{number}" for number in (1, 2, 4, 5, 6, 10, 12, 13, 14)}
    revisiting = {f"revisiting-{number}" for number in (3, 4, 5, 12, 13, 14, 15, 16, 17)}
    assert mechanism | revisiting <= set(FIGURES)
    assert not set(FIGURES) & set(OUT_OF_REACH)
    for made in FIGURES.values():
        assert made.source
        assert made.shows
        assert made.changes_if
    assert all(OUT_OF_REACH.values())


def test_order_is_that_of_papers_and_numbers():
    names = [
        "revisiting-12",
        "revisiting-3",
        "entropy-mechanism-table-1",
        "entropy-mechanism-10",
        "entropy-mechanism-9",
    ]
    assert in_order(names) == [names[4], names[3], names[2], names[1], names[0]]
    assert in_order(["revisiting-5-epoch", "revisiting-5"]) == ["revisiting-5", "revisiting-5-epoch"]
    with pytest.raises(ValueError, match="'revisiting' is not a figure name"):
        out_of_reach("revisiting", "no number")
