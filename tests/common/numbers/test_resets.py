"""Resets of the reference policy: when they are due, of which controllers, and for which runs."""

import pytest
import torch

from entrostat import make
from entrostat.numbers.resets import is_due


@pytest.mark.parametrize(("every", "steps"), [(0, []), (1, [1, 2, 3, 4, 5, 6]), (3, [3, 6]), (7, [])])
def test_resets_are_at_multiples_after_the_start(every, steps):
    assert [step for step in range(7) if is_due(every, step)] == steps
    assert [step for step in range(7) if make("kl_ref", reset_every=every).resets_reference(step)] == steps


def test_a_chain_resets_if_a_part_does_and_each_run_for_itself():
    runs = make("clip_higher+kl_ref+entropic", reset_every=torch.tensor([0.0, 2.0, 3.0]))
    assert [runs.resets_reference(step).tolist() for step in (2, 3, 6)] == [
        [False, True, False],
        [False, False, True],
        [False, True, True],
    ]
    assert make("thermostat", mode="anchor", reset_every=2).resets_reference(4)
    assert not make("thermostat+entropy_bonus", mode="reweight").resets_reference(4)


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ("kl_ref", {"reset_every": -1}, "kl_ref: reset_every must not be negative"),
        ("kl_ref", {"reset_every": 2.5}, "reset_every must be a whole number|reset_every .*2.5"),
        ("kl_ref", {"reset_every": torch.tensor([2.0, 2.5])}, "reset_every must be a whole number"),
        ("kl_ref", {"reset_every": "linear(1, 5, 9)"}, "reset_every .*takes no schedule"),
        ("thermostat", {"reset_every": 5}, "thermostat: reset_every needs mode anchor or anchor"),
    ],
)
def test_what_cannot_be_is_told(spec, settings, message):
    with pytest.raises(ValueError, match=message):
        make(spec, **settings)
