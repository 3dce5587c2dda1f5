"""Properties that are computed once."""

from dataclasses import dataclass

import pytest

from entrostat.numbers.lazy import lazy


@dataclass(frozen=True)
class Square:
    side: int
    asked: list

    @lazy
    def area(self) -> int:
        """Of the square."""
        self.asked.append(self.side)
        return self.side**2


def test_computed_when_asked_for_and_once():
    square, other = Square(3, []), Square(4, [])
    assert square.asked == []
    assert (square.area, square.area, other.area) == (9, 9, 16)
    assert square.asked == [3]
    assert Square.area.__doc__ == "Of the square."


def test_an_error_is_not_kept():
    square = Square("x", [])
    for _ in range(2):
        with pytest.raises(TypeError):
            square.area  # noqa: B018
    assert square.asked == ["x", "x"]
