"""Numbers of tables: points, commas, thousands, and what may be either."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrostat.logs.foreign.table_numbers import decimal_mark, number


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        (["0.53", "1,234"], "."),
        (["0,53", "1.234"], ","),
        (["0,530"], ","),
        (["1,234.5"], "."),
        (["1.234,5"], ","),
        (["1,000,000"], "."),
        (["1.000.000"], ","),
        (["6,2e-1"], ","),
        (["1,234"], "usual"),
        (["1.234"], "."),
        (["12", "", "x,y", "a.b"], "usual"),
        (["0.5", "0,5"], ""),
        (["1.234", "1,234"], ""),
    ],
)
def test_the_mark_of_a_table(cells, mark):
    assert decimal_mark([["1", "2"], cells], "usual") == mark


@pytest.mark.parametrize(
    ("cell", "mark", "found"),
    [
        ("1,234", ".", 1234.0),
        ("1,234", ",", 1.234),
        ("1.234", ".", 1.234),
        ("1.234", ",", 1234.0),
        ("0,53", ".", 0.53),
        ("0.53", ",", 0.53),
        ("-1.234,5", ",", -1234.5),
        ("1,234.5", ",", 1234.5),
        (" 6,2e-1 ", ",", 0.62),
        ("1,234", "", "1,234"),
        ("1.234", "", "1.234"),
        ("0,5", "", 0.5),
        ("1,2,3", ".", "1,2,3"),
        ("1.2.3", ",", "1.2.3"),
        ("high", ".", "high"),
        ("1_000", ".", "1_000"),
        ("", ".", None),
        ("None", ",", None),
        ("inf", ".", math.inf),
        ("-Infinity", ",", -math.inf),
        ("60%", ".", 0.6),
        ("12,5 %", ",", 0.125),
        ("5%%", ".", "5%%"),
        ("%" * 10_000, ".", "%" * 10_000),
        ("-%", ".", "-%"),
        ("\u22120.31", ".", -0.31),
        ("\u22121,5", ",", -1.5),
        ("1\u20132", ".", "1\u20132"),
        ("\u2014", ".", None),
    ],
)
def test_a_cell(cell, mark, found):
    assert number(cell, mark) == found


def test_nan_is_a_number_that_is_none():
    assert math.isnan(number("NaN", "."))
    assert math.isnan(number("nan", ","))


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), min_size=1), st.sampled_from([".", ","]))
def test_a_table_is_read_as_it_was_written(values, mark):
    """With two decimals each, and thousands apart."""
    swap = str.maketrans(".,", ",." if mark == "," else ".,")
    cells = [f"{value:,.2f}".translate(swap) for value in values]
    assert decimal_mark([cells], "?") == mark
    assert [number(cell, mark) for cell in cells] == values
