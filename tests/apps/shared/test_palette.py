"""Lines of controllers have the colours of the documentation; no two lines look alike."""

import pytest

from entrostat.about.colours import BASELINE, colour_of
from entrostat_app.shared.palette import COLOURS, TARGET, styles


@pytest.mark.parametrize(
    ("line", "controller"),
    [("GRPO", "grpo"), ("thermostat rate=0.05", "thermostat"), ("runs/steer-seed1", "steer"), ("kl_ref", "kl_ref")],
)
def test_a_controller_has_its_colour_wherever_it_stands(line, controller):
    for names in ([line], ["entropy", line], ["grpo", "clip_higher", "other", line]):
        assert styles(names)[names.index(line)].colour == colour_of(controller)


def test_other_lines_have_the_colours_that_are_left():
    looks = styles(["measured", "thermostat", "predicted"])
    assert [look.colour for look in looks] == [COLOURS[1], COLOURS[0], COLOURS[2]]
    assert styles(["a", "GRPO"])[0].colour != BASELINE


def test_targets_have_the_colour_of_text_and_are_not_solid():
    ((colour, dash),) = styles(["target"])
    assert colour == TARGET
    assert dash[1] > 0


@pytest.mark.parametrize(
    "names",
    [
        [f"run {i}" for i in range(8)],
        [f"thermostat target={i}" for i in range(8)],
        ["GRPO", "ppo", "falling target", "target", "target of GRPO", "both"],
    ],
)
def test_no_two_lines_look_alike(names):
    assert len(set(styles(names))) == len(names)
