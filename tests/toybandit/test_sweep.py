"""Sweeps from the grid to the parquet: what is measured, where it runs, and what an interruption loses."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from toybandit import Config, simulate
from toybandit.cli import main
from toybandit.frontier import best_reward, mean_entropy
from toybandit.sweep import running
from toybandit.sweep.cells import plan_calls
from toybandit.sweep.command import sweep
from toybandit.sweep.grid import read_cells
from toybandit.sweep.measure import measure, results, settling, targets_of
from toybandit.sweep.store import Store, table

SMALL = {"seeds": 2, "states": 4, "rollouts": 6}
GRID = {
    **SMALL,
    "env": ["noisy", "on"],
    "target": 0.6,
    "controller": ["grpo", {"entropic": {"tau": 0, "ki": [0, 0.05]}}],
}
YAML = "{seeds: 2, states: 4, rollouts: 6, env: [noisy, on], controller: [grpo, steer]}"


def read(path):
    return pq.read_table(path).to_pylist()


def test_settling_by_hand():
    entropy = np.array(
        [
            [1.0, 0.62, 0.7, 0.64, 0.6],
            [0.61, 0.6, 0.6, 0.6, 0.6],
            [1.0, 0.9, 0.8, 0.7, 0.66],
            [1.0, 0.6, 0.6, 0.6, 0.5],
            [1.0, 0.6, 0.6, 0.6, 0.6],
        ]
    )
    found = settling(entropy - np.array([0.6, 0.6, 0.6, 0.6, np.nan])[:, None])
    np.testing.assert_array_equal(found, [3, 0, np.inf, np.inf, np.nan])


def test_results_are_those_of_the_trajectory():
    trajectory = simulate(Config(states=4, rollouts=6), range(3))
    found = results(trajectory, np.array([0.5, 0.7, np.nan]))
    np.testing.assert_allclose(found["entropy_held"], trajectory.entropy[:, 5:].mean(1))
    np.testing.assert_allclose(found["target_error"][:2], found["entropy_held"][:2] - [0.5, 0.7])
    assert np.isnan(found["target_error"][2])
    for name, expected in (("entropy", trajectory.entropy), ("reward", trajectory.reward)):
        np.testing.assert_array_equal(found[f"{name}_initial"], expected[:, 0])
    np.testing.assert_array_equal(found["entropy_final"], trajectory.entropy[:, 6])
    np.testing.assert_allclose(found["reward_held"], trajectory.reward[:, 4:].mean(1))
    final = (trajectory.probabilities * trajectory.success).sum(-1).mean(-1)
    np.testing.assert_allclose(found["reward_final"], final)
    best = best_reward(trajectory.success, mean_entropy(trajectory.probabilities))
    np.testing.assert_allclose(found["gap"], best - final, atol=1e-12)
    assert (found["gap"] > 0).all()
    np.testing.assert_array_equal(found["settling"], settling(trajectory.entropy - np.array([[0.5], [0.7], [np.nan]])))
    near = results(trajectory, trajectory.entropy[:, 3])["settling"]
    assert np.isfinite(near[trajectory.entropy[:, 3:].std(1) < 0.01]).all()


def test_targets_of_controllers():
    np.testing.assert_array_equal(targets_of(Config(controller="thermostat", target=0.7), 2), [0.7, 0.7])
    np.testing.assert_array_equal(targets_of(Config(controller="thermostat"), 1), [0.5])
    assert np.isnan(targets_of(Config(), 3)).all()
    each = Config(controller="clip_higher+entropic", controller_args={"target": [0.3, 0.6]})
    np.testing.assert_array_equal(targets_of(each, 2), [0.3, 0.6])


def test_a_row_says_what_was_asked_and_what_came_of_it():
    (call,) = plan_calls(read_cells({**SMALL, "controller": {"entropic": {"tau": 0}}}), 10)
    row = measure(call)[1]
    assert (row["env"], row["controller"], row["seed"], row["states"], row["arms"]) == ("noisy", "entropic", 1, 4, 16)
    assert row["args.tau"] == 0
    assert row["error"] == row["note"] == ""
    own = simulate(Config(controller="entropic", controller_args={"tau": 0}, states=4, rollouts=6), [1])
    assert row["entropy_final"] == pytest.approx(own.entropy[0, -1], abs=1e-12)
    assert row["target"] == 0.1
    assert row["target_error"] == pytest.approx(own.entropy[0, 5:].mean() - 0.1, abs=1e-12)


def test_what_cannot_run_says_why():
    (call,) = plan_calls(read_cells({**SMALL, "env": "exact", "controller": "steer"}), 10)
    assert all("enumerates outcomes" in row["error"] and "gap" not in row for row in measure(call))


def test_what_a_controller_warns_of_is_noted():
    (call,) = plan_calls(read_cells({**SMALL, "env": "on", "controller": "kl_cov"}), 10)
    assert "'kl_cov' is without effect" in measure(call)[0]["note"]


def test_episodes_have_no_frontier():
    (call,) = plan_calls(read_cells({**SMALL, "length": 2}), 10)
    row = measure(call)[0]
    assert row["frontier"] is None
    assert row["gap"] is None
    assert row["entropy_held"] > 0


def test_a_uniform_policy_of_float32_lies_on_the_frontier():
    """Its entropy is a little above log K."""
    trajectory = simulate(Config(states=2, arms=5, rollouts=1))
    uniform = replace(trajectory, probabilities=np.full((1, 2, 5), np.float32(0.2), dtype=np.float64))
    found = results(uniform, np.array([np.nan]))
    np.testing.assert_allclose(found["frontier"], trajectory.success.mean((-1, -2)), rtol=1e-6)
    np.testing.assert_allclose(found["gap"], 0, atol=1e-6)


def test_columns_have_one_type():
    rows = [{"a": 1, "args.b": True, "c": 1}, {"a": 2, "c": 0.5, "d": "x"}, {"d": 0.5, "e": [1, 2]}]
    made = table(rows)
    assert made.column_names == ["a", "c", "d", "e", "args.b"]
    assert [str(kind) for kind in made.schema.types] == ["int64", "double", "string", "string", "bool"]
    assert made.column("d").to_pylist() == [None, "x", "0.5"]
    assert made.column("e").to_pylist() == [None, None, "[1, 2]"]


def test_a_parquet_with_a_row_a_run(tmp_path, capsys):
    cells = read_cells(GRID)
    rows = sweep(cells, tmp_path)
    assert "12 runs, 12 of them new; " in capsys.readouterr().out
    assert read(tmp_path / "sweep.parquet") == table(rows).to_pylist()
    assert [row["cell"] for row in rows] == [cell.key for cell in cells]
    assert [row.get("args.ki") for row in rows[:6]] == [None, None, 0, 0, 0.05, 0.05]
    assert [row["target"] for row in rows[:4]] == [None, None, 0.6, 0.6]
    assert all(row["entropy_final"] > 0 for row in rows)


def test_finished_cells_are_not_simulated_again(tmp_path, capsys):
    """Not by the same grid, and not by one that has grown."""
    sweep(read_cells(GRID), tmp_path)
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    again = sweep(read_cells(GRID), tmp_path)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()} == parts
    grown = sweep(read_cells({**GRID, "seeds": 3}), tmp_path)
    assert "18 runs, 6 of them new" in capsys.readouterr().out
    assert [row for row in grown if row["seed"] < 2] == again
    assert len(sweep(read_cells(GRID), tmp_path, overwrite=True)) == 12


def test_a_run_that_diverges_leaves_the_others_alone():
    """Side by side with it, they are what they are alone; it says after which rollout."""
    (call,) = plan_calls(read_cells({**SMALL, "update": "adam", "lr": [0.1, 1e308]}), 10)
    (alone,) = plan_calls(read_cells({**SMALL, "update": "adam", "lr": 0.1}), 10)
    rows = measure(call)
    for row, own in zip(rows[:2], measure(alone), strict=True):
        assert row["error"] == ""
        assert row["gap"] == pytest.approx(own["gap"], abs=1e-12)
    for row in rows[2:]:
        assert row["error"] == "logits are not finite after rollout 1: lower lr"
        assert "gap" not in row


def test_what_could_not_run_is_tried_again(tmp_path, monkeypatch):
    """Also where a part of an older version holds the failure, and without losing what lies beside it."""
    cells = read_cells({**SMALL, "seeds": 3})
    good = sweep(cells, tmp_path / "good")
    bad = {**good[0], "error": "diverged", "gap": None}
    (tmp_path / "parts").mkdir()
    pq.write_table(table([bad, good[1]]), tmp_path / "parts" / f"{cells[0].key}.parquet")
    measured = []
    monkeypatch.setattr(running, "measure", lambda call: measured.extend(call.cells) or [good[0], {**bad, **good[2]}])
    assert sweep(cells, tmp_path) == good
    assert measured == [cells[0], cells[2]]
    again = Store(tmp_path)
    assert all(cell in again for cell in cells)
    assert again.merge(cells) == table(good).to_pylist()


def test_failures_are_not_stored(tmp_path):
    cells = read_cells({**SMALL, "env": "exact", "controller": "steer"})
    assert all(row["error"] for row in sweep(cells, tmp_path))
    assert cells[0] not in Store(tmp_path)


def test_a_table_with_other_runs_is_not_written_over_unless_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(YAML)
    (tmp_path / "other.yaml").write_text(YAML.replace("grpo, steer", "grpo"))
    other = ["sweep", "--grid", "other.yaml", "--out", "out"]
    assert main(["sweep", "--grid", "grid.yaml", "--out", "out"]) == 0
    before = read(tmp_path / "out" / "sweep.parquet")
    capsys.readouterr()
    assert main(other) == 2
    message = "out/sweep.parquet has 4 other runs: choose another --out, or pass --overwrite"
    assert capsys.readouterr().err == f"error: {message}\n"
    assert read(tmp_path / "out" / "sweep.parquet") == before
    assert main([*other, "--overwrite"]) == 0
    assert len(read(tmp_path / "out" / "sweep.parquet")) == 4


def test_an_interruption_loses_one_call(tmp_path, capsys):
    calls = plan_calls(read_cells(GRID), 2)
    store = Store(tmp_path)
    for rows, _ in zip(running.run_calls(calls), range(3), strict=False):
        store.add(rows)
    (tmp_path / "parts" / "torn.partial").write_bytes(b"half a file")
    sweep(read_cells(GRID), tmp_path, batch=2)
    assert f"12 runs, {12 - 3 * 2} of them new" in capsys.readouterr().out


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(YAML.replace("[noisy, on]", "[exact, on]"))
    assert main(["sweep", "--grid", "grid.yaml", "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines() == ["8 runs, 8 of them new, 2 could not run (column error); out/sweep.parquet"]
    assert len(read(tmp_path / "out" / "sweep.parquet")) == 8


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--grid", "none.yaml"], "none.yaml: No such file or directory"),
        (["--grid", "grid.yaml", "--workers", "many"], "workers must be a positive number or ray, not 'many'"),
        (["--grid", "grid.yaml", "--workers", "0"], "workers must be a positive number or ray, not '0'"),
        (["--grid", "grid.yaml", "--batch", "0"], "toybandit sweep: --batch must be at least 1; got 0"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(YAML)
    assert main(["sweep", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"error: {message}\n"
    assert captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["grid.yaml"]
