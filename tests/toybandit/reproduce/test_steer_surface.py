"""STEER, figures 1 and 4a."""

from math import log

import numpy as np
import pytest
import torch

from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer_surface import delta_surface, size_against_entropy, surfaces

pytestmark = pytest.mark.slow


def test_the_surface_by_hand_with_two_arms():
    """With two arms p fixes H, and the exact flow is −[f − c] with f = p(log p + H), c = Σ p·f."""
    p = torch.tensor([0.7], dtype=torch.float64)
    h = -(0.7 * log(0.7) + 0.3 * log(0.3))
    delta, exact = surfaces(p, torch.tensor([h], dtype=torch.float64), 2)
    f = [0.7 * (log(0.7) + h), 0.3 * (log(0.3) + h)]
    assert float(delta) == pytest.approx(-0.3 * f[0], abs=1e-12)
    assert float(exact) == pytest.approx(-(f[0] - 0.7 * f[0] - 0.3 * f[1]), abs=1e-9)


def test_no_distribution_no_value():
    p, h = torch.tensor([0.5, 0.99], dtype=torch.float64), torch.tensor([0.1, 2.0], dtype=torch.float64)
    assert surfaces(p, h, 16)[1].isnan().all()


def test_figure_1(drawn_from_its_table):
    data = delta_surface(QUICK)
    assert 0.4 < data.numbers["possible"] < 0.6
    assert 0.03 < data.numbers["wrong sign"] < 0.15
    exact, delta = data.table["exact"], data.table["delta"]
    wrong = exact * delta < 0
    assert (exact[wrong] > 0).all()  # the true boundary is at a larger p
    assert drawn_from_its_table(delta_surface, data)


def test_figure_4a(drawn_from_its_table):
    data = size_against_entropy(QUICK)
    assert data.numbers["spearman of H and measured |ΔH|"] > 0.5
    assert data.numbers["exact: H of the largest change, 16 arms"] < 0.8 * log(16)
    assert data.numbers["exact: H of the largest change, 1024 arms"] < 0.5 * log(1024)
    size = data.series("arms")["16 arms"].series("series")["exact"].table["size"]
    assert size[-1] < 0.5 * np.max(size)  # nearly uniform states hardly move
    assert drawn_from_its_table(size_against_entropy, data)
