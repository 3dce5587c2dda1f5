import pytest
import torch

from entrostat import Tokens, make

A = torch.tensor([0.5, -0.25, 0.0, -3.0], dtype=torch.float64)
TOKENS = Tokens(logp=torch.zeros(4), old_logp=torch.zeros(4), advantage=A)


@pytest.mark.parametrize(
    ("name", "weight", "dropped"),
    [("positive_only", [1, 0, 1, 0], 0.5), ("negative_only", [0, 1, 1, 1], 0.25)],
)
def test_by_hand(name, weight, dropped):
    plan = make(name).plan(TOKENS)
    assert plan.weight.tolist() == weight
    assert plan.keep.tolist() == [bool(w) for w in weight]
    assert plan.info[f"{name}/dropped"].item() == dropped
    assert plan.scale.item() == 0.25
    kept = make(name, denominator="kept").plan(TOKENS)
    assert kept.scale.item() == pytest.approx(1 / sum(weight), rel=1e-15)


def test_both_together_contradict():
    with pytest.raises(ValueError, match="positive_only"):
        make("positive_only+negative_only")
