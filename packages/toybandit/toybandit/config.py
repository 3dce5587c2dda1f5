"""Configuration of a simulation. Does not import torch, so that tools that only read configurations stay fast."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from entrostat.settings.choosing import unknown
from entrostat.settings.field_types import fit_fields
from entrostat.settings.schedules import check_target, check_temperature, plain, plain_target

from .environment_file import read_environment
from .environments import ENVIRONMENTS, NOISY, Environment, Table, UpdateRule, as_tables

CUSTOM = "custom"
"""Name of an environment with all numbers given explicitly."""
OF_GROUPS = ("group", "advantage")
"""Fields that an environment without samples lacks."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Configuration of one simulation. A field of the environment that is None keeps the environment's own value.

    Raises ValueError in one line with the field and its allowed values.
    """

    env: str = "noisy"
    """Name of `toybandit.environments.ENVIRONMENTS`, or a YAML file (`toybandit.environment_file`)."""
    controller: str = "grpo"
    """Names of `entrostat` controllers joined by +, e.g. clip_higher+steer. grpo is plain PPO clipping 0.2 / 0.2."""
    preset: Literal["paper", "released"] = "paper"
    """Values of the controller's hyperparameters: paper or released."""
    target: float | None | str = None  # noqa: RUF036 (on command lines None is read before text)
    """Target entropy of the controller, nats, or a schedule of it (`entrostat.settings.schedules`), such as
    "linear(0.65, 0.15, 400)" or "0.4x"; None keeps the controller's default."""
    controller_args: Mapping[str, Any] = field(default_factory=dict)
    """Hyperparameters of the controller: numbers, names and schedules. A sequence has one value for each run."""
    temperature: float | None | str = None  # noqa: RUF036
    """Sampling temperature T, or a schedule of it; rollouts and updates are of the softmax of logits/T. None: 1, or the
    controller's. The recorded `entropy` and `reward` are at T, `entropy/at_1` and `reward/at_1` at 1."""
    dtype: Literal["float64", "float32"] = "float64"
    """float64 or float32."""
    device: Literal["cpu", "cuda"] = "cpu"
    """cpu or cuda."""
    gradient: Literal["sampled", "exact"] | None = None
    """sampled: from G responses per prompt. exact: expected, over every (arm, reward) pair."""

    states: int | None = None
    """S, prompts of a rollout."""
    arms: int | None = None
    """K, actions of a state."""
    group: int | None = None
    """G, responses to a prompt in one rollout."""
    length: int | None = None
    """L, tokens of a response."""
    branching: int | None = None
    """B, states that can follow a token."""
    rollouts: int | None = None
    """T, rollouts of a run."""
    passes: int | None = None
    """M, updates on the samples of one rollout; 1 is strictly on-policy."""
    lr: float | tuple[float, ...] | None = None
    """Step on the mean gradient of a state; a sequence has one for each run."""
    logit_std: float | None = None
    """Standard deviation of the initial logits."""
    right_logit: float | None = None
    """Offset of the initial logits of the right arms."""
    right_arms: int | None = None
    """Right arms of a state."""
    right_tilt: float | None = None
    """Dependence of the right arms on the initial policy: 0 none, 1 drawn in proportion to p."""
    reward_right: float | None = None
    """Probability that a right arm is rewarded."""
    reward_wrong: float | None = None
    """Probability that another arm is rewarded."""
    label_noise: float | None = None
    """Probability that the verifier flips the 0/1 reward of a response. Training sees the flipped reward; the recorded
    reward is without this noise."""
    coupling: float | None = None
    """Share of a state's update that every other state gets."""
    advantage: str | None = None
    """grpo, dr_grpo, rloo, reinforce_pp, qae, max_rl, pass_at_k, opo, gdpo, rae, w_reinforce, psr or nsr; for responses
    of one token also remax and optimal_token. Hyperparameters follow the name: "qae k=0.6"."""
    update: UpdateRule | None = None
    """sgd (policy gradient), npg (natural policy gradient) or adam."""
    momentum: float | None = None
    """Momentum of sgd."""
    beta_1: float | None = None
    """Decay of adam's mean of gradients."""
    beta_2: float | None = None
    """Decay of adam's mean of their squares."""
    max_grad_norm: float | None = None
    """Largest norm of the gradient of the loss; a larger one is scaled down."""
    mini_batches: int | None = None
    """Mini-batches of prompts that a pass goes through, with an update after each."""
    joint: bool | None = None
    """True: a response succeeds only if all of its arms do; false: with the mean of their probabilities."""
    features: int | None = None
    """d, features that the logits are linear in: fewer share more. As many as states are a table."""
    pool: int | None = None
    """Training prompts, which take turns, S at a time."""
    held_out: int | None = None
    """Prompts that training never sees, on which the policy is evaluated."""
    predictable: float | None = None
    """Share of the variance of the right arms' score that the features explain; the rest is each prompt's own."""
    skill: float | None = None
    """Weight of the right arms' score in the initial logits: what a supervised start has learnt."""
    success: Table | None = None
    """Probability that an arm is rewarded: a row for each state, or one for all."""
    success_beta: tuple[float, float] | None = None
    """Parameters of a Beta distribution to draw these probabilities from."""
    logits: Table | None = None
    """Mean of the initial logits: a row for each state, or one for all."""
    kernel: Table | None = None
    """State-similarity kernel, a row and a column for each state."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", plain_target(self.target))
        object.__setattr__(self, "temperature", plain_target(self.temperature))
        object.__setattr__(self, "controller_args", plain(self.controller_args))
        for name, value in fit_fields(Config, as_tables(vars(self))).items():
            if value != getattr(self, name):  # integers stay integers, so keys of earlier sweeps stay valid
                object.__setattr__(self, name, value)
        check_target(self.target)
        check_temperature(self.temperature)
        self.environment()
        if self.gradient == "exact" or (self.gradient is None and self._base().enumerated):
            for name in OF_GROUPS:
                if getattr(self, name) is not None:
                    raise ValueError(f"env {self.env!r} enumerates every outcome and has no {name}: leave it None")

    def environment(self) -> Environment:
        """Return the environment with this configuration's numbers."""
        given = {f.name: getattr(self, f.name) for f in fields(Environment) if getattr(self, f.name) is not None}
        base = self._base()
        sampling: dict[str, Any] = {}
        if self.gradient == "exact":
            sampling = {"group": None, "advantage": None}
        elif self.gradient == "sampled" and base.enumerated:
            sampling = {"group": NOISY.group, "advantage": NOISY.advantage}
        return replace(base, **{**sampling, **given})

    def _base(self) -> Environment:
        if self.env in ENVIRONMENTS:
            return ENVIRONMENTS[self.env]
        if self.env == CUSTOM:
            return NOISY
        if self.env.endswith((".yaml", ".yml")):
            return read_environment(self.env)
        raise ValueError(
            unknown("env", self.env, ENVIRONMENTS, f"choose from {', '.join(ENVIRONMENTS)}, or name a .yaml file")
        )

    def resolved(self) -> dict[str, Any]:
        """Return every field with the value that the run uses, as plain values; Config(**resolved) is the same run."""
        environment = self.environment()
        return {
            **asdict(self),
            **{name: _plain(value) for name, value in asdict(environment).items()},
            "env": self.env if self.env in ENVIRONMENTS else CUSTOM,
            "gradient": "exact" if environment.enumerated else "sampled",
            "controller_args": dict(self.controller_args),
        }


def _plain(value: Any) -> Any:
    """Return tuples as lists, so that YAML has no tags."""
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
