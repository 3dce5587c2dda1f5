"""Run logs: only new lines are read; incomplete, long and foreign files do no harm."""

import io
import json
import os
import pickle
import time
import zipfile

import numpy as np
import pytest

from entrostat.logs.runlog import RunLog
from entrostat_app.views.runs import follow, run_log
from entrostat_app.views.runs.follow import Follower


@pytest.fixture
def log(tmp_path):
    """Return the log of a trainer's run with two finished steps."""
    log = RunLog(tmp_path / "a", {"steps": 4}, seed=0)
    for step in range(2):
        log.log(step, {"entropy": 1.0 - step / 4, "reward": step})
        log.sample(step, response=f"r{step}", reward=1.0)
    return log


def follow_all(follower):
    anew = follower.begins_anew()
    return anew, [line for _, line in follower.lines()]


def test_every_line_is_read_once(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("a\nb\n")
    follower = Follower(path, 1000)
    assert follow_all(follower) == (False, [b"a\n", b"b\n"])
    assert follow_all(follower) == (False, [])
    with path.open("a") as file:
        file.write("c\ntorn")
    assert follow_all(follower) == (False, [b"c\n"])
    with path.open("a") as file:
        file.write(" no more\n")
    assert follow_all(follower) == (False, [b"torn no more\n"])


def test_a_file_that_was_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("a\nb\n")
    follower = Follower(path, 1000)
    follow_all(follower)
    path.write_text("a\nB\nc\n")
    os.utime(path, ns=(1, 1))
    assert follow_all(follower) == (True, [b"a\n", b"B\n", b"c\n"])
    path.write_text("")
    assert follow_all(follower) == (True, [])


def test_places_are_bytes_and_long_files_are_cut(tmp_path, monkeypatch):
    path = tmp_path / "x.jsonl"
    path.write_text("é\nb\ncc\n")
    follower = Follower(path, 5)
    assert [place for place, _ in follower.lines()] == [0, 3]
    assert follower.cut
    monkeypatch.setattr(follow, "LONGEST", 2)
    with pytest.raises(ValueError, match=r"^x.jsonl has a line of more than"):
        list(Follower(path, 1000).lines())


def test_a_run_in_progress_grows(log, tmp_path):
    found = run_log.read(tmp_path, "a")
    assert found.state == "running"
    assert found.last_step == 1
    assert found.metrics["entropy"].values.tolist() == [[1.0, 0.75]]
    for step in range(2, 4):
        log.log(step, {"entropy": 0.5, "late": 7.0, "name": "text", "flag": True, "none": None})
    found = run_log.read(tmp_path, "a")
    assert found.state == "done"
    assert found.metrics["entropy"].values.tolist() == [[1.0, 0.75, 0.5, 0.5]]
    assert found.metrics["late"].step.tolist() == [2, 3]
    assert list(found.metrics) == ["entropy", "reward", "late"]


def test_a_run_that_began_anew_forgets_what_was(log, tmp_path):
    run_log.read(tmp_path, "a")
    RunLog(tmp_path / "a", {"steps": 4}, seed=0).log(0, {"loss": 1.0})
    assert list(run_log.read(tmp_path, "a").metrics) == ["loss"]


def test_a_run_without_news_has_stopped(log, tmp_path):
    path = tmp_path / "a" / "metrics.jsonl"
    old = time.time() - 10 * run_log.QUIET
    os.utime(path, (old, old))
    assert run_log.read(tmp_path, "a").state == "stopped"
    RunLog(tmp_path / "b", {}, seed=0)
    os.utime(tmp_path / "b" / "metrics.jsonl", (old, old))
    assert run_log.read(tmp_path, "b").state == "empty"


def test_a_length_beyond_every_float_is_no_failure(log, tmp_path):
    (tmp_path / "a" / "config.yaml").write_text(f"steps: 0x{'f' * 400}\n")
    assert run_log.read(tmp_path, "a").state == "running"


def test_only_new_lines_are_parsed(log, tmp_path, monkeypatch):
    run_log.read(tmp_path, "a")
    seen = []
    real = run_log._record
    monkeypatch.setattr(run_log, "_record", lambda line: seen.append(line) or real(line))
    run_log.read(tmp_path, "a")
    assert seen == []
    log.log(2, {"entropy": 0.1})
    run_log.read(tmp_path, "a")
    assert len(seen) == 1


def test_lines_that_are_no_metrics_are_counted(log, tmp_path):
    with (tmp_path / "a" / "metrics.jsonl").open("a") as file:
        file.write('nonsense\n[1]\n{"entropy": 1}\n{"step": 5, "entropy": 1e999}\n{"step": 6, "reward": 2}\n{"step": 7')
    for _ in range(2):
        found = run_log.read(tmp_path, "a")
        assert found.notes == ("a: 3 lines of its metrics.jsonl are not JSON objects with a step: left out.",)
        assert found.metrics["reward"].step.tolist() == [0, 1, 6]
        assert found.metrics["entropy"].step.tolist() == [0, 1]


def test_a_long_log_is_shown_up_to_a_limit(log, tmp_path, monkeypatch):
    monkeypatch.setattr(run_log, "MOST_METRICS", 60)
    found = run_log.read(tmp_path, "a")
    assert found.last_step == 0
    assert found.notes[0].startswith("a is shown up to step 0")


def test_a_name_that_leads_out_is_refused(log, tmp_path):
    for read in (run_log.read, run_log.sample_steps):
        with pytest.raises(ValueError, match="is not the name of a run"):
            read(tmp_path / "a", "../a")


def test_samples_are_found_by_their_step(log, tmp_path):
    log.sample(3, response="é\n")
    log.sample(3, response="again")
    with (tmp_path / "a" / "samples.jsonl").open("a") as file:
        file.write('{"response": "other order", "step": 5}\n{"response": "torn')
    assert list(run_log.sample_steps(tmp_path, "a")) == [0, 1, 3, 5]
    found = {step: [s["response"] for s in run_log.samples(tmp_path, "a", step)] for step in range(6)}
    assert found == {
        0: ["r0"],
        1: ["r1"],
        2: ["r1"],
        3: ["é\n", "again"],
        4: ["é\n", "again"],
        5: ["other order"],
    }
    assert run_log.samples(tmp_path, "a", -1) == []
    (tmp_path / "a" / "samples.jsonl").write_text('{"step": 9, broken\n')
    with pytest.raises(ValueError, match="a line of step 9 is not a JSON object"):
        run_log.samples(tmp_path, "a", 9)


@pytest.fixture
def simulated(tmp_path):
    """Return the path of trajectory.npz in a simulator's run of two seeds."""
    log = RunLog(tmp_path / "s", {"rollouts": 3, "seeds": [0, 1]}, seed=0)
    for step in range(3):
        log.log(step, {"entropy": float(step), "reward": 0.5})
    log.close()
    return tmp_path / "s" / "trajectory.npz"


def test_the_seeds_of_a_simulation_come_from_its_arrays(simulated, tmp_path):
    entropy = np.array([[0.0, 1, 2, 9], [2.0, 3, 4, 9]])
    np.savez_compressed(simulated, entropy=entropy, reward=np.zeros((2, 3)), logits=np.zeros((2, 3, 4)))
    found = run_log.read(tmp_path, "s")
    assert found.metrics["entropy"].values.tolist() == entropy[:, :3].tolist()
    assert found.metrics["reward"].values.shape == (2, 3)
    old = time.time() - 1000
    os.utime(simulated, (old, old))  # left over from an earlier run
    assert run_log.read(tmp_path, "s").metrics["entropy"].values.shape == (1, 3)


def test_the_seeds_of_a_metric_are_those_of_its_steps(simulated, tmp_path):
    with (tmp_path / "s" / "metrics.jsonl").open("w") as file:
        file.write('{"step": 0, "change": null, "half": 1}\n{"step": 1, "change": 2}\n{"step": 2.5, "half": 3}\n')
        file.write('{"step": 2, "change": 3}\n')
    np.savez_compressed(simulated, change=[[np.nan, 1, 2], [np.nan, 3, 4]], half=np.zeros((2, 3)))
    found = run_log.read(tmp_path, "s").metrics
    assert found["change"].step.tolist() == [1, 2]
    assert found["change"].values.tolist() == [[1, 2], [3, 4]]
    assert found["half"].values.tolist() == [[1, 3]]


def damaged(path):
    """Write an archive whose compressed member has damaged bytes."""
    np.savez_compressed(path, entropy=np.random.default_rng(0).random((2, 100)))
    whole = bytearray(path.read_bytes())
    whole[100:300] = b"\xff" * 200
    path.write_bytes(whole)


def foreign(path):
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("notes.txt", "hello")


def claiming(path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2, 10**15)})
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("entropy.npy", header.getvalue())


@pytest.mark.parametrize("make", [damaged, foreign, claiming])
def test_damaged_arrays_do_not_hide_the_run(simulated, tmp_path, make):
    make(simulated)
    found = run_log.read(tmp_path, "s")
    assert found.metrics["entropy"].values.tolist() == [[0, 1, 2]]
    assert bool(found.notes) == (make is not foreign)


def test_steps_that_nothing_can_draw_are_left_out(log, tmp_path):
    with (tmp_path / "a" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1e308, "entropy": 1}\n{"step": -1e308, "entropy": 1}\n')
    with (tmp_path / "a" / "samples.jsonl").open("a") as file:
        file.write(f'{{"step": {2**53}}}\n{{"reward": 1, "step": {2**60}}}\n{{"step": true}}\n')
    found = run_log.read(tmp_path, "a")
    assert found.metrics["entropy"].step.tolist() == [0, 1]
    assert "2 lines" in found.notes[0]
    assert list(run_log.sample_steps(tmp_path, "a")) == [0, 1]


def test_numbers_of_samples_are_finite(log, tmp_path):
    huge = "1" * 400
    with (tmp_path / "a" / "samples.jsonl").open("a") as file:
        file.write(f'{{"step": 3, "reward": {huge}, "entropy": [1, {huge}, Infinity, true], "logp": NaN}}\n')
    (sample,) = run_log.samples(tmp_path, "a", 3)
    assert sample == {"step": 3, "reward": None, "entropy": [1, None, None, True], "logp": None}


def test_a_log_cut_before_its_first_metric_is_no_failure(log, tmp_path, monkeypatch):
    monkeypatch.setattr(run_log, "MOST_METRICS", 5)
    assert run_log.read(tmp_path, "a").metrics == {}


def test_nothing_is_unpickled(simulated, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "pwned"), "w"))

    np.savez_compressed(simulated, entropy=np.array([[Evil(), Evil()]], dtype=object))
    found = run_log.read(tmp_path, "s")
    simulated.write_bytes(pickle.dumps(Evil()))
    again = run_log.read(tmp_path, "s")
    assert not (tmp_path / "pwned").exists()
    for log in (found, again):
        assert log.metrics["entropy"].values.shape == (1, 3)
        assert log.notes[0].startswith("s is shown without its seeds")


def test_arrays_that_unpack_to_too_much_are_left_out(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(run_log, "MOST_ARRAYS", 1000)
    np.savez_compressed(simulated, entropy=np.zeros((2, 10_000)))
    assert "larger than" in run_log.read(tmp_path, "s").notes[0]


def test_a_run_of_the_simulator(runs):
    found = run_log.read(runs, "first")
    assert found.state == "done"
    assert found.metrics["entropy"].values.shape == (2, 30)
    lines = [json.loads(line) for line in (runs / "first" / "metrics.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(found.metrics["entropy"].values.mean(0), [line["entropy"] for line in lines])
