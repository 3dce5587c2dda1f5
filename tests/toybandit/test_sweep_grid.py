"""Grids: which cells they mean, how cells share a simulation, and what is said of a wrong one."""

from dataclasses import replace
from pathlib import Path

import pytest

from toybandit import simulate
from toybandit.sweep.cells import Call, Cell, plan_calls
from toybandit.sweep.grid import read_cells, read_grid
from toybandit.sweep.measure import measure

SMALL = {"states": 4, "rollouts": 6}
SHIPPED = sorted((Path(__file__).parents[2] / "examples" / "grids").glob("*.yaml"))


def test_lists_multiply():
    entropic = {"entropic": {"tau": 0, "ki": [0, 0.01, 0.05]}}
    cells = read_cells({"seeds": 2, "env": ["noisy", "on"], "lr": [0.1, 0.2], "controller": ["grpo", entropic]})
    assert len(cells) == 2 * 2 * 2 * (1 + 3)
    assert len({cell.key for cell in cells}) == len(cells)
    assert [cell.seed for cell in cells[:2]] == [0, 1]
    assert dict(cells[2].config.controller_args) == {"tau": 0, "ki": 0}


def test_targets_go_to_the_controllers_that_have_one():
    cells = read_cells({"seeds": [5], "target": [0.3, 0.6], "controller": ["steer", "clip_higher+entropic"]})
    assert [(cell.config.controller, cell.config.target) for cell in cells] == [
        ("steer", None),
        ("clip_higher+entropic", 0.3),
        ("clip_higher+entropic", 0.6),
    ]


def test_a_cell_asked_for_twice_is_one():
    assert len(read_cells({"seeds": 3, "controller": ["grpo", "grpo"], "passes": [8, 8]})) == 3


def test_numbers_run_side_by_side_and_structure_apart():
    controllers = [
        {"entropic": {"tau": [0, 0.5], "ki": [0, 0.05]}},
        {"entropic": {"tau": 0, "anti_windup": [True, False]}},
        "steer",
    ]
    cells = read_cells({"seeds": 2, "env": "noisy", "target": [0.3, 0.6], "controller": controllers})
    calls = plan_calls(cells, 1000)
    assert [len(call.cells) for call in calls] == [2 * 4 * 2, 2 * 2, 2 * 2, 2]
    assert [len(call.cells) for call in plan_calls(cells, 5)] == [5, 5, 5, 1, 4, 4, 2]
    config = calls[0].config
    assert config.target is None
    assert config.controller_args["target"] == [0.3, 0.3, 0.6, 0.6] * 4
    assert config.controller_args["ki"] == ([0] * 4 + [0.05] * 4) * 2
    assert calls[1].config.controller_args == {"tau": 0, "anti_windup": True, "target": [0.3, 0.3, 0.6, 0.6]}


def test_side_by_side_is_as_alone():
    entropic = {"entropic": {"tau": [0, 0.5], "ki": 0.05}}
    grid = {"seeds": 2, "target": [0.3, 0.9], "lr": [0.2, 0.5], "controller": entropic, **SMALL}
    (call,) = plan_calls(read_cells(grid), 1000)
    together = simulate(call.config, call.seeds)
    for run, cell in enumerate(call.cells):
        alone = simulate(Call([cell]).config, [cell.seed])
        assert together.entropy[run] == pytest.approx(alone.entropy[0], abs=1e-12)


def test_keys_name_what_is_asked_for():
    """Equal for an environment by name and by its numbers; different for whatever changes the run."""
    (base,) = read_cells({"seeds": [1], "controller": {"entropic": {"ki": 0.1}}})
    (same,) = read_cells({"seeds": [1], "controller": {"entropic": {"ki": 0.1}}, "states": 64, "lr": 0.5})
    assert same == base
    (one, other) = ({"entropic": dict(items)} for items in ((("tau", 0), ("ki", 1)), (("ki", 1), ("tau", 0))))
    assert read_cells({"controller": one}) == read_cells({"controller": other})
    for change in ({"seeds": [2]}, {"lr": 0.4}, {"target": 0.3}, {"controller": {"entropic": {"ki": 0.2}}}):
        (other,) = read_cells({"seeds": [1], "controller": {"entropic": {"ki": 0.1}}} | change)
        assert other != base


def test_files_are_yaml_1_2(tmp_path):
    """`on` is an environment, 1e-3 and .5 are numbers, true is a truth."""
    path = tmp_path / "grid.yaml"
    path.write_text("seeds: 1\nenv: on\nlr: 1e-3\ncontroller:\n  - entropic: {tau: .5, ki: 5e-2, anti_windup: true}\n")
    (cell,) = read_grid(path)
    assert (cell.config.env, cell.config.lr) == ("on", 0.001)
    assert dict(cell.config.controller_args) == {"tau": 0.5, "ki": 0.05, "anti_windup": True}


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_grids_run(path):
    """All of their cells, at a size that shows nothing."""
    cells = read_grid(path)
    small = [Cell(replace(cell.config, states=2, rollouts=1), cell.seed) for cell in cells if cell.seed < 2]
    rows = [row for call in plan_calls(small, 1000) for row in measure(call)]
    assert len(rows) >= 40
    assert not any(row["error"] for row in rows)
    assert f"--grid examples/grids/{path.name}" in path.read_text()


def test_grids_are_shipped():
    assert SHIPPED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- grpo", "a grid is a mapping with keys such as seeds, controller"),
        ("lrs: 0.1", "unknown key 'lrs'; did you mean lr"),
        ("controller_args: 0.4", "hyperparameters go under their controller"),
        ("lr: fast", "lr must be a valid number"),
        ("lr: [0.1, true]", "lr must be a valid number"),
        ("lr: .inf", "lr must be finite; got inf"),
        ("target: high", "target must be a number or a schedule"),
        ("env: 3", "env must be text; got 3"),
        ("lr: -1", "lr must be positive; got -1"),
        ("states: 2.5", "states must be a valid integer"),
        ("env: [noisy, nosy]", "unknown env 'nosy'; did you mean noisy"),
        ("env: []", r"env: expected a value or a list of values, not \[\]"),
        ("lr: [0.1, [0.2]]", r"lr: expected a value or a list of values, not \[0\.1, \[0\.2\]\]"),
        ("seeds: 0", "seeds: expected a positive number or a list of seeds, not 0"),
        ("seeds: few", "seeds: expected a positive number or a list of seeds, not 'few'"),
        ("seeds: [0, -1]", r"seeds: expected a positive number or a list of seeds, not \[0, -1\]"),
        ("controller: xyzzy", "unknown controller 'xyzzy'; choose from"),
        ("controller: [3]", "controller: expected a name, or one name with its hyperparameters, not 3"),
        ("controller: {a: {}, b: {}}", "controller: expected a name, or one name with its hyperparameters"),
        ("controller: {steer: 3}", "controller: the hyperparameters of 'steer' must be a mapping, not 3"),
        ("controller: {steer: {kp: 3}}", r"no part of 'steer\+ppo' has the hyperparameter 'kp'.* \(given kp=3\)"),
        ("controller: {steer: {lambda_min: {}}}", "steer: lambda_min: expected a value or a list of values"),
        (
            "controller: {steer: {lambda_min: [0.5, low]}}",
            r"steer: lambda_min must be a number, not 'low' \(given lambda_min='low'\)",
        ),
        (
            "{target: 1, controller: {entropic: {target: 2}}}",
            "target: controller 'entropic' sets a target too: give it in one place",
        ),
        ("env: [noisy", "is not plain YAML: "),
        ("# env: noisy", "a grid is a mapping with keys such as seeds, controller"),
    ],
)
def test_wrong_grids_are_told_in_one_line(text, message, tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as told:
        read_grid(path)
    assert str(told.value).startswith(str(path))
    assert "\n" not in str(told.value)


def test_no_file():
    with pytest.raises(ValueError, match=r"nowhere\.yaml: No such file"):
        read_grid(Path("nowhere.yaml"))
