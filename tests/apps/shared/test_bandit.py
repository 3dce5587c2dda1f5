"""Controls of a bandit: every hyperparameter has one, and their values make a configuration."""

import numpy as np
import pytest

import entrostat
from entrostat_app.shared import bandit
from toybandit import ENVIRONMENTS, simulate


@pytest.mark.parametrize("name", entrostat.list_controllers())
def test_every_hyperparameter_has_a_control(name):
    known = entrostat.describe(name)["hyperparameters"]
    part = bandit.hyperparameters(name)
    assert {control.label for control in part.controls} == set(known) - {"target"}
    for control in part.controls:
        assert control.key == f"{name}.{control.label}"
        assert control.default == known[control.label]["default"]
        allowed = known[control.label]["allowed"]
        assert control.options == (allowed if isinstance(allowed, tuple) else ())
        assert control.low == {"[0": 0.0, "[1": 1.0, "[3": 3.0}.get(str(allowed)[:2])
        assert control.help
    assert part.rule


def test_controls_name_fields_of_the_configuration():
    given = {control.key: control.default for control in bandit.ENVIRONMENT}
    config = bandit.config(given, {"controller": "steer", "controller_args": {"lambda_min": 0.5}})
    assert config.environment().passes == given["passes"]
    assert set(bandit.ENVIRONMENT[0].options) == set(ENVIRONMENTS)
    assert all(control.help for control in bandit.ENVIRONMENT)


def test_an_environment_without_groups():
    config = bandit.config_at({"env": "exact", "advantage": "qae"})
    assert config.group is None
    assert config.advantage is None


@pytest.mark.parametrize("name", next(c for c in bandit.ENVIRONMENT if c.key == "advantage").options)
def test_every_advantage_that_one_can_choose_can_be_simulated(name):
    run = simulate(bandit.config_at({"advantage": name, "states": 2, "rollouts": 3}), [0])
    assert run.config.advantage == name
    assert np.isfinite(run.entropy).all()


def test_the_controls_of_features_start_at_its_own_numbers():
    assert bandit.config_at({"env": "features"}).environment() == ENVIRONMENTS["features"]
    moved = bandit.config_at({"env": "features", "f.features": "32", "f.pool": "128", "f.lr": 0.5, "lr": 2.0})
    assert (moved.features, moved.pool, moved.lr, moved.controller_args) == (32, 128, 0.5, {})
    assert all(control.help for control in bandit.FEATURES)


def test_few_features_help_other_prompts_and_hundreds_disturb_them():
    gain = {}
    for size in ("4", "256"):
        once = simulate(bandit.config_at({"env": "features", "f.features": size}), range(4)).held_out.pass_at(1)
        gain[size] = (once[:, -1] - once[:, 0]).mean()
    assert gain["4"] > 0.05
    assert gain["256"] < -0.02


@pytest.mark.parametrize("pool", ["128", "256", "2048"])
def test_a_table_shares_nothing(pool):
    environment = bandit.config_at({"env": "features", "f.features": "table", "f.pool": pool}).environment()
    assert environment.prompts == min(int(pool), bandit.TABULAR)
    assert environment.features == (environment.prompts + environment.held_out) * environment.nodes
    assert environment.coupling == 0


def test_every_size_of_features_is_possible():
    sizes, pools = (control.options for control in bandit.FEATURES[:2])
    for size in sizes:
        for pool in pools:
            config = bandit.config_at({"env": "features", "f.features": size, "f.pool": pool})
            assert config.environment().prompts in (int(pool), bandit.TABULAR)


def test_a_state_as_a_configuration():
    values = {"controller": ("clip_higher", "entropic"), "target": 0.5, "lr": 2.0, "entropic.tau": 0.0}
    config = bandit.config_at(values)
    assert (config.controller, config.target, config.lr) == ("clip_higher+entropic", 0.5, 2.0)
    assert config.controller_args == {"entropic.tau": 0.0}
    assert bandit.config_at({"controller": ("entropic",), "entropic.tau": 0.0}).controller_args == {"tau": 0.0}
    assert bandit.config_at({}).controller == "grpo"


def test_a_target_is_for_those_that_have_one():
    assert bandit.config_at({"controller": ("clip_higher", "entropic")}).target == bandit.TARGET.default
    for controller in (("clip_higher",), ()):
        assert bandit.config_at({"controller": controller, "target": 0.5}).target is None


def test_what_cannot_be_is_said_in_a_line():
    with pytest.raises(ValueError, match="states must be at least 1") as error:
        bandit.config_at({"states": 0})
    assert "\n" not in str(error.value)
