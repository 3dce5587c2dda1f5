"""Who takes part in comparisons."""

import pytest

from entrostat import list_controllers
from entrostat.about.lineup import ADVANTAGES, LEFT_OUT, asked, entries
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


def test_a_name_asks_for_all_entries_of_a_controller():
    assert [entry.name for entry in asked(["steer", "grpo"])] == ["steer", "steer (estimator=exact)", "ppo"]
    assert [entry.controller for entry in asked(["clip_higher+steer"])] == ["clip_higher+steer"]


def test_an_advantage_is_an_entry_of_its_own():
    (found,) = asked(["pass_at_k k=4 variant=analytic"])
    assert (found.controller, found.advantage) == ("ppo", "pass_at_k k=4 variant=analytic")
    assert found.name == "ppo (advantage=pass_at_k k=4 variant=analytic)"
    assert found.drawn_as == "pass_at_k (advantage)"
    assert asked(["ppo"])[0].drawn_as == "ppo"
    assert not {entry.name for entry in ADVANTAGES} & {entry.name for entry in entries()}
    with pytest.raises(ValueError, match="remax k=2: advantage 'remax' has no hyperparameter 'k'"):
        asked(["remax k=2"])


def test_values_ask_for_an_entry_each():
    assert [entry.args for entry in asked(["kl_ref beta=0.02,5e-2"])] == [{"beta": 0.02}, {"beta": 0.05}]
    both = asked(["thermostat target=0.3,0.4 mode=bonus,both"])
    assert [entry.setting for entry in both] == [
        f"target={target}, mode={mode}" for target in (0.3, 0.4) for mode in ("bonus", "both")
    ]
    assert asked(["clip_higher+entropic kp=2"])[0].args == {"kp": 2}
    assert asked(["kl_ref beta=0.02", "kl_ref beta=0.02,0.1"]) == asked(["kl_ref beta=0.02,0.1"])
    assert asked(["positive_reweight variant=stage"])[0].open_loop


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("stear", "stear: unknown controller 'stear'"),
        ("", ": unknown controller ''"),
        ("steer kp=1", "steer kp=1: no part of 'steer.ppo' has the hyperparameter 'kp'"),
        ("kl_ref beta", "kl_ref beta: expected key=value"),
        ("kl_ref beta=0.1,,2", "kl_ref beta=0.1,,2: kl_ref: beta must be a number"),
        ("kl_ref beta=1 beta=2", "beta is set twice"),
    ],
)
def test_what_cannot_be_made_is_told(item, said):
    with pytest.raises(ValueError, match=said):
        asked(["grpo", item])


def test_a_rule_of_ones_own_keeps_the_name_that_another_process_knows(tmp_path, monkeypatch, own_controllers):
    lines = (
        "from dataclasses import dataclass\nfrom entrostat import Controller\n@dataclass\nclass MyRule(Controller): ..."
    )
    (tmp_path / "lined_up.py").write_text(lines)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = asked(["lined_up:MyRule", "grpo+lined_up:MyRule"])
    assert [entry.controller for entry in found] == ["lined_up:MyRule", "ppo+lined_up:MyRule"]
