import pytest
import torch

from entrostat import Tokens, make

# mean entropies of the responses: 1 and 3 in the first group, 0 and 2 in the second, .5 alone
SEQ = torch.tensor([1, 1, 2, 3, 4, 4, 5])
GROUP = torch.tensor([1, 1, 1, 2, 2, 2, 3])
H = torch.tensor([0.5, 1.5, 3.0, 0.0, 1.0, 3.0, 0.5], dtype=torch.float64)
A = torch.ones(7, dtype=torch.float64)


def weights(**settings):
    t = Tokens(logp=-A.abs(), old_logp=-A.abs(), advantage=A, entropy=H, seq_id=SEQ, group_id=GROUP)
    return make("edge", **settings).plan(t).weight.tolist()


def test_by_hand():
    assert weights() == pytest.approx([2, 2, 2 / 3, 1000, 0.5, 0.5, 1], rel=1e-14)
    assert weights(entropy_floor=0.25) == pytest.approx([2, 2, 2 / 3, 4, 0.5, 0.5, 1], rel=1e-14)


def test_bad_floor():
    with pytest.raises(ValueError, match="entropy_floor must be positive"):
        make("edge", entropy_floor=0.0)
