"""Runs from rows: the metric that is the entropy, steps by other names, and tables in long form."""

import io
import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from entrostat.logs.foreign.foreign_runs import read_file

STEPS = range(1, 4)


def table(header, *rows):
    return io.BytesIO("\n".join(",".join(map(str, row)) for row in (header, *rows)).encode())


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (("actor/entropy", "actor/entropy_loss", "entropy_per_token"), "actor/entropy"),
        (("actor_entropy", "policy_entropy_avg", "actor_entropy_loss"), "actor_entropy"),
        (("train_actor_entropy", "actor_entropy", "train_policy_entropy_avg"), "actor_entropy"),
        (("entropy_bits", "entropy_nats", "mean_entropy_bits"), "entropy_nats"),
        (("entropy_bits", "mine/entropy", "token_entropy"), "token_entropy"),
    ],
)
def test_the_order_of_columns_does_not_matter(names, read):
    for order in itertools.permutations(names):
        (run,) = read_file(table(("step", *order), *((s, *(names.index(name) + s for name in order)) for s in STEPS)))
        assert run.translated == {read: "entropy"}
        assert [line["entropy"] for line in run.metrics] == [names.index(read) + s for s in STEPS]
        (note,) = run.notes
        assert note == (
            f"the entropy is {read}, and not {', '.join(sorted(set(names) - {read}))}: --entropy NAME reads another one"
        )


def test_of_many_other_entropies_three_are_told():
    others = [f"entropy/source_{n}" for n in range(9)]
    (run,) = read_file(table(("step", "entropy", *others), *((s, *[0.5] * 10) for s in STEPS)))
    assert run.notes == (
        "the entropy is entropy, and not entropy/source_0, entropy/source_1, entropy/source_2 or 6 others: "
        "--entropy NAME reads another one",
    )


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="has two columns named entropy: rename or remove one of them"):
        read_file(table(("step", "entropy", "entropy"), (1, 0.5, 0.6)))


@pytest.mark.parametrize(
    "name", ["iteration", "iter", "it", "update", "training_step", "global_step", "Iteration", "Training Step"]
)
@pytest.mark.parametrize("kind", ["table", "lines", "list", "columns", "chart", "Parquet"])
def test_a_step_by_another_name(name, kind):
    rows = [{name: step, "entropy": step / 10} for step in STEPS]
    content = {
        "table": table((name, "entropy"), *(row.values() for row in rows)).getvalue(),
        "lines": "".join(json.dumps(row) + "\n" for row in rows).encode(),
        "list": json.dumps(rows).encode(),
        "columns": json.dumps({name: [*STEPS], "entropy": [step / 10 for step in STEPS]}).encode(),
        "chart": table((name, "a - entropy", "b - entropy"), *((s, s / 10, s / 10) for s in STEPS)).getvalue(),
    }
    packed = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), packed)
    for run in read_file(io.BytesIO(content.get(kind, packed.getvalue()))):
        assert run.metrics == [{"step": step, "entropy": step / 10} for step in STEPS]


def test_a_plain_step_comes_before_an_iteration_and_that_before_the_calls_of_a_logger():
    (run,) = read_file(table(("step", "iteration", "entropy"), *((s, 10 * s, 0.5) for s in STEPS)))
    assert [(line["step"], line["iteration"]) for line in run.metrics] == [(s, 10 * s) for s in STEPS]
    (run,) = read_file(table(("_step", "iteration", "entropy"), *((10 * s, s, 0.5) for s in STEPS)))
    assert [line["step"] for line in run.metrics] == [*STEPS]


LONG = {
    "tbparse": ("step", "tag", "value"),
    "melted": ("_step", "variable", "value"),
    "MLflow": ("step", "key", "value"),
    "own": ("iteration", "Metric", "Value"),
}


@pytest.mark.parametrize("names", LONG.values(), ids=LONG)
@pytest.mark.parametrize("by_metric", [True, False])
def test_a_table_in_long_form(names, by_metric):
    rows = [(s, name, s / 10 + at) for s in STEPS for at, name in enumerate(("actor/entropy", "critic/score/mean"))]
    rows = sorted(rows, key=lambda row: row[1]) if by_metric else rows
    lines = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    wide = [{"step": s, "entropy": s / 10, "reward": s / 10 + 1} for s in STEPS]
    for content in (table(names, *rows), io.BytesIO(lines.encode())):
        (run,) = read_file(content)
        assert run.metrics == wide


def test_a_long_table_of_two_runs_with_a_number_that_is_lost():
    rows = [(r, t, s, 0 if s == 2 else 0.5, s == 2) for r in ("a", "b") for t in ("entropy", "reward") for s in STEPS]
    found = read_file(table(("run_uuid", "key", "step", "value", "is_nan"), *rows))
    assert [run.name for run in found] == ["a", "b"]
    assert {tuple(line["entropy"] for line in run.metrics) for run in found} == {(0.5, None, 0.5)}


def test_a_metric_called_value_makes_no_long_table():
    (run,) = read_file(table(("step", "name", "value", "entropy"), *((s, "mine", 0.1, 0.5) for s in STEPS)))
    assert run.metrics == [{"step": s, "entropy": 0.5, "value": 0.1} for s in STEPS]
