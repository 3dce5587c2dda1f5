"""Several runs in one log: one after another, resumed, side by side in a table."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrostat.logs.foreign.foreign_runs import read_file, read_path, runs_in


def verl(rows):
    return "".join(f"(TaskRunner pid=7) step:{s} - actor/entropy:{h} - critic/score/mean:0.5\n" for s, h in rows)


def trl(rows):
    """Return dictionaries of TRL, four steps an epoch."""
    return "".join(f"{{'loss': 0.0, 'reward': 0.5, 'entropy': {h}, 'epoch': {s / 4}}}\n" for s, h in rows)


def read(text):
    return read_file(io.BytesIO(text.encode()))


def entropies(run):
    return [(line["step"], line["entropy"]) for line in run.metrics]


def steps(first, last, entropy):
    return [(step, entropy) for step in range(first, last + 1)]


@pytest.mark.parametrize("written", [verl, trl])
def test_runs_that_follow_one_another_are_told_apart(written):
    first, second, third = steps(1, 9, 0.9), steps(1, 4, 0.4), steps(1, 12, 0.2)
    found = read(written(first + second + third))
    assert [entropies(run) for run in found] == [first, second, third]
    assert [run.name for run in found] == ["", "run 2", "run 3"]
    assert all(f"run {i} of 3 that follow one another" in run.told() for i, run in enumerate(found, 1))
    assert runs_in(io.BytesIO(written(first + second + third).encode())) == ["", "run 2", "run 3"]


@pytest.mark.parametrize("written", [verl, trl])
def test_a_resumed_run_keeps_nothing_of_the_steps_that_it_took_again(written):
    (run,) = read(written(steps(1, 40, 0.9) + steps(21, 30, 0.2)))
    assert entropies(run) == steps(1, 20, 0.9) + steps(21, 30, 0.2)
    assert "steps 21 to 40 were taken again: the later ones count" in run.told()


@pytest.mark.parametrize("after", [[], [(21, 0.8), (22, 0.8)]])
def test_a_value_that_comes_again_is_a_correction(after):
    (run,) = read(verl([*steps(1, 20, 0.9), (5, 0.1), *after]))
    assert entropies(run) == [*steps(1, 4, 0.9), (5, 0.1), *steps(6, 20, 0.9), *after]


def test_metrics_that_come_late_do_not_start_a_run():
    late = "".join(f"(TaskRunner pid=7) step:{s} - val-core/gsm8k/acc/mean@1:0.3\n" for s in (5, 10, 15))
    (run,) = read(verl(steps(1, 20, 0.9)) + late)
    assert entropies(run) == steps(1, 20, 0.9)
    assert [line["step"] for line in run.metrics if "eval/avg@1" in line] == [5, 10, 15]


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(2, 8)), min_size=1, max_size=6))
def test_a_log_of_starts_ends_with_the_last_and_loses_no_run(starts):
    """Each start is (first step, number of steps); a plain loop over them says what is left."""
    rows, runs = [], []
    for value, (first, count) in enumerate(starts):
        known = runs[-1] if runs else {}
        first = min(first, max(known)) if known and value else 1  # begins at a step that there is, or anew
        first = 1 if known and first not in known else first
        part = {step: float(value) for step in range(first, first + count)}
        if known and first == max(known):
            part = {step: float(value) for step in range(first + 1, first + 1 + count)}  # goes on: no new start
        rows += part.items()
        if not known or min(part) <= min(known):
            runs.append(part)
        else:
            runs[-1] = {step: old for step, old in known.items() if step < min(part)} | part
    assert [dict(entropies(run)) for run in read(verl(rows))] == runs


TABLE = [("control, n4", 1, 0.9), ("control, n4", 2, 0.8), ("n8", 1, 0.5), ("n8", 2, 0.4), ("n8", 3, 0.3)]


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("column", ["arm", "Run", "run_name"])
def test_a_table_of_several_runs(tmp_path, column, interleaved):
    rows = sorted(TABLE, key=lambda row: row[1]) if interleaved else TABLE
    file = tmp_path / "curves.csv"
    file.write_text(f"{column},step,actor/entropy\n" + "".join(f'"{run}",{s},{h}\n' for run, s, h in rows))
    found = {run.name: entropies(run) for run in read_path(file)}
    assert found == {"control, n4": [(1, 0.9), (2, 0.8)], "n8": [(1, 0.5), (2, 0.4), (3, 0.3)]}


def test_seeds_in_rows_of_json():
    rows = [f'{{"seed": {seed}, "step": {s}, "entropy": {seed + s}}}' for s in (1, 2) for seed in (0, 1)]
    found = {run.name: entropies(run) for run in read("\n".join(rows) + "\n")}
    assert found == {"seed 0": [(1, 1), (2, 2)], "seed 1": [(1, 2), (2, 3)]}


def test_an_evaluation_without_a_seed_belongs_to_the_run_before_it():
    rows = [
        '{"seed": 7, "step": 1, "entropy": 0.9}',
        '{"step": 1, "eval/acc": 0.3}',
        '{"seed": 7, "step": 2, "entropy": 0.8}',
    ]
    (run,) = read("\n".join(rows) + "\n")
    assert [(line.get("entropy"), line.get("eval/acc")) for line in run.metrics] == [(0.9, 0.3), (0.8, None)]


@pytest.mark.parametrize("length", [5, 300])
def test_a_seed_of_each_step_names_no_run(length):
    rows = [f'{{"seed": {100 + s}, "step": {s}, "entropy": {s / 512}}}' for s in range(1, length + 1)]
    (run,) = read("\n".join(rows) + "\n")
    assert entropies(run) == [(s, s / 512) for s in range(1, length + 1)]
