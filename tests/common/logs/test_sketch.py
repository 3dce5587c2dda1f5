"""Curves in braille, checked dot by dot by a decoder of its own."""

import numpy as np
import pytest

from entrostat.logs.diagnosis.sketch import HIGH, WIDE, curve, is_logarithmic, sketch

PLACES = {(0, 0): 1, (1, 0): 2, (2, 0): 3, (0, 1): 4, (1, 1): 5, (2, 1): 6, (3, 0): 7, (3, 1): 8}
"""Number of a dot in Unicode's braille, by row and column."""


def dots(lines):
    """Return where the dots of a drawing are, (rows, columns), from the top left."""
    out = np.zeros((4 * len(lines), 2 * len(lines[0])), dtype=bool)
    for i, line in enumerate(lines):
        for j, character in enumerate(line):
            for (row, column), number in PLACES.items():
                out[4 * i + row, 2 * j + column] = bool((ord(character) - 0x2800) >> (number - 1) & 1)
    return out


def test_a_line_from_corner_to_corner():
    drawn = dots(curve(np.linspace(0, 1, 8), np.arange(8.0), wide=4, high=2))
    assert (drawn == np.eye(8, dtype=bool)[::-1]).all()


def test_a_jump_is_joined_and_a_peak_between_two_columns_is_not_lost():
    drawn = dots(curve(np.array([0, 0.4, 0.41, 0.42, 1.0]), np.array([0, 0, 1.0, 0, 0]), wide=4, high=1))
    assert drawn[0].sum() == 1
    assert drawn.any(0).all()
    column = int(drawn[0].argmax())
    assert drawn[:, column].all()


def test_nothing_is_drawn_where_nothing_was_logged():
    drawn = dots(curve(np.array([0.5, 1.0]), np.array([1.0, 1.0]), wide=4, high=1))
    assert drawn.any(0).tolist() == [False] * 4 + [True] * 4


def test_a_run():
    metrics = [{"step": s, "entropy": 1.0 if s < 50 else 0.1, "reward": s / 100} for s in range(101)]
    lines = sketch(metrics, [(50, "fell"), (100, "NaN")]).splitlines()
    assert len(lines) == 2 * (HIGH + 1) + 3
    assert lines[0] == "entropy (nats)"
    assert lines[1].split()[0] == "1"
    assert lines[HIGH].split()[0] == "0.1"
    ruler, steps, told = lines[-3:]
    assert [at for at, character in enumerate(ruler) if character == "▲"] == [9 + round(WIDE / 2 - 0.5), 9 + WIDE - 1]
    assert steps.split() == ["step", "0", "100"]
    assert told.strip() == "▲ fell 50, NaN 100"
    assert max(map(len, lines)) <= 9 + WIDE


def test_a_wide_range_is_drawn_by_its_logarithm():
    assert [is_logarithmic(np.array(values)) for values in ([0.1, 3.0], [0.1, 2.9], [0.0, 9.0])] == [True, False, False]
    assert sketch([{"step": s, "entropy": 10.0**-s} for s in range(4)], []).startswith("entropy (nats), logarithmic")


@pytest.mark.parametrize("metrics", [[], [{"step": 1, "entropy": 0.5}], [{"step": s, "loss": 1.0} for s in range(9)]])
def test_nothing_to_draw(metrics):
    assert sketch(metrics, []) == ""
