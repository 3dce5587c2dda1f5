"""Law of one run: its points, and its warnings."""

import math

import numpy as np
import pytest

from entrostat.logs.runlog import RunLog
from llmtrain.studies.comparison import Run
from llmtrain.studies.law_fit import fit_run, points

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


def test_a_law_that_holds_warns_of_nothing(tmp_path):
    found = fit_run(write(tmp_path / "x", FALLING, B - A * np.exp(FALLING) + noise(1e-3)), share=0.5)
    assert found.warnings == ()
    assert found.law.ceiling == pytest.approx(B - A, abs=2e-3)
    assert found.prediction is not None
    assert found.prediction.law.n == 30
    assert found.prediction.rmse < 3e-3


def test_what_speaks_against_a_run_is_said_with_its_metric_and_its_target(tmp_path):
    found = fit_run(write(tmp_path / "x", FALLING, -FALLING + noise(0.5), target=0.4))
    said = " ".join(found.warnings)
    assert "of the variance of reward" in said
    assert "target 0.4 nats" in said


def test_the_reward_of_kept_groups_is_not_to_be_fitted(tmp_path):
    log = RunLog(tmp_path, {}, seed=0)
    for step, h in enumerate(FALLING):
        log.log(step, {"entropy": h, "reward": B - A * np.exp(h), "solved": 1 - h / 2, "train/num_gen_batches": 3})
    log.close()
    assert "Do not use this fit: the reward is of the groups" in fit_run(Run.read(tmp_path), share=0.5).warnings[0]
    assert not any("groups" in text for text in fit_run(Run.read(tmp_path), "solved", share=0.5).warnings)


def test_few_points(tmp_path):
    found = fit_run(write(tmp_path / "x", FALLING[:10], -FALLING[:10]))
    assert any("only 10 points" in text for text in found.warnings)
    assert any("share 0.15 of 10 points is 1" in text for text in found.warnings)
    assert found.prediction is None


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda path: points(write(path, FALLING, FALLING), "eval/pass@9"), "'eval/pass@9'; .*: entropy, reward$"),
        (lambda path: points(write(path, [math.nan], [math.nan])), "'entropy'; .*: none$"),
        (lambda path: fit_run(write(path, [1, 2, 3], [1, 2, 3])), "3 points"),
        (lambda path: fit_run(write(path, FALLING, FALLING), share=2), "share .*0 and 1, not 2"),
    ],
)
def test_a_refusal_names_what_is_wrong(tmp_path, call, names):
    with pytest.raises(ValueError, match=names):
        call(tmp_path / "x")
