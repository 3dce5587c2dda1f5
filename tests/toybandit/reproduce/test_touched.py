"""Regions touched side by side."""

from toybandit import Config, simulate
from toybandit.instruments import weights
from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.touched import train_touched


def test_touching_regions_together_is_touching_each_alone():
    regions = {
        "none": weights("exploitation", 1.0) | {"share": 1.0},
        "likely positives": weights("exploitation", 0.0) | {"share": 1.0},
    }
    runs = train_touched(QUICK, regions)
    alone = train_touched(QUICK, {"likely positives": regions["likely positives"]})
    plain = simulate(Config(states=24, rollouts=80), range(QUICK.runs))
    assert (runs["none"].entropy == plain.entropy).all()
    assert (runs["likely positives"].entropy == alone["likely positives"].entropy).all()
