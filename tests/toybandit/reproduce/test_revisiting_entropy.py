"""Figures of Revisiting Entropy on clipping, off-policy updates and regularisation."""

import numpy as np
import pytest

from toybandit.reproduce import FIGURES, QUICK
from toybandit.reproduce.revisiting_entropy import CLIPS, PASSES, TARGET, told

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured():
    return {number: FIGURES[f"revisiting-{number}"](QUICK) for number in (1, 3, 4, 5, 12)}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3, 4, 5, 12])
def test_pictures_are_their_tables(number, measured, drawn_from_its_table):
    assert drawn_from_its_table(FIGURES[f"revisiting-{number}"], measured[number])


def test_reward_grows_at_the_entropy_of_the_start(measured):
    numbers = measured[1].numbers
    assert numbers["adaptive, target H at the start/entropy"] == pytest.approx(numbers["target"], abs=0.05)
    assert 0.5 < numbers["share_of_gain"] < 1


def test_order_of_the_clips(measured):
    h = {name: measured[3].numbers[f"{name}/entropy"] for name in CLIPS}
    assert h["Clip-Lower"] < h["default"] < h["Clip-Higher"] < h["Clip-Tighter"]
    assert h["Clip-Lower"] < h["Clip-Free"] < h["default"]


@pytest.mark.parametrize("number", [4, 12])
def test_more_updates_less_entropy_early(number, measured):
    early = [measured[number].numbers[f"M = {passes}/early"] for passes in PASSES]
    assert early == sorted(early, reverse=True)
    last = [measured[number].numbers[f"M = {passes}/entropy"] for passes in PASSES]
    assert last != sorted(last, reverse=True)


def test_order_is_told_from_the_least():
    entropy = {"M = 1": np.array([3.0, 5.0]), "M = 2": np.array([1.0, 1.5]), "M = 4": np.array([1.0, 2.5])}
    assert told(entropy) == "M = 2: 1.25 ± 0.25 ≈ M = 4: 1.75 ± 0.75 < M = 1: 4.00 ± 1.00"


def test_methods_stand_as_in_the_paper(measured):
    h = {name.removesuffix("/entropy"): v for name, v in measured[5].numbers.items() if name.endswith("/entropy")}
    for method in ("A ≥ 0 only", "Entropy-Adv"):
        assert h[method] < h["GRPO"] - 0.1
    for method in ("A ≤ 0 only", "Clip-Cov", "KL-Cov"):
        assert h[method] > h["GRPO"] + 0.1
    assert h["Ada-Ent-Reg"] == pytest.approx(TARGET, abs=0.03)
    assert h["entropy-guided"] == pytest.approx(TARGET, abs=0.15)


def test_random_clipping_does_little(measured):
    numbers = measured[5].numbers
    assert abs(numbers["Rand-Pos-Clip/entropy"] - numbers["GRPO/entropy"]) < 0.1
    assert abs(numbers["Rand-Pos-Clip, loose clip/entropy"] - numbers["loose clip/entropy"]) < 0.1
    assert numbers["Clip-Cov/entropy"] > numbers["loose clip/entropy"] + 0.2
    assert numbers["stage-based/rise"] == 0
