"""Settings side by side, and runs taken out of a trajectory."""

import numpy as np

from toybandit import Config, simulate
from toybandit.settings import simulate_settings, take

SMALL = {"states": 4, "rollouts": 9}


def test_each_setting_is_the_runs_that_it_has_alone():
    config = Config(controller="entropic", controller_args={"tau": 0.0}, **SMALL)
    runs = simulate_settings(config, {"kp": (1, 4), "ki": (0.5, 0.1)}, (3, 7))
    for run, kp, ki in zip(runs, (1, 4), (0.5, 0.1), strict=True):
        args = {"tau": 0.0, "kp": kp, "ki": ki}
        alone = simulate(Config(controller="entropic", controller_args=args, **SMALL), (3, 7))
        np.testing.assert_allclose(run.entropy, alone.entropy, rtol=0, atol=1e-12)
        assert run.seeds == (3, 7)


def test_take_cuts_every_array():
    part = take(simulate(Config(controller="entropic", target=0.6, **SMALL), range(3)), slice(1, 2))
    assert part.seeds == (1,)
    assert {len(values) for values in (part.entropy, part.reward, part.probabilities, part.success)} == {1}
    assert {len(values) for values in part.metrics.values()} == {1}
