from math import exp

import pytest
import torch

from entrostat import Tokens, make

SEQ = torch.tensor([2, 2, 2, 2, 1])
POSITION = torch.tensor([0, 1, 2, 3, 0])
A = torch.tensor([1.0, -1.0, 0.1, 0.0, -2.0], dtype=torch.float64)


def sigmoid(x):
    return 1 / (1 + exp(-x))


def advantage(**settings):
    t = Tokens(logp=-A.abs(), old_logp=-A.abs(), advantage=A, seq_id=SEQ, position=POSITION)
    return make("position_advantage", **settings).plan(t).advantage.tolist()


def test_by_hand():
    gain = [0.1 * sigmoid(15 * (x - 0.5)) for x in (0.25, 0.5, 0.75, 1, 1)]
    expected = [1 + gain[0], -1 - gain[1], 0.1 + 0.05, 0.0, -2 - gain[4]]  # the third is limited to half of A
    assert advantage() == pytest.approx(expected, rel=1e-14)
    assert gain[1] == 0.05


def test_settings():
    expected = [1 + 0.5, -1 - 0.5, 0.1 + 0.1, 0.0, -2 - 0.5]
    assert advantage(gamma=1.0, slope=0.0, limit=1.0) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("settings", [{"gamma": -1.0}, {"limit": -1.0}])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must not be negative"):
        make("position_advantage", **settings)
