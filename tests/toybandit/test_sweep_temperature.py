"""Results of runs at a temperature: all at it, and those of the policy itself beside them."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.leaderboard.standings import of_policy
from toybandit.sweep.measure import results

SIZE = {"env": "noisy", "states": 8, "rollouts": 12}


@pytest.mark.parametrize("temperature", [0.7, 1.6, "linear(2, 0.7, 11)"])
def test_all_results_are_at_the_temperature_of_the_samples(temperature):
    run = simulate(Config(temperature=temperature, **SIZE), range(3))
    found = results(run, np.full(3, np.nan))
    heat = run.metrics["temperature"][:, -1, None, None]
    p = np.exp(run.logits / heat)
    p /= p.sum(-1, keepdims=True)
    assert np.allclose(found["entropy_final"], -(p * np.log(p)).sum(-1).mean(-1))
    assert np.allclose(found["reward_final"], (p * run.success).sum(-1).mean(-1))
    own = -(run.probabilities * np.log(run.probabilities)).sum(-1).mean(-1)
    assert np.allclose(found["entropy_final_at_1"], own)
    assert np.allclose(found["reward_final_at_1"], (run.probabilities * run.success).sum(-1).mean(-1))
    assert of_policy({"gap": 0.5, "gap_at_1": 0.0}, "gap") == 0.0
    assert of_policy({"gap": 0.5, "gap_at_1": None}, "gap") == 0.5


def test_runs_without_a_temperature_have_no_more_results_than_before():
    found = results(simulate(Config(**SIZE), range(2)), np.full(2, np.nan))
    assert not any("at_1" in name for name in found)


@pytest.mark.parametrize("controller", ["temperature_loop", "clip_higher+temperature_loop"])
def test_a_loop_and_a_temperature_are_refused(controller):
    with pytest.raises(ValueError, match="sets the sampling temperature: leave temperature out"):
        simulate(Config(controller=controller, temperature=1.3, **SIZE), [0])
