"""Who takes part in comparisons."""

from entrostat import list_controllers
from entrostat.lineup import LEFT_OUT, entries
from entrostat.registry import ALIASES


def test_every_controller_takes_part_with_its_preset():
    preset = {entry.controller for entry in entries() if not entry.args}
    assert preset == set(list_controllers()) - set(ALIASES) - {LEFT_OUT}
    assert entries()[0].controller == "ppo"
    assert len({entry.name for entry in entries()}) == len(entries())


def test_entries_know_what_they_are():
    by_name = {entry.name: entry for entry in entries()}
    assert by_name["gspo"].per_response
    assert not by_name["steer"].per_response
    assert by_name["positive_reweight"].has_target
    assert not by_name["positive_reweight (variant=stage)"].has_target
    assert by_name["entropic (auto=True)"].setting == "auto=True"
