"""STEER's quadrants: one table, and the masks in its order."""

import numpy as np
import pytest
import torch

from entrostat import diagnostics
from entrostat.about import description
from entrostat.numbers.quadrants import QUADRANTS, quadrant_masks

ADVANTAGE = [1.0, 2.0, -1.0, -2.0, 0.0, 1.0]
LIKELY = [True, False, False, True, True, False]
INSIDE = [[0], [1, 5], [2], [3]]


def test_the_table_and_what_is_made_of_it():
    assert list(QUADRANTS) == ["I", "II", "III", "IV"]
    assert description.QUADRANTS["II"] == "A > 0, unlikely token"
    assert diagnostics.QUADRANTS == ("exploitation", "exploration", "suppression", "correction")
    assert [quadrant.raises for quadrant in QUADRANTS.values()] == [False, True, False, True]
    for quadrant in QUADRANTS.values():  # a likely token that is rewarded lowers the entropy
        up, likely = quadrant.tokens.startswith("A > 0"), "unlikely" not in quadrant.tokens
        assert quadrant.raises == (up != likely)


@pytest.mark.parametrize("made", [torch.tensor, np.array])
def test_masks(made):
    masks = quadrant_masks(made(ADVANTAGE), made(LIKELY))
    assert list(masks) == [quadrant.name for quadrant in QUADRANTS.values()]
    assert [[i for i, inside in enumerate(mask.tolist()) if inside] for mask in masks.values()] == INSIDE
    between = quadrant_masks(made(ADVANTAGE), made(LIKELY), made([False] * 6))
    assert not between["exploration"].any()
    assert between["correction"].tolist() == masks["correction"].tolist()
