import pytest
import torch

from entrostat import Tokens, make

P = torch.tensor([0.995, 0.98, 0.995, 0.999, 0.995, 0.5], dtype=torch.float64)
SEQ = torch.tensor([1, 1, 2, 2, 3, 3])
REWARD = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
H = torch.tensor([0.0, 0.3, 0.0, 0.5, 0.0, 0.1], dtype=torch.float64)  # means .15, .25, .05


def weights(**settings):
    t = Tokens(logp=P.log(), old_logp=P.log(), advantage=REWARD - 0.5, reward=REWARD, entropy=H, seq_id=SEQ)
    return make("dmmpt", **settings).plan(t).weight.tolist()


def test_by_hand():
    assert weights() == [0, 1, 1, 1, 1, 1]
    assert weights(entropy_low=0.3) == [0, 1, 0, 0, 1, 1]
    assert weights(tau=0.97) == [0, 0, 1, 1, 1, 1]
    assert weights(tau=0.997, entropy_low=0.3) == [1, 1, 1, 0, 1, 1]


def test_thresholds_are_exclusive():
    assert weights(tau=0.999, entropy_low=0.3) == [1, 1, 1, 1, 1, 1]
    assert weights(entropy_low=0.15) == [1, 1, 1, 1, 1, 1]


def test_bad_threshold():
    with pytest.raises(ValueError, match=r"tau must lie in \(0, 1\]"):
        make("dmmpt", tau=0.0)
