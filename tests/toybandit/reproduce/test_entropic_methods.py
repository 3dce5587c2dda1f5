"""EntroPIC, figures 6 and 7. Training runs have QUICK effort: 24 states, 120 rollouts, 2 seeds."""

import pytest

from toybandit.reproduce.entropic import OFF, ON, TARGET
from toybandit.reproduce.entropic_methods import methods
from toybandit.reproduce.registry import QUICK

pytestmark = pytest.mark.slow


def test_the_loops_hold_the_target_and_the_others_do_not(drawn_from_its_table):
    data = methods(QUICK)
    for name in ("adaptive bonus", "EntroPIC"):
        assert data.numbers[f"end, {name}, {OFF}"] == pytest.approx(TARGET, abs=0.05)
    assert data.numbers[f"end, negatives only, {OFF}"] > TARGET + 0.2
    for name in ("GRPO", "Clip-Cov"):
        assert data.numbers[f"end, {name}, {OFF}"] < TARGET - 0.1
        assert data.numbers[f"end, {name}, {ON}"] < TARGET - 0.1
    assert drawn_from_its_table(methods, data)
