"""Rows that several processes of one run wrote."""

import io
import json

import pytest

from entrostat.logs.foreign.foreign_runs import read_file
from entrostat.logs.foreign.writers import merged, runs_of


def rows(*written):
    """Return rows of an entropy from (writer, step, value)."""
    return [(writer, step, {"entropy": value}) for writer, step, value in written]


def test_the_mean_over_ranks_in_any_order():
    found = [("rank 0", 1, 1.0), ("rank 1", 1, 3.0), ("rank 0", 2, 2.0), ("rank 1", 2, 4.0)]
    for order in (found, [found[0], found[2], found[1], found[3]]):
        assert merged(rows(*order)).rows == [(1, {"entropy": 2.0}), (2, {"entropy": 3.0})]
        assert merged(rows(*order)).writers == ("rank 0", "rank 1")


def test_a_number_that_one_rank_has_lost_is_lost():
    assert merged(rows(("rank 0", 1, 1.0), ("rank 1", 1, None))).rows == [(1, {"entropy": None})]


def test_metrics_that_only_one_of_them_has_are_kept():
    found = merged([("rank 0", 1, {"entropy": 1.0}), ("rank 1", 1, {"reward": 0.5})])
    assert found.rows == [(1, {"entropy": 1.0}), (1, {"reward": 0.5})]
    assert found.writers == ()


@pytest.mark.parametrize("kind", ["pid", "node"])
def test_a_process_after_another_is_a_run_that_was_resumed(kind):
    written = rows((f"{kind} a", 1, 1.0), (f"{kind} a", 2, 2.0), (f"{kind} b", 2, 5.0), (f"{kind} b", 3, 6.0))
    found = merged(written)
    assert (found.rows, found.writers) == ([(step, line) for _, step, line in written], ())


def test_processes_that_alternate_are_one_run_before_and_after_it_was_resumed():
    written = rows(
        *[(f"pid {one}", step, value) for step in (1, 2, 3) for one, value in (("a", 1.0), ("b", 3.0))],
        *[(f"pid {one}", step, value) for step in (2, 3) for one, value in (("c", 4.0), ("d", 6.0))],
    )
    assert merged(written).rows == [(1, {"entropy": 2.0}), *[(s, {"entropy": v}) for s, v in
        ((2, 2.0), (3, 2.0), (2, 5.0), (3, 5.0))]]  # fmt: skip


BEFORE = {
    "torchrun": "[rank{}]: ",
    "torchrun --tee": "[default{}]:",
    "srun --label": "{}: ",
    "pdsh": "gpu-node-{}: ",
    "Ray": "(WorkerDict pid=10{}, ip=10.0.0.{}) ",
    "Megatron": "(TrainActor pid=7) [Rank {}] ",
    "text": "INFO rank={} ",
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_what_stands_before_a_line_tells_the_process(before):
    lines = [f"{before.format(r, r)}step:{s} - actor/entropy:{r + s}.5\n" for s in range(3) for r in range(4)]
    (run,) = read_file(io.BytesIO("".join(lines).encode()))
    assert [(line["step"], line["entropy"]) for line in run.metrics] == [(0, 2.0), (1, 3.0), (2, 4.0)]
    (note,) = run.notes
    assert note.startswith("4 processes wrote the same steps (")
    assert note.endswith("): the mean over them counts")


@pytest.mark.parametrize("name", ["rank", "local_rank", "Node", "worker_id", "hostname"])
def test_a_column_tells_the_process(name):
    lines = [json.dumps({"step": s, name: r, "entropy": r + s + 0.5}) for s in range(3) for r in range(2)]
    (run,) = read_file(io.BytesIO("\n".join(lines).encode()))
    assert [(line["step"], line["entropy"]) for line in run.metrics] == [(0, 1.0), (1, 2.0), (2, 3.0)]


def test_a_rank_that_is_a_setting_changes_nothing():
    lines = [json.dumps({"step": s, "rank": 16, "entropy": 1.0}) for s in range(3)]
    (run,) = read_file(io.BytesIO("\n".join(lines).encode()))
    assert [(line["step"], line["rank"]) for line in run.metrics] == [(0, 16), (1, 16), (2, 16)]
    assert run.notes == ()


def test_drivers_that_alternate_are_runs_and_a_resumed_one_is_not():
    def rows(*pids_and_steps):
        return [(f"pid TaskRunner pid={pid}", step, {"entropy": 0.5}) for pid, step in pids_and_steps]

    assert runs_of(rows((1, 1), (1, 2), (2, 3), (2, 4))) == {}
    assert runs_of(rows((1, 1), (1, 2), (2, 2), (2, 3))) == {}  # went on from an earlier step
    together = runs_of(rows((1, 1), (2, 1), (1, 2), (2, 2)))
    assert {name: [step for _, step, _ in one] for name, one in together.items()} == {
        "TaskRunner pid=1": [1, 2],
        "TaskRunner pid=2": [1, 2],
    }
    workers = [(f"pid WorkerDict pid={pid}", step, {"entropy": 0.5}) for step in (1, 2) for pid in (1, 2)]
    assert runs_of(workers) == {}
