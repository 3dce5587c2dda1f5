"""The metrics of tokens in the simulator: they leave it as it is, and say what it does."""

import numpy as np
import pytest

from entrostat.logs.runlog import read_metrics
from toybandit import Config, simulate
from toybandit.cli import main

SMALL = {"states": 8, "rollouts": 6, "passes": 3}


def test_looking_changes_nothing():
    config = Config(controller="clip_higher+steer", **SMALL)
    plain, watched = simulate(config, [3, 5]), simulate(config, [3, 5], diagnostics=True)
    assert np.array_equal(plain.entropy, watched.entropy)
    assert plain.metrics.keys() < watched.metrics.keys()
    assert all(values.shape == (2, 6) for values in watched.metrics.values())


def test_metrics_agree_with_the_trajectory():
    trajectory = simulate(Config(controller="entropy_bonus", **SMALL), [0, 1], predict=True, diagnostics=True)
    m = trajectory.metrics
    assert np.isnan(m["entropy_change/measured"][:, 0]).all()
    np.testing.assert_allclose(m["entropy_change/measured"][:, 1:], np.diff(trajectory.entropy)[:, :-1], atol=1e-15)
    np.testing.assert_allclose(m["entropy_change/predicted"][:, 1:], trajectory.predicted[:, :-1], rtol=1e-12)
    ema = trajectory.entropy[:, 0]
    for t in range(1, 6):
        ema = 0.6 * ema + 0.4 * trajectory.entropy[:, t]
    np.testing.assert_allclose(m["entropy/ema"][:, -1], ema, rtol=1e-14)
    quadrants = sum(m[f"quadrant/{q}"] for q in ("exploitation", "exploration", "suppression", "correction"))
    assert (quadrants > 0.5).all()
    assert (quadrants <= 1).all()
    assert (m["quadrant_flow/exploitation"] < 0).all()
    assert (m["quadrant_flow/correction"] > 0).all()
    assert (m["touched"] == 1).all()


def test_enumerated_outcomes_are_no_sample():
    with pytest.raises(ValueError, match="diagnostics are statistics over a sample"):
        simulate(Config(env="exact", rollouts=2), [0], diagnostics=True)


def test_run_logs_them(tmp_path):
    flags = ["--states", "4", "--rollouts", "3", "--seeds", "2", "--diagnostics", "--out", str(tmp_path / "x")]
    assert main(["run", *flags]) == 0
    first, second, _ = read_metrics(tmp_path / "x")
    assert first["entropy_change/measured"] is None
    assert second["entropy_change/measured"] == pytest.approx(second["entropy"] - first["entropy"])
    assert 0 <= second["clip/high"] <= second["clip_fraction"] <= 1
