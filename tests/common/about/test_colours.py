"""Colours: the baseline is grey, a controller keeps its colour wherever it stands, and no two lines look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrostat as es
from entrostat.about.colours import BASELINE, OWN, PALETTE, colour_of, linestyle, styles


@pytest.mark.parametrize(
    ("label", "like"),
    [
        ("thermostat (mode=anchor, target=0.26)", "thermostat"),
        ("grpo+thermostat", "thermostat"),
        ("max_rl + thermostat (mode=bonus, target=0.26)", "thermostat"),
        ("kl_ref beta=0.05", "kl_ref"),
        ("GRPO", "grpo"),
        ("ppo", "grpo"),
        ("clip_higher+steer", "clip_higher"),
        ("aem (lr=0.1)", "aem"),
    ],
)
def test_a_label_has_its_controllers_colour(label, like):
    assert colour_of(label) == colour_of(like)


def test_only_the_baseline_is_grey():
    grey = {name for name in es.list_controllers() if colour_of(name) == BASELINE}
    assert grey == {"grpo", "ppo"} & set(es.list_controllers())
    assert set(OWN.values()) == {BASELINE, *PALETTE}


@given(st.lists(st.sampled_from(sorted(es.list_controllers())), max_size=8, unique=True), st.randoms())
def test_no_two_lines_look_alike_and_order_changes_no_colour(names, random):
    assert len(set(styles(names))) == len(names)
    mixed = random.sample(names, len(names))
    assert {n: s.colour for n, s in zip(names, styles(names), strict=True)} == {
        n: s.colour for n, s in zip(mixed, styles(mixed), strict=True)
    }


def test_dashes_of_one_controller():
    first, second = styles(["thermostat (mode=bonus)", "thermostat (mode=anchor)"])
    assert first.colour == second.colour
    assert linestyle(first.dash) == "-"
    assert linestyle(second.dash) == (0, second.dash)
