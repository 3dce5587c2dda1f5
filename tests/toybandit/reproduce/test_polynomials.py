"""Polynomials by least squares."""

import numpy as np
import pytest

from toybandit.reproduce.entropy_mechanism_law import polynomial, r_squared


def test_by_hand():
    """Through (0, 0), (1, 0), (2, 3) the line is 1.5x − .5, which leaves 1.5 of a variance of 6."""
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 3.0])
    line = polynomial(x, y, 1)
    np.testing.assert_allclose(line, [-0.5, 1.0, 2.5], rtol=1e-12)
    assert r_squared(y, line) == pytest.approx(0.75, rel=1e-12)
    assert r_squared(y, polynomial(x, y, 2)) == pytest.approx(1, rel=1e-12)
