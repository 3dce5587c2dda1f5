"""Regions touched side by side."""

import torch

from entrostat import LocalReduce, Tokens, make
from toybandit import Config, simulate
from toybandit.instruments import Region, at_hand
from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.touched import train_touched


def weights(advantage, p, **settings):
    logp = torch.tensor(p, dtype=torch.float64).log()
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.tensor(advantage, dtype=torch.float64))
    with at_hand(region=Region):
        return make("region", **settings).plan(tokens, LocalReduce()).weight.tolist()


def test_touching_regions_together_is_touching_each_alone():
    regions = {
        "none": {"sign": 1.0, "p_low": 0.0, "p_high": 1.0, "factor": 1.0},
        "positives": {"sign": 1.0, "p_low": 0.0, "p_high": 1.0, "factor": 0.0},
    }
    runs = train_touched(QUICK, regions)
    alone = train_touched(QUICK, {"positives": regions["positives"]})
    plain = simulate(Config(states=24, rollouts=80), range(QUICK.runs))
    assert (runs["none"].entropy == plain.entropy).all()
    assert (runs["positives"].entropy == alone["positives"].entropy).all()
