"""Phase diagrams of sweeps: which settings are axes, what the classes mean, and tables computed by hand."""

import numpy as np
import pytest

from toybandit.cli import main
from toybandit.sweep.command import phase_diagram
from toybandit.sweep.grid import read_cells
from toybandit.sweep.phase import Point, axes_of, left_out, page, panels, table
from toybandit.sweep.phase_picture import WIDEST, is_geometric, phase_figure

TWO = {"seeds": 2, "lr": [0.1, 1], "group": [4, 8], "controller": "grpo"}


def row(cell, final, *, start=2.0, reward=0.5, target=None, error=None, failed=""):
    made = {"cell": cell.key, "target": target, "error": failed}
    if failed:
        return made
    return made | {
        "entropy_initial": start,
        "entropy_final": final,
        "reward_final": reward,
        "reward_held": 9.0,
        "target_error": error,
    }


@pytest.mark.parametrize(
    ("entropy", "target", "error", "phase"),
    [
        (0.19, None, None, "collapsed"),
        (0.21, None, None, "between"),
        (2.0, None, None, "between"),
        (2.01, None, None, "rising"),
        (0.5, 0.6, 0.1, "held"),
        (0.49, 0.6, 0.11, "between"),
        (2.5, 0.6, 1.9, "rising"),
        (2.5, 2.5, 0.0, "held"),
        (0.19, 0.25, 0.06, "collapsed"),
        (0.1, 0.15, 0.05, "held"),  # a target below a tenth of the start
        (0.014, 0.15, 0.09, "collapsed"),
        (None, 0.6, None, "failed"),
    ],
)
def test_classes(entropy, target, error, phase):
    point = Point(start=2.0, entropy=entropy, reward=0.5, target=target, error=error, runs=1, finished=1)
    assert point.phase == phase


def test_a_table_by_hand():
    """Means over seeds; a failed run is left out and told; errors on both sides do not cancel."""
    cells = read_cells({"seeds": 2, "lr": [0.1, 1], "group": [4, 8], "target": 0.6, "controller": "thermostat"})
    errors = {(4, 0.1): (0.3, -0.3), (4, 1): (0.05, -0.05), (8, 0.1): (0.0, 0.1), (8, 1): (0.2, 0.2)}
    finals = {(4, 0.1): (0.9, 0.3), (4, 1): (0.65, 0.55), (8, 0.1): (0.6, 0.7), (8, 1): (0.1, 0.12)}
    rows = [
        row(
            cell,
            finals[cell.config.group, cell.config.lr][cell.seed],
            target=0.6,
            error=errors[cell.config.group, cell.config.lr][cell.seed],
            reward=0.4 + 0.2 * cell.seed,
            failed="diverged" if (cell.config.group, cell.config.lr, cell.seed) == (8, 1, 1) else "",
        )
        for cell in cells
    ]
    (panel,) = panels(cells, rows)
    assert panel.title == "thermostat, target 0.6"
    assert table(panel).splitlines() == [
        "| lr  | group | entropy | error | class                   | reward |",
        "| --- | ----- | ------- | ----- | ----------------------- | ------ |",
        "| 0.1 | 4     | 0.600   | 0.300 | between                 | 0.500  |",
        "| 1   | 4     | 0.600   | 0.050 | held                    | 0.500  |",
        "| 0.1 | 8     | 0.650   | 0.050 | held                    | 0.500  |",
        "| 1   | 8     | 0.100   | 0.200 | collapsed (1 of 2 runs) | 0.400  |",
    ]
    assert "## thermostat, target 0.6\n\n| lr  | group |" in page([panel], "phase.png")


def test_a_panel_for_each_controller_target_and_text():
    """Not for settings that are constant, and with the controller's own target if none is given."""
    grid = {"seeds": 1, "lr": [0.1, 1], "group": [4, 8], "env": ["noisy", "on"], "target": [0.3, 0.6]}
    cells = read_cells({**grid, "controller": ["grpo", {"thermostat": {"mode": "bonus"}}]})
    rows = [row(cell, 1.0, target=cell.config.target) for cell in cells]
    assert sorted(panel.title for panel in panels(cells, rows)) == [
        "grpo, env noisy",
        "grpo, env on",
        "thermostat, env noisy, target 0.3",
        "thermostat, env noisy, target 0.6",
        "thermostat, env on, target 0.3",
        "thermostat, env on, target 0.6",
    ]
    default = read_cells({**TWO, "controller": "thermostat"})
    assert [panel.title for panel in panels(default, [row(cell, 1.0, target=0.5) for cell in default])] == [
        "thermostat, target 0.5"
    ]


@pytest.mark.parametrize(
    ("names", "axes"),
    [
        ([], None),
        (["lr"], None),
        (["group", "lr"], ("group", "lr")),
        (["target", "lr"], ("target", "lr")),
        (["target", "group", "lr"], ("group", "lr")),
        (["lr", "args.ki", "args.kp"], None),
        (["target", "lr", "args.ki", "args.kp"], None),
    ],
)
def test_exactly_two_settings_are_axes(names, axes):
    assert axes_of(names) == axes


def test_axes_differ_between_controllers():
    """Numbers only: neither schedules, nor truth values, nor names."""
    entropic = {"entropic": {"ki": [0, 0.01], "anti_windup": [True, False]}}
    cells = read_cells({"seeds": 1, "lr": [0.1, 1], "controller": ["grpo", entropic, {"steer": None}]})
    found = panels(cells, [row(cell, 1.0, target=0.1, error=0.9) for cell in cells])
    assert [(panel.title, panel.axes) for panel in found] == [
        ("entropic, anti_windup True, target 0.1", ("lr", "args.ki")),
        ("entropic, anti_windup False, target 0.1", ("lr", "args.ki")),
    ]
    assert left_out(cells) == ("a phase diagram needs exactly two numeric settings; grpo, steer: lr varied", 1)
    moving = read_cells({"seeds": 1, "lr": [0.1, 1], "controller": {"entropic": {"ki": [0.01, "linear(1, 0, 5)"]}}})
    assert left_out(moving) == ("a phase diagram needs exactly two numeric settings; entropic: lr varied", 1)


def test_the_picture_has_the_numbers_where_they_belong():
    cells = read_cells({**TWO, "seeds": 1, "lr": [0.1, 1, 10]})
    finals = {(4, 0.1): 1.0, (4, 1): 1.25, (4, 10): 0.125, (8, 0.1): 2.25, (8, 1): 2.0, (8, 10): 0.5}
    found = panels(cells, [row(cell, finals[cell.config.group, cell.config.lr]) for cell in cells])
    axes = phase_figure(found, "entropy").axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), [[1.0, 1.25, 0.125], [2.25, 2.0, 0.5]])
    assert axes.images[0].origin == "lower"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "10"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["4", "8"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("lr (log scale)", "group")
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert (written[2, 0], written[0, 1]) == ("0.12\ncollapsed", "2.25\nrising")
    assert {text.get_text().partition("\n")[0] for text in phase_figure(found, "error").axes[0].texts} == {"–"}


def test_panels_that_are_too_wide_together_are_below_each_other():
    for steps, columns in ((3, 2), (6, 1)):
        cells = read_cells({**TWO, "lr": [2.0**i for i in range(steps)], "controller": ["grpo", "steer"]})
        found = panels(cells, [row(cell, 1.0) for cell in cells])
        figure = phase_figure(found, "entropy")
        assert figure.axes[0].get_gridspec().ncols == columns
        assert figure.get_figwidth() <= WIDEST


def test_only_small_panels_have_text():
    cells = read_cells({**TWO, "seeds": 1, "lr": [0.1 * i for i in range(1, 12)], "group": list(range(2, 12))})
    found = panels(cells, [row(cell, 1.0) for cell in cells])
    assert not phase_figure(found, "entropy").axes[0].texts
    fewer = [cell for cell in cells if cell.config.group < 8]
    found = panels(fewer, [row(cell, 1.0) for cell in fewer])
    assert {text.get_text() for text in phase_figure(found, "reward").axes[0].texts} == {"0.50"}


def test_geometric_values():
    assert is_geometric([4, 8, 16, 32])
    assert is_geometric([0.01, 0.03, 0.1])
    assert not is_geometric([1, 2, 3, 4])
    assert not is_geometric([0, 1, 2])
    assert not is_geometric([1, 2])


def test_a_panel_of_failed_runs_is_drawn_and_long_tables_are_not_printed(tmp_path, capsys):
    cells = read_cells({**TWO, "seeds": 1, "lr": [0.1 * i for i in range(1, 12)], "group": list(range(2, 12))})
    phase_diagram(cells, [row(cell, 0.0, failed="diverged") for cell in cells], tmp_path)
    assert capsys.readouterr().out == f"{tmp_path}/phase.md, {tmp_path}/phase.png\n"
    assert (tmp_path / "phase.md").read_text().count("| failed |") == 110


def test_the_command_ends_in_a_phase_diagram(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(
        "{seeds: 2, states: 4, rollouts: 6, lr: [0.1, 1], group: [4, 8], target: 0.6, controller: [grpo, thermostat]}"
    )
    assert main(["sweep", "--grid", "grid.yaml", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    page = (tmp_path / "out" / "phase.md").read_text()
    for title in ("grpo", "thermostat, target 0.6"):
        own = printed.partition(f"\n{title}\n")[2].partition("\n\n")[0]
        assert len(own.splitlines()) == 6
        assert f"## {title}\n\n{own}\n" in page
    assert printed.endswith("\nout/phase.md, out/phase.png\n")
    first = (tmp_path / "out" / "phase.png").read_bytes()
    assert main(["sweep", "--grid", "grid.yaml", "--out", "out", "--map", "reward"]) == 0
    assert (tmp_path / "out" / "phase.png").read_bytes() != first


def test_three_settings_are_refused_in_a_line(tmp_path, monkeypatch, capsys):
    """And one without a word, unless a number to draw was named."""
    monkeypatch.chdir(tmp_path)
    line = "a phase diagram needs exactly two numeric settings; grpo: "
    (tmp_path / "three.yaml").write_text("{seeds: 1, states: 2, rollouts: [1, 2], lr: [0.1, 1], group: [4, 8]}")
    assert main(["sweep", "--grid", "three.yaml", "--out", "three"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"{line}group, rollouts, lr varied"]
    (tmp_path / "one.yaml").write_text("{seeds: 1, states: 2, rollouts: 1, lr: [0.1, 1]}")
    assert main(["sweep", "--grid", "one.yaml", "--out", "one"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["sweep", "--grid", "one.yaml", "--out", "one", "--map", "entropy"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"{line}lr varied"]
    assert not list(tmp_path.glob("*/phase.*"))
    assert main(["sweep", "--grid", "one.yaml", "--out", "new", "--map", "error"]) == 2
    assert capsys.readouterr().err == "error: --map error needs a controller with a target\n"
    assert not (tmp_path / "new").exists()
