"""Controls of one bandit (environment, controller, hyperparameters) and the Config that they make."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

import entrostat
from entrostat.by_name import has_target
from entrostat.settings.allowed import Allowed
from toybandit import ENVIRONMENTS, Config
from toybandit.config import OF_GROUPS

from .. import launch
from .controls import Control
from .plain_text import plain

ENVIRONMENT = (
    Control(
        key="env",
        label="Environment",
        default="noisy",
        options=tuple(name for name in ENVIRONMENTS),
        help="noisy: right arms are rewarded with probability .6, others .3. on: strictly on-policy. pure: no learning "
        "signal. det: right arms are always rewarded, others never. coupled: an update of one state moves the others. "
        "exact: one state, expected gradient. episodes: four tokens per response. trap: the likeliest arm pays half of "
        "the time, one that is hardly drawn always. features: prompts share weights and hardly return, and the policy "
        "is evaluated on others, which are never trained.",
    ),
    Control(
        key="lr",
        label="Learning rate",
        symbol="η",
        default=1.0,
        low=0.05,
        high=4.0,
        step=0.05,
        help="Step size on the mean gradient of a state.",
    ),
    Control(
        key="group",
        label="Group size",
        symbol="G",
        unit="responses",
        default=16,
        low=2,
        high=64,
        step=2,
        help="Responses per prompt in one rollout; advantages are computed within a group. exact has no groups.",
    ),
    Control(
        key="advantage",
        label="Advantage",
        symbol="A",
        default="grpo",
        options=("grpo", "dr_grpo", "rloo", "reinforce_pp", "qae", "max_rl", "pass_at_k", "w_reinforce", "psr", "nsr"),
        help="Advantage estimator: the value of a response relative to its group. qae: relative to the group's "
        "0.4-quantile. max_rl: in units of the group's mean. pass_at_k: what it adds to the best of 4 responses. "
        "psr: successes only. nsr: failures only. exact uses its own.",
    ),
    Control(
        key="passes",
        label="Updates per rollout",
        symbol="M",
        default=4,
        low=1,
        high=16,
        step=1,
        help="Optimizer updates on the samples of one rollout. 1 is strictly on-policy; with more, samples become "
        "off-policy.",
    ),
    Control(
        key="states",
        label="States",
        symbol="S",
        unit="prompts",
        default=16,
        low=1,
        high=64,
        step=1,
        help="Prompts per rollout. More prompts average out the noise of a run.",
    ),
    Control(
        key="rollouts",
        label="Rollouts",
        symbol="T",
        default=60,
        low=20,
        high=400,
        step=20,
        help="Number of rollouts in the run.",
    ),
)
SHARED = "features"
"""Environment with controls of its own: its Adam has another scale of learning rates."""
PREFIX = "f."
"""Beginning of their keys; the rest names a field of Config."""
TABLE, TABULAR = "table", 256
"""Option of a table, and the most training prompts that it can have."""
OWN: dict[str, dict[str, Any]] = {
    "lr": {"low": 0.01, "high": 1.0, "step": 0.01, "help": "Step size of Adam."},
    "passes": {
        "label": "Passes per rollout",
        "help": "Passes over the samples of one rollout, with an update after each half of its prompts.",
    },
}
"""Differences of a control from that of the other environments."""
FEATURES = (
    Control(
        key=f"{PREFIX}features",
        label="Features",
        symbol="d",
        default=str(ENVIRONMENTS[SHARED].features),
        options=("1", "2", "4", "8", "16", "32", "64", "128", "256", TABLE),
        ordered=True,
        help="Features that the logits of all prompts are linear in. With few, what is learnt for one prompt helps the "
        "others; with hundreds, it mostly disturbs them. table: prompts share nothing; it has at most "
        f"{TABULAR} training prompts.",
    ),
    Control(
        key=f"{PREFIX}pool",
        label="Training prompts",
        default=str(ENVIRONMENTS[SHARED].pool),
        options=("128", "256", "512", "1024", "2048"),
        ordered=True,
        help=f"They take turns, {ENVIRONMENTS[SHARED].states} per rollout. {ENVIRONMENTS[SHARED].held_out} others are "
        "held out: never trained, only evaluated.",
    ),
    *(
        replace(c, key=PREFIX + c.key, default=getattr(ENVIRONMENTS[SHARED], c.key), **OWN.get(c.key, {}))
        for c in ENVIRONMENT
        if c.key not in ("env", "states")
    ),
)
"""Controls of the environment `features`, besides the environment itself."""
SEED = Control(
    key="seed",
    label="Seed",
    default=0,
    low=0,
    step=1,
    help="Random seed of the bandit, the samples and the rewards. Runs with the same seed differ only by the effect of "
    "their controllers.",
)
CONTROLLER = Control(
    key="controller",
    label="Controller",
    default=(),
    options=tuple(entrostat.list_controllers()),
    empty="none: plain GRPO",
    help="No choice means plain GRPO with clipping .2 / .2. Several controllers form a chain, in this order.",
)
TARGET = Control(
    key="target",
    label="Target entropy",
    symbol="H*",
    unit="nats",
    default=0.6,
    low=0.0,
    high=2.5,
    step=0.05,
    help="Entropy that the controller should hold.",
)
SCHEDULE = Control(
    key="schedule",
    label="Schedule of the target",
    symbol="H*(t)",
    default=None,
    help="Target that moves: linear(1.4, 0.5, 60) or cosine(1.4, 0.5, 60) from the first rollout to number 60, "
    "piecewise(0: 1.4, 30: 0.7), or 0.4x for 0.4 times the entropy of the first rollout. Empty: the target above.",
)


@dataclass(frozen=True)
class Hyperparameters:
    """Controls of one part of a chain."""

    name: str
    rule: str
    source: str
    controls: tuple[Control, ...]


def hyperparameters(name: str) -> Hyperparameters:
    """Return controls for all hyperparameters that `entrostat.describe` lists for a controller, except its target."""
    known = entrostat.describe(name)
    controls = tuple(
        Control(key=f"{name}.{key}", label=key, default=entry["default"], help=entry["doc"], **within(entry["allowed"]))
        for key, entry in known["hyperparameters"].items()
        if key != "target"
    )
    return Hyperparameters(name, known["rule"], known["source"], controls)


def within(allowed: Allowed) -> dict[str, Any]:
    """Return the options, or the lower limit, of the control for a hyperparameter's allowed values."""
    if isinstance(allowed, tuple):
        return {"options": allowed}
    least = re.match(r"\[([\d.]+),", allowed or "")
    return {"low": float(least[1])} if least else {}


def files() -> tuple[str, ...]:
    """Return the YAML files of environments that `entrostat-app --environments` names."""
    return tuple(filter(None, os.environ.get(launch.ENVIRONMENTS, "").split(os.pathsep)))


def draw_environment(controls: Sequence[Control] = ENVIRONMENT) -> dict[str, Any]:
    """Draw the controls of the environment; return their values as arguments of Config.

    controls: that of the environment first. An environment of a file has its own numbers, so that it has no other.
    """
    choice, *others = controls
    env = replace(choice, options=(*choice.options, *files())).draw()
    if env in files():
        st.caption(plain(f"All its numbers are those in {env}."))
        return {"env": env}
    if env == SHARED:
        without = {control.key for control in ENVIRONMENT} - {control.key for control in controls}
        others = [control for control in FEATURES if control.key.removeprefix(PREFIX) not in without]
    values = {control.key: control.draw() for control in others}
    if values.get(f"{PREFIX}features") == TABLE and int(values[f"{PREFIX}pool"]) > TABULAR:
        st.caption(f"A table has at most {TABULAR} training prompts, so these are {TABULAR}.")
    return arguments({"env": env, **values})


def arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of controls of an environment, by key, as arguments of Config."""
    if values["env"] != SHARED:
        return dict(values)
    given = {key.removeprefix(PREFIX): value for key, value in values.items()}
    pool, base = int(given["pool"]), ENVIRONMENTS[SHARED]
    if given["features"] != TABLE:
        return {**given, "pool": pool, "features": int(given["features"])}
    pool = min(pool, TABULAR)
    return {**given, "pool": pool, "features": (pool + base.held_out) * base.nodes, "coupling": 0.0}


def draw_controller() -> dict[str, Any]:
    """Draw the controls of one chain; return their values as arguments of Config."""
    names = CONTROLLER.draw()
    given: dict[str, Any] = {"controller": "+".join(names) or "grpo"}
    if has_target(given["controller"]):
        constant, moving = TARGET.draw(), SCHEDULE.draw()
        given["target"] = constant if moving is None else moving
    settings: dict[str, Any] = {}
    for part in map(hyperparameters, names):
        if part.controls:
            with st.expander(f"{part.name}: {part.rule}"):
                st.caption(part.source)
                for control in part.controls:
                    value = control.draw()
                    if value != control.default:
                        settings[control.key if len(names) > 1 else control.label] = value
    return {**given, "controller_args": settings}


def config(environment: Mapping[str, Any], controller: Mapping[str, Any]) -> Config:
    """Return the configuration for these values of controls. Raises ValueError in one line if it is invalid."""
    if environment["env"] not in ENVIRONMENTS:
        return Config(env=environment["env"], **controller)
    sampled = not ENVIRONMENTS[environment["env"]].enumerated
    of_groups = {key: environment[key] if sampled else None for key in OF_GROUPS}
    return Config(**{**environment, **of_groups}, **controller)


def config_at(values: Mapping[str, Any]) -> Config:
    """Return the configuration for `values` of controls; controls that are not in it have their defaults."""
    controls = (ENVIRONMENT[0], *FEATURES) if values.get("env") == SHARED else ENVIRONMENT
    environment = arguments({control.key: values.get(control.key, control.default) for control in controls})
    names = values.get("controller", CONTROLLER.default)
    controller: dict[str, Any] = {"controller": "+".join(names) or "grpo"}
    if has_target(controller["controller"]):
        controller["target"] = values.get("schedule") or values.get("target", TARGET.default)
    settings = {key: value for key, value in values.items() if "." in key and not key.startswith(PREFIX)}
    named = {key if len(names) > 1 else key.partition(".")[2]: value for key, value in settings.items()}
    return config(environment, {**controller, "controller_args": named})
