import pytest
import torch

from entrostat import Tokens, make

A = torch.ones(6, dtype=torch.float64)
OLD = torch.tensor([1.0, 1.0, 1.0, 2.0, 0.0, 0.0], dtype=torch.float64)
NEW = torch.tensor([1.0, 1.04, 1.06, 1.88, 0.0, 0.1], dtype=torch.float64)


def weights(**settings):
    t = Tokens(logp=-A.abs(), old_logp=-A.abs(), advantage=A, entropy=NEW, old_entropy=OLD)
    plan = make("entropy_ratio_clip", **settings).plan(t)
    return plan.weight.tolist()


def test_by_hand():
    assert weights() == [1, 1, 0, 0, 1, 0]
    assert weights(ratio_low=0.9) == [1, 1, 0, 1, 1, 0]
    assert weights(ratio_high=1.1) == [1, 1, 1, 0, 1, 0]
    assert weights(ratio_low=0.99, ratio_high=1.01) == [1, 0, 0, 0, 1, 0]
    assert weights(ratio_low=0.94, ratio_high=1.04) == [1, 0, 0, 0, 1, 0]  # both bounds are exclusive


@pytest.mark.parametrize("settings", [{"ratio_low": 1.0}, {"ratio_high": 1.0}, {"ratio_high": 0.9}])
def test_bad_bounds(settings):
    with pytest.raises(ValueError, match="ratio_low must be below 1 and ratio_high above"):
        make("entropy_ratio_clip", **settings)
