"""Columns of text that tell the runs of one file apart."""

import io
import json

import pytest

from entrostat.logs.foreign.foreign_runs import read_file
from entrostat.logs.foreign.told_apart import TextColumns

SMALL, LARGE = "small", "large"


def log(name, *values, steps=range(4), apart=True, more=lambda value, step: {}):
    """Return lines of JSON with a column that has these values; apart: each at every step, else one after another."""
    pairs = [(step, value) for step in steps for value in values]
    pairs = pairs if apart else sorted(pairs, key=lambda pair: values.index(pair[1]))
    rows = [{"step": s, name: v, "entropy": 1.0 + values.index(v) + s / 10, **more(v, s)} for s, v in pairs]
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("name", ["model", "Model Name", "exp_name", "label", "whatever"])
def test_runs_are_told_apart_and_told_by_what(name, apart):
    found = read_file(log(name, SMALL, LARGE, apart=apart))
    assert [(run.name, run.metrics[0]["entropy"], len(run.metrics)) for run in found] == [
        (SMALL, 1.0, 4),
        (LARGE, 2.0, 4),
    ]
    assert {run.notes for run in found} == {(f"runs are told apart by {name}",)}


def test_numbers_count_in_columns_with_a_known_name_alone():
    assert [run.name for run in read_file(log("exp_id", 7, 8))] == ["exp_id 7", "exp_id 8"]
    (run,) = read_file(log("dose", 7, 8))
    assert "the later value counts: dose at 4 steps, entropy at 4 steps" in run.notes[0]


def test_a_run_has_the_column_beside_its_name():
    rows = [{"step": s, "seed": 1, "model": m, "entropy": 1.0} for s in range(3) for m in (SMALL, LARGE)]
    found = read_file(io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert [run.name for run in found] == ["seed 1, small", "seed 1, large"]


@pytest.mark.parametrize(
    "rows",
    [
        [{"step": s, "model": SMALL, "entropy": 1.0} for s in range(6)],
        [{"step": s, "model": f"checkpoint {s // 3}", "entropy": 1.0} for s in range(6)],
        [{"step": s, "sample": f"text {s}", "entropy": 1.0} for s in range(6)],
        [{"step": s, "split": k, "entropy" if k == "train" else "acc": 1.0} for s in range(6) for k in ("train", "x")],
        [
            {"step": s, "stamp": f"{n}", "entropy": n + s}
            for n, some in enumerate((range(6), range(4, 9)))
            for s in some
        ],
    ],
    ids=["one model", "a model for each phase", "samples", "kinds of rows", "a resumed run"],
)
def test_other_texts_leave_one_run(rows):
    (run,) = read_file(io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert run.name == ""
    assert not any("told apart" in note for note in run.notes)


def test_a_column_with_many_values_is_forgotten():
    columns = TextColumns()
    for at in range(100):
        columns.add(at % 2, {"prompt": f"text {at}"})
    assert columns.steps == {}
    assert columns.dividing(conflicts=True) == ()
