"""Shares of groups and steps without a signal, as trainers log them, by hand."""

import pytest

from entrostat.logs.diagnosis.events import look
from entrostat.logs.diagnosis.signal import without_signal
from entrostat.logs.foreign.metric_names import translate


def run(**columns):
    return [
        {"step": step, **{name: values[step] for name, values in columns.items() if values[step] is not None}}
        for step in range(len(next(iter(columns.values()))))
    ]


def told(**columns):
    return {name: values.tolist() for name, values in without_signal(run(**columns)).items()}


def test_groups_as_trainers_count_them():
    no_signal = {"groups/no_signal": [0.25, 1.0]}
    assert told(**{"groups/no_signal": [0.25, 1.0], "grad_norm": [0.0, 0.0]}) == no_signal
    assert told(**{"groups/mixed": [0.75, 0.0]}) == no_signal  # Tinker, prime-rl: a share
    counts = {"groups/mixed": [6, 0], "groups/all_right": [2, 5], "groups/all_wrong": [0, 3]}  # rLLM: numbers of groups
    assert told(**counts) == no_signal
    shares = {"groups/mixed": [0.75, 0.0], "groups/all_right": [0.25, 0.5], "groups/all_wrong": [0.0, 0.5]}
    assert told(**shares) == no_signal
    assert told(**{"groups/mixed": [6, 0]}) == {"groups/no_signal": [1.0]}, "six of how many?"


@pytest.mark.parametrize(
    "columns",
    [
        {"advantage/max": [2.5, 0.0, 1.2, 0.0, 0.3], "advantage/min": [-2.5, 0.0, -0.6, -0.0147, 0.0]},
        {"advantage/std": [1.0, 0.0, 0.9, 0.001, 0.4]},
        {"reward/std": [0.5, 0.0, 0.25, 0.0, 0.3]},
        {"grad_norm": [0.1, 0.0, 2.0, 0.0, 1e-6]},
    ],
)
def test_steps_by_what_is_logged(columns):
    """−.0147 is the rounding of a mean of equal rewards, divided by their deviation and 1e-6."""
    assert told(**columns) == {"steps/no_signal": [0.0, 1.0, 0.0, 1.0, 0.0]}


def test_advantages_come_before_the_gradient_that_a_penalty_has_too():
    columns = {"advantage/max": [0.0] * 20, "advantage/min": [0.0] * 20, "grad_norm": [0.2] * 20}
    assert told(**columns) == {"steps/no_signal": [1.0] * 20}
    assert look(run(entropy=[1.0] * 20, **columns)).told == "No response has an advantage in 100% of the steps."


def test_quadrants_and_groups_that_were_kept():
    """Four quadrants hold the tokens with an advantage: .05 + .01 + .02 + .01 of all."""
    quadrants = {"exploitation": 0.05, "exploration": 0.01, "suppression": 0.02, "correction": 0.01}
    columns = {f"quadrant/{name}": [share] * 20 for name, share in quadrants.items()}
    assert told(**columns) == {"tokens/no_signal": [pytest.approx(0.91)] * 20}
    assert look(run(entropy=[1.0] * 20, **columns)).told == "91% of the tokens have no advantage."
    del columns["quadrant/correction"]
    assert told(**columns) == {}
    assert told(**{"groups/kept": [0.25, 0.0]}) == {"groups/no_signal": [0.75, 1.0]}


def test_rewards_that_grow_alike_still_have_a_signal():
    """A run of TRL whose graded rewards differ by less and less: GRPO's advantages are as large as ever."""
    assert told(**{"reward/std": [0.5, 0.1, 0.02, 0.004, 0.001]}) == {"steps/no_signal": [0.0] * 5}


def test_one_sided_advantages_are_a_signal():
    """Only failures are learned from: the largest advantage is 0."""
    columns = {"advantage/max": [0.0] * 5, "advantage/min": [-1.0, -0.5, -1.0, -0.8, 0.0]}
    assert told(**columns) == {"steps/no_signal": [0.0, 0.0, 0.0, 0.0, 1.0]}


def test_a_few_values_tell_nothing():
    assert told(grad_norm=[0.0] * 4) == {}
    assert told(entropy=[1.0] * 9) == {}


def test_tasks_that_are_never_solved():
    """An agent whose rewards are penalties alone: its advantages differ, and nothing is learned of the task."""
    columns = {"solved": [0.0] * 20, "advantage/max": [0.06] * 20, "advantage/min": [-0.15] * 20}
    assert look(run(entropy=[1.0] * 20, **columns)).told == "No task is solved in 100% of the steps."
    assert look(run(entropy=[1.0] * 20, solved=[0.0] * 10 + [0.2, 0.0] * 5)).told == ""


def test_names_of_trainers():
    names = {
        "critic/advantages/max": "advantage/max",
        "advantages/min": "advantage/min",
        "adv_std": "advantage/std",
        "train/reward_std": "reward/std",
        "env/all/by_group/frac_mixed": "groups/mixed",
        "batch/solve_none": "groups/all_wrong",
        "episode/success_rate": "solved",
        "response_len/mean": "response_length",
    }
    assert translate(names) == names


def test_public_reports():
    """AgentR1/Agent-R1#30 (all rewards −1, all cut off) and modelscope/ms-swift#3372 (answers of "!!!"), as logged."""
    agent = {"advantage/max": [2.0] * 20 + [0.0] * 20, "advantage/min": [-2.0] * 20 + [0.0] * 20}
    assert look(run(entropy=[0.4] * 40, truncated=[0.1] * 20 + [1.0] * 20, **agent)).levels == {
        "steps/no_signal": 1.0,
        "truncated": 1.0,
    }
    swift = {"reward": [0.2] * 10 + [0.0] * 30, "reward/std": [0.3] * 10 + [0.0] * 30}
    happened = look(run(entropy=[0.3] * 40, response_length=[300.0] * 10 + [2048.0] * 30, **swift))
    assert happened.died is not None
    assert happened.levels == {"steps/no_signal": 1.0, "truncated": 1.0}
