"""What to simulate. No torch here, so that tools which only read configurations stay fast."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any

from entrostat.allowed import check_fields
from entrostat.field_types import fit_fields

from .environment_file import read_environment
from .environments import ENVIRONMENTS, NOISY, Environment, Table, as_tables

CUSTOM = "custom"
"""Name of an environment whose numbers are all given."""
OF_GROUPS = ("group", "advantage")
"""What an environment without samples has not."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """One simulation. A number of the environment that is None keeps the environment's own value.

    Raises ValueError, one line, naming the field and what it may be.
    """

    env: str = "noisy"
    """exact, noisy, on, pure, det, coupled, episodes, or a YAML file of one's own (`toybandit.environment_file`)."""
    controller: str = "grpo"
    """Names of `entrostat` controllers joined by +, e.g. clip_higher+steer. grpo is plain PPO clipping 0.2 / 0.2."""
    preset: str = "paper"
    """Values of the controller's hyperparameters: paper or released."""
    target: float | None = None
    """Entropy (nats) that the controller is to hold; None leaves the controller's own default."""
    controller_args: Mapping[str, Any] = field(default_factory=dict)
    """Hyperparameters of the controller. A sequence has one value for each run."""
    dtype: Annotated[str, ("float64", "float32")] = "float64"
    """float64 or float32."""
    device: Annotated[str, ("cpu", "cuda")] = "cpu"
    """cpu or cuda."""
    gradient: Annotated[str | None, ("sampled", "exact")] = None
    """sampled: of G responses a prompt. exact: expected, over every (arm, reward) pair."""

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
    """Added to the initial logits of the right arms."""
    right_arms: int | None = None
    """Right arms of a state."""
    right_tilt: float | None = None
    """How far the right arms are those that the initial policy likes."""
    reward_right: float | None = None
    """Probability that a right arm is rewarded."""
    reward_wrong: float | None = None
    """Probability that another arm is rewarded."""
    coupling: float | None = None
    """How far the update of one state moves every other."""
    advantage: str | None = None
    """grpo, dr_grpo, rloo, reinforce_pp, qae, w_reinforce, psr or nsr: one that needs rewards only.
    Hyperparameters follow the name: "qae k=0.6"."""
    update: str | None = None
    """sgd (policy gradient), npg (natural policy gradient) or adam."""
    success: Table | None = None
    """Probability that an arm is rewarded: a row for each state, or one for all."""
    success_beta: tuple[float, float] | None = None
    """Parameters of the Beta distribution that these probabilities are drawn from."""
    logits: Table | None = None
    """Mean of the initial logits: a row for each state, or one for all."""
    kernel: Table | None = None
    """State-similarity kernel, a row and a column for each state."""

    def __post_init__(self) -> None:
        for name, value in fit_fields(Config, as_tables(vars(self))).items():
            if value != getattr(self, name):  # an integer stays one, as in the keys of sweeps that were run before
                object.__setattr__(self, name, value)
        check_fields(self)
        self.environment()
        if self.gradient == "exact" or (self.gradient is None and self._base().enumerated):
            for name in OF_GROUPS:
                if getattr(self, name) is not None:
                    raise ValueError(f"env {self.env!r} enumerates every outcome and has no {name}: leave it None")

    def environment(self) -> Environment:
        """The environment with this configuration's numbers in it."""
        given = {f.name: getattr(self, f.name) for f in fields(Environment) if getattr(self, f.name) is not None}
        base = self._base()
        if self.gradient == "exact":
            base = replace(base, group=None, advantage=None)
        elif self.gradient == "sampled" and base.enumerated:
            base = replace(base, group=NOISY.group, advantage=NOISY.advantage)
        return replace(base, **given)

    def _base(self) -> Environment:
        if self.env in ENVIRONMENTS:
            return ENVIRONMENTS[self.env]
        if self.env == CUSTOM:
            return NOISY
        if self.env.endswith((".yaml", ".yml")):
            return read_environment(self.env)
        raise ValueError(f"unknown env {self.env!r}; choose from {', '.join(ENVIRONMENTS)}, or name a .yaml file")

    def resolved(self) -> dict[str, Any]:
        """Every field with the value that the run uses, as plain values; `Config(**resolved)` is the same run."""
        environment = self.environment()
        return {
            **asdict(self),
            **{name: _plain(value) for name, value in asdict(environment).items()},
            "env": self.env if self.env in ENVIRONMENTS else CUSTOM,
            "gradient": "exact" if environment.enumerated else "sampled",
            "controller_args": dict(self.controller_args),
        }


def _plain(value: Any) -> Any:
    """Tuples as lists, so that YAML has no tags."""
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
