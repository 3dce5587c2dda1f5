"""Targets that put all the weight on one kind of token."""

import pytest
import torch

from entrostat import StepStats, make
from toybandit.claims.polarity import SIDES


@pytest.mark.parametrize(("side", "pressure"), [("expanding", 1.0), ("contracting", -1.0)])
def test_the_sides_are_the_extremes_of_the_signal(side, pressure):
    controller = make("papo", target=SIDES[side])
    controller.observe(StepStats(entropy=torch.tensor(1.2)))
    assert float(controller.metrics()["papo/pressure"]) == pressure
