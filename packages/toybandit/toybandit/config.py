"""What to simulate. No torch here, so that tools which only read configurations stay fast."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from .environments import ENVIRONMENTS, Environment

PRECISIONS = ("float64", "float32")


@dataclass(frozen=True, kw_only=True)
class Config:
    """One simulation. A number of the environment that is None keeps the environment's own value.

    Raises ValueError, one line, naming the field and what it may be.
    """

    env: str = "noisy"
    """exact, noisy, on, pure, det or coupled."""
    controller: str = "grpo"
    """Names of `entrostat` controllers joined by +, e.g. clip_higher+steer. grpo is plain PPO clipping 0.2 / 0.2."""
    preset: str = "paper"
    """Values of the controller's hyperparameters: paper or released."""
    target: float | None = None
    """Entropy (nats) that the controller is to hold; None leaves the controller's own default."""
    controller_args: Mapping[str, Any] = field(default_factory=dict)
    """Hyperparameters of the controller. A sequence has one value for each run."""
    dtype: str = "float64"
    """float64 or float32."""

    states: int | None = None
    """S, prompts of a rollout."""
    arms: int | None = None
    """K, actions of a state."""
    group: int | None = None
    """G, samples of a state in one rollout."""
    rollouts: int | None = None
    """T, rollouts of a run."""
    passes: int | None = None
    """M, updates on the samples of one rollout; 1 is strictly on-policy."""
    lr: float | None = None
    """Step on the mean gradient of a state."""
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
    """grpo, dr_grpo, rloo, reinforce_pp, w_reinforce, psr or nsr: one that needs rewards only."""
    update: str | None = None
    """sgd or adam."""

    def __post_init__(self) -> None:
        if self.env not in ENVIRONMENTS:
            raise ValueError(f"unknown env {self.env!r}; choose from {', '.join(ENVIRONMENTS)}")
        if self.dtype not in PRECISIONS:
            raise ValueError(f"unknown dtype {self.dtype!r}; choose from {', '.join(PRECISIONS)}")
        if ENVIRONMENTS[self.env].enumerated:
            for name in ("group", "advantage"):
                if getattr(self, name) is not None:
                    raise ValueError(f"env {self.env!r} enumerates every outcome and has no {name}: leave it None")
        self.environment()

    def environment(self) -> Environment:
        """The environment with this configuration's numbers in it."""
        given = {f.name: getattr(self, f.name) for f in fields(Environment) if getattr(self, f.name) is not None}
        return replace(ENVIRONMENTS[self.env], **given)

    def resolved(self) -> dict[str, Any]:
        """Every field with the value that the run uses, as plain values; `Config(**resolved)` is the same run."""
        return {**asdict(self), **asdict(self.environment()), "controller_args": dict(self.controller_args)}
