"""The controls of one bandit: environment, controller and its hyperparameters, and the Config that they make."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

import entrostat
from entrostat.allowed import Allowed
from entrostat.by_name import has_target
from toybandit import ENVIRONMENTS, Config
from toybandit.config import OF_GROUPS

from .controls import Control

ENVIRONMENT = (
    Control(
        key="env",
        label="Environment",
        default="noisy",
        options=tuple(name for name in ENVIRONMENTS),
        help="noisy: right arms pay with .6, others with .3. on: strictly on-policy. pure: no signal at all. det: 0/1 "
        "rewards. coupled: states share features. exact: one state, expected gradient. episodes: four tokens each.",
    ),
    Control(
        key="lr",
        label="Learning rate",
        symbol="η",
        default=1.0,
        low=0.05,
        high=4.0,
        step=0.05,
        help="Step on the mean gradient of a state.",
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
        help="Responses to a prompt in one rollout; advantages are made inside a group. Exact has none.",
    ),
    Control(
        key="advantage",
        label="Advantage",
        symbol="A",
        default="grpo",
        options=("grpo", "dr_grpo", "rloo", "reinforce_pp", "qae", "w_reinforce", "psr", "nsr"),
        help="What a response is worth beside its group. qae: what is above its 0.4-quantile. psr: successes alone. "
        "nsr: failures alone. Exact has its own.",
    ),
    Control(
        key="passes",
        label="Updates a rollout",
        symbol="M",
        default=4,
        low=1,
        high=16,
        step=1,
        help="Optimizer updates on the samples of one rollout. 1 is strictly on-policy; more makes samples off-policy.",
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
        help="Prompts of a rollout. More of them average the noise of a run away.",
    ),
    Control(
        key="rollouts",
        label="Rollouts",
        symbol="T",
        default=60,
        low=20,
        high=400,
        step=20,
        help="Length of the run.",
    ),
)
SEED = Control(
    key="seed",
    label="Seed",
    default=0,
    low=0,
    step=1,
    help="Draws the bandit, the samples and the rewards. The same seed gives the same run under every controller but "
    "for what the controller changes.",
)
CONTROLLER = Control(
    key="controller",
    label="Controller",
    default=(),
    options=tuple(entrostat.list_controllers()),
    empty="none: plain GRPO",
    help="None is plain GRPO with clipping .2 / .2. Several make a chain, in this order.",
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
    help="Entropy that the controller is to hold.",
)


@dataclass(frozen=True)
class Hyperparameters:
    """The controls of one part of a chain."""

    name: str
    rule: str
    source: str
    controls: tuple[Control, ...]


def hyperparameters(name: str) -> Hyperparameters:
    """Controls for everything that `entrostat.describe` knows of a controller, but its target."""
    known = entrostat.describe(name)
    controls = tuple(
        Control(key=f"{name}.{key}", label=key, default=entry["default"], help=entry["doc"], **within(entry["allowed"]))
        for key, entry in known["hyperparameters"].items()
        if key != "target"
    )
    return Hyperparameters(name, known["rule"], known["source"], controls)


def within(allowed: Allowed) -> dict[str, Any]:
    """What a control lets one choose of what a hyperparameter may be: names, or numbers from the least on."""
    if isinstance(allowed, tuple):
        return {"options": allowed}
    least = re.match(r"\[([\d.]+),", allowed or "")
    return {"low": float(least[1])} if least else {}


def draw_environment(controls: Sequence[Control] = ENVIRONMENT) -> dict[str, Any]:
    """Show the controls of the environment; what they say, as arguments of Config."""
    return {control.key: control.draw() for control in controls}


def draw_controller() -> dict[str, Any]:
    """Show the controls of one chain; what they say, as arguments of Config."""
    names = CONTROLLER.draw()
    given: dict[str, Any] = {"controller": "+".join(names) or "grpo"}
    if has_target(given["controller"]):
        given["target"] = TARGET.draw()
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
    """The configuration that the controls make. Raises ValueError, one line, when it cannot be."""
    sampled = not ENVIRONMENTS[environment["env"]].enumerated
    of_groups = {key: environment[key] if sampled else None for key in OF_GROUPS}
    return Config(**{**environment, **of_groups}, **controller)


def config_at(values: Mapping[str, Any]) -> Config:
    """The configuration that the controls make where they hold `values`, and their defaults else."""
    environment = {control.key: values.get(control.key, control.default) for control in ENVIRONMENT}
    names = values.get("controller", CONTROLLER.default)
    controller: dict[str, Any] = {"controller": "+".join(names) or "grpo"}
    if has_target(controller["controller"]):
        controller["target"] = values.get("target", TARGET.default)
    settings = {key: value for key, value in values.items() if "." in key}
    plain = {key if len(names) > 1 else key.partition(".")[2]: value for key, value in settings.items()}
    return config(environment, {**controller, "controller_args": plain})
