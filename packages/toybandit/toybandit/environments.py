"""The environments: bandits with S states, K arms and Bernoulli rewards. No torch here.

A state is a prompt, an arm is a response of one token, and a group of G samples of a state is what one prompt is
answered with in one rollout. The M passes over a rollout are what makes its samples off-policy.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The numbers of an environment. The defaults are those of `noisy`.

    Raises ValueError naming the number that is out of range.
    """

    states: int = 64
    """S, prompts of the rollout."""
    arms: int = 16
    """K, actions of a state."""
    group: int | None = 16
    """G, samples of a state in one rollout. None: every (arm, reward) pair is enumerated with its probability, which
    gives the expected gradient."""
    rollouts: int = 300
    """T, rollouts of a run."""
    passes: int = 8
    """M, updates on the samples of one rollout; 1 is strictly on-policy."""
    lr: float = 0.5
    """η, step on the mean gradient of a state."""
    logit_std: float = 2.0
    """Standard deviation of the initial logits."""
    right_logit: float = 0.0
    """Added to the initial logits of the right arms."""
    right_arms: int = 4
    """Right arms of a state, drawn without replacement with log-odds `right_tilt`·log p."""
    right_tilt: float = 0.5
    """How far the right arms are those that the initial policy likes: 0 not at all, 1 in proportion to p."""
    reward_right: float = 0.6
    """Probability that a right arm is rewarded with 1."""
    reward_wrong: float = 0.3
    """Probability that another arm is rewarded with 1."""
    coupling: float = 0.0
    """Off-diagonal entry of the state-similarity kernel: how far the update of one state moves every other."""
    advantage: str | None = "grpo"
    """Advantage of a group, a name of `entrostat.advantages`. None: reward minus the expected reward of the state."""
    update: str = "sgd"
    """Update rule of the logits, a name of `toybandit.updates`."""

    def __post_init__(self) -> None:
        for name in ("states", "rollouts", "passes"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        _require(self.arms >= 2, "arms", "at least 2", self.arms)
        _require(self.group is None or self.group >= 1, "group", "at least 1", self.group)
        _require(self.lr > 0, "lr", "positive", self.lr)
        _require(self.logit_std >= 0, "logit_std", "at least 0", self.logit_std)
        _require(1 <= self.right_arms <= self.arms, "right_arms", f"between 1 and {self.arms}", self.right_arms)
        for name in ("reward_right", "reward_wrong"):
            _require(0 <= getattr(self, name) <= 1, name, "a probability", getattr(self, name))
        _require(0 <= self.coupling <= 1, "coupling", "between 0 and 1", self.coupling)

    @property
    def enumerated(self) -> bool:
        """Whether the gradient is the expected one, over all (arm, reward) pairs, and not a sample's."""
        return self.group is None


def _require(condition: bool, name: str, allowed: str, value: object) -> None:
    if not condition:
        raise ValueError(f"{name} must be {allowed}, not {value}")


NOISY = Environment()

ENVIRONMENTS: dict[str, Environment] = {
    "exact": Environment(
        states=1,
        group=None,
        advantage=None,
        rollouts=1000,
        passes=1,
        logit_std=0.0,
        right_arms=1,
        reward_right=0.6,
        reward_wrong=0.4,
    ),
    "noisy": NOISY,
    "on": replace(NOISY, passes=1, lr=1.0),
    "pure": replace(NOISY, reward_right=0.5, reward_wrong=0.5),
    "det": replace(NOISY, reward_right=1.0, reward_wrong=0.0),
    "coupled": replace(NOISY, coupling=0.3),
}
"""exact: one state, expected gradient. noisy: the default. on: strictly on-policy. pure: no signal, so that any entropy
change is the algorithm's own. det: 0/1 rewards, so that groups become all-correct and A = 0. coupled: states share
features."""
