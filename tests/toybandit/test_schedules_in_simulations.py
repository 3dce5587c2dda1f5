"""Schedules in simulations: what moves is what the rules read, side by side as alone, and on the command line."""

import numpy as np
import pytest

import entrostat as es
from entrostat.settings.plain_yaml import load_yaml
from toybandit import Config, simulate
from toybandit.cli import main
from toybandit.sweep.cells import plan_calls
from toybandit.sweep.grid import read_cells
from toybandit.sweep.measure import measure

SMALL = {"states": 4, "rollouts": 24, "passes": 2}
TARGETS = ["linear(1.2, 0.6, 20)", 0.7, "cosine(0.9x, 0.4x)", "piecewise(0: 1.2, 10: 0.8)"]


def test_the_entropy_follows_a_target_that_falls():
    args = {"rate": 0.2, "k": 0.5}
    run = simulate(
        Config(controller="thermostat", target=es.linear(1.3, 0.7, steps=50), controller_args=args, rollouts=70), [0, 1]
    )
    assert run.target.shape == run.reward.shape
    np.testing.assert_allclose(run.target[0, [0, 25, 50, 69]], [1.3, 1.0, 0.7, 0.7])
    assert np.abs(run.entropy[:, 31] - run.target[:, 30]).max() < 0.2
    assert np.abs(run.entropy[:, 60:70] - 0.7).mean() < 0.1


def test_a_configuration_holds_the_text():
    config = Config(controller="entropic", target=es.cosine("1x", "0.4x"), controller_args={"kp": es.linear(1, 2, 9)})
    assert config == Config(controller="entropic", target="cosine(1x, 0.4x)", controller_args={"kp": "linear(1, 2, 9)"})
    assert Config(**config.resolved()).resolved() == config.resolved()


def test_schedules_side_by_side_are_each_alone():
    cells = read_cells(SMALL | {"seeds": [3], "target": TARGETS, "controller": ["thermostat"]})
    (call,) = plan_calls(cells, 10)
    for cell, row in zip(cells, measure(call), strict=True):
        alone = simulate(cell.config, [cell.seed])
        assert row["entropy_final"] == pytest.approx(alone.entropy[0, -1], abs=1e-12)
        assert row["target"] == pytest.approx(alone.target[0, -8:].mean(), abs=1e-12)
        assert row["target_error"] == pytest.approx((alone.entropy[0, -8:] - alone.target[0, -8:]).mean(), abs=1e-12)


def test_hyperparameters_in_a_grid():
    grid = SMALL | {"seeds": 1, "controller": [{"entropic": {"tau": 0, "kp": [1, "linear(1, 2, 9)"]}}]}
    (call,) = plan_calls(read_cells(grid), 10)
    assert len(call.cells) == 2
    assert [row["args.kp"] for row in measure(call)] == [1, "linear(1, 2, 9)"]


@pytest.mark.parametrize("target", ["warm", "linear(1, 2)x", "linear(1)", "piecewise(3: 1)"])
def test_another_text_is_no_target(target):
    with pytest.raises(ValueError, match=r"^target[^\n]*(schedule|piecewise)[^\n]*$"):
        Config(controller="entropic", target=target)


def test_the_command_line(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["run", "--controller", "clip_higher+thermostat", "--target", "linear(1x, 0.4x)", "--set"]
    words += ["eps_high=piecewise({0: .28, 3: .2})", "--rollouts", "5", "--states", "2", "--seeds", "1"]
    assert main([*words, "--out", str(out)]) == 0
    assert load_yaml(out / "config.yaml")["target"] == "linear(1x, 0.4x)"
    entropy, target = ([line[key] for line in es.runlog.read_metrics(out)] for key in ("entropy", "thermostat/target"))
    assert target == pytest.approx(np.linspace(entropy[0], 0.4 * entropy[0], 5))
    assert es.runlog.read_metrics(out)[3]["clip_higher/eps_high"] == 0.2
    assert main(["run", "--controller", "thermostat", "--target", "linear(1, -1, 9)", "--out", str(out) + "2"]) == 2
    said = capsys.readouterr().err
    assert said == "error: thermostat: target must not be negative, with target=linear(1, -1, 9)\n"
