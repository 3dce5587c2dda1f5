"""The law in one run: which points, and when not to trust it."""

import math
import re

import numpy as np
import pytest

from entrostat.runlog import RunLog
from llmtrain.compare import Run
from llmtrain.law_fit import fit_run, points, target_of

FALLING = 0.1 + 1.4 * np.exp(-np.arange(60) / 20)
A, B = 0.2, 0.9


def write(path, entropy, reward, **config) -> Run:
    log = RunLog(path, config, seed=0)
    for step, (h, r) in enumerate(zip(entropy, reward, strict=True)):
        log.log(step, {"entropy": h, "reward": r})
    log.close()
    return Run.read(path)


def noise(spread: float) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=spread, size=len(FALLING))


def test_an_evaluation_takes_the_entropy_of_the_nearest_step(tmp_path):
    log = RunLog(tmp_path, {}, seed=0)
    log.log(0, {"entropy": 1.0, "reward": 0.1, "eval/pass@1": 0.2})
    log.log(2, {"entropy": 0.8, "reward": 0.2})
    log.log(3, {"eval/pass@1": 0.3})
    log.log(4, {"entropy": 0.6, "reward": 0.3})
    log.log(9, {"eval/pass@1": 0.4})
    log.close()
    found = points(Run.read(tmp_path), "eval/pass@1")
    assert found.step.tolist() == [0, 3, 9]
    assert found.entropy.tolist() == [1.0, 0.8, 0.6]  # 3 is as near to 2 as to 4: the earlier
    assert found.outcome.tolist() == [0.2, 0.3, 0.4]


def test_an_unknown_metric_names_those_there_are(tmp_path):
    run = write(tmp_path / "x", FALLING, FALLING)
    with pytest.raises(ValueError, match=r"^x has logged no 'eval/pass@9'; its metrics: entropy, reward$"):
        points(run, "eval/pass@9")
    with pytest.raises(ValueError, match="y has logged no 'entropy'; its metrics: none"):
        points(write(tmp_path / "y", [math.nan], [math.nan]))


def test_a_law_that_holds_warns_of_nothing(tmp_path):
    found = fit_run(write(tmp_path / "x", FALLING, B - A * np.exp(FALLING) + noise(1e-3)), share=0.5)
    assert found.warnings == ()
    assert found.law.ceiling == pytest.approx(B - A, abs=2e-3)
    assert found.prediction is not None
    assert found.prediction.law.n == 30
    assert found.prediction.rmse < 3e-3


@pytest.mark.parametrize(
    ("reward", "says"),
    [
        (B - A * np.exp(FALLING) + noise(0.5), "The fit is poor: the law explains"),
        (noise(0.1), "The interval of a holds 0|a is not positive"),
        (B + A * np.exp(FALLING) + noise(1e-3), r"a is not positive \(-0\.2\): reward did not rise as entropy fell"),
        (1 - (FALLING - 0.8) ** 2 + noise(1e-3), r"A parabola in H fits clearly better \(AIC \d+ lower"),
    ],
)
def test_a_law_that_does_not_hold_is_said_not_to(tmp_path, reward, says):
    found = fit_run(write(tmp_path / "x", FALLING, reward))
    assert any(re.search(says, text) for text in found.warnings), found.warnings


def test_entropy_that_hardly_moves_or_stays_far_from_zero(tmp_path):
    still = 1.0 + 0.01 * np.sin(np.arange(40))
    assert any("too little to tell" in text for text in fit_run(write(tmp_path / "x", still, -still)).warnings)
    far = 1.5 + 0.1 * np.sin(np.arange(40))
    assert any("long extrapolation" in text for text in fit_run(write(tmp_path / "y", far, -far)).warnings)


@pytest.mark.parametrize(
    "config",
    [{"target_entropy": 0.4}, {"target": 0.4}, {"controller_args": {"kp": 2, "entropic.target": 0.4}}],
)
def test_a_run_whose_entropy_is_held(tmp_path, config):
    assert target_of(config) == 0.4
    found = fit_run(write(tmp_path / "x", FALLING, -FALLING, **config))
    assert any("target 0.4 nats" in text for text in found.warnings)


def test_no_target():
    assert target_of({"target_entropy": None, "controller_args": {"kp": 1}}) is None


def test_few_points(tmp_path):
    found = fit_run(write(tmp_path / "x", FALLING[:10], -FALLING[:10]))
    assert any("only 10 points" in text for text in found.warnings)
    assert any("share 0.15 of 10 points is 1" in text for text in found.warnings)
    assert found.prediction is None
    with pytest.raises(ValueError, match=r"^y: 3 points are too few for a law"):
        fit_run(write(tmp_path / "y", [1, 2, 3], [1, 2, 3]))
    with pytest.raises(ValueError, match="share must be between 0 and 1, not 2"):
        fit_run(write(tmp_path / "z", FALLING, FALLING), share=2)
