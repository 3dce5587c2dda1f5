"""Settings side by side, and runs taken out of a trajectory."""

import numpy as np

from toybandit import Config, simulate
from toybandit.settings import simulate_each, simulate_settings, take

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


ENTROPIC = {"controller": "entropic", "target": 0.6, **SMALL}
APART = [
    Config(**ENTROPIC, lr=0.5, controller_args={"kp": 2.0}),
    Config(**ENTROPIC, lr=0.5, controller_args={"kp": 1.0}),
    Config(**ENTROPIC, lr=1, controller_args={"kp": 1.0}),
    Config(controller="entropic", target=0.3, **SMALL, lr=0.5, controller_args={"kp": 2.0, "tau": 0.0}),
    Config(**ENTROPIC, lr=0.5, controller_args={"kp": 2.0}),  # the first once more
    Config(**SMALL),
    Config(**SMALL, env="trap", lr=0.25),
    Config(**SMALL, env="trap", lr=0.5),
    Config(controller="thermostat", target="0.4x", **SMALL),
    Config(controller="clip_higher+entropic", target=0.5, **SMALL, controller_args={"eps_high": 0.3}),
    Config(controller="clip_higher+entropic", target=0.6, **SMALL, controller_args={"eps_high": 0.5}),
]


def test_each_configuration_has_the_runs_that_it_has_alone():
    for found, config in zip(simulate_each(APART, (3, 7), keep_policies=True), APART, strict=True):
        alone = simulate(config, (3, 7), keep_policies=True)
        assert found.config == config
        assert found.seeds == (3, 7)
        for name in ("entropy", "reward", "policies"):
            np.testing.assert_allclose(getattr(found, name), getattr(alone, name), rtol=0, atol=1e-12)
        if isinstance(config.target, float):
            np.testing.assert_allclose(found.target, alone.target, rtol=0, atol=1e-12)


def test_those_that_differ_in_numbers_are_one_simulation(monkeypatch):
    calls = []

    def counted(config, seeds, **options):
        calls.append(len(seeds))
        return simulate(config, seeds, **options)

    monkeypatch.setattr("toybandit.settings.simulate", counted)
    simulate_each(APART, (3, 7))
    assert calls == [8, 2, 2, 4, 2, 4]


def test_held_out_prompts_are_cut_too():
    shared = {"features": 3, "held_out": 4, "states": 4, "rollouts": 4}
    configs = [Config(**shared, lr=lr) for lr in (0.1, 0.4)]
    for found, config in zip(simulate_each(configs, (0, 1, 2)), configs, strict=True):
        alone = simulate(config, (0, 1, 2)).held_out
        np.testing.assert_allclose(found.held_out.pass_at(4), alone.pass_at(4), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.held_out.entropy, alone.entropy, rtol=0, atol=1e-12)
