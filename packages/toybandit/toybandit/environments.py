"""The environments: bandits with S prompts, K arms and Bernoulli rewards. No torch here.

A response has one token, its arm, unless `length` makes it an episode through a tree of states (`toybandit.episodes`).
In one rollout every prompt gets a group of G responses. The M passes over a rollout make its samples off-policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from entrostat.settings.allowed import NonNegativeFloat, NonNegativeInt, PositiveInt, Probability
from entrostat.settings.field_types import fit_fields

Table = tuple[tuple[float, ...], ...]
"""Rows of numbers: one for each state, or one for all states."""
TABLES = ("success", "logits", "kernel")
UpdateRule = Literal["sgd", "npg", "adam"]
CENTRED = ("grpo", "dr_grpo", "rloo", "reinforce_pp", "opo", "qae", "max_rl")
"""Advantages relative to the group, which are 0 in a group of one."""
MOST_LOGITS = 1 << 24
"""Upper limit for the logits of all states (128 MiB per run), and for the entries of the coupling kernel."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Numbers of an environment. The defaults are those of `noisy`.

    Raises ValueError naming a number that has the wrong type, is not finite or is out of range.
    """

    states: PositiveInt = 64
    """S, prompts of the rollout."""
    arms: Annotated[int, "[2, inf)"] = 16
    """K, actions of a state."""
    group: Annotated[int | None, "[1, inf)"] = 16
    """G, responses to a prompt in one rollout. None: every (arm, reward) pair is enumerated with its probability, which
    gives the expected gradient."""
    length: PositiveInt = 1
    """L, tokens of a response."""
    branching: PositiveInt = 1
    """B, states that can follow a token; the arm's remainder modulo B selects one."""
    rollouts: PositiveInt = 300
    """T, rollouts of a run."""
    passes: PositiveInt = 8
    """M, updates on the samples of one rollout; 1 is strictly on-policy."""
    lr: Annotated[float | tuple[float, ...], "(0, inf)"] = 0.5
    """η, step on the mean gradient of a state; a sequence has one for each run."""
    logit_std: NonNegativeFloat = 2.0
    """Standard deviation of the initial logits."""
    right_logit: float = 0.0
    """Offset of the initial logits of the right arms."""
    right_arms: PositiveInt = 4
    """Right arms of a state, drawn without replacement with log-odds `right_tilt`·log p."""
    right_tilt: float = 0.5
    """Dependence of the right arms on the initial policy: 0 none, 1 drawn in proportion to p."""
    reward_right: Probability = 0.6
    """Probability that a right arm is rewarded with 1."""
    reward_wrong: Probability = 0.3
    """Probability that another arm is rewarded with 1."""
    label_noise: Probability = 0.0
    """Probability that the verifier flips the reward of a response. Training sees the flipped reward; every recorded
    `reward` and `success` is without this noise."""
    coupling: Probability = 0.0
    """Off-diagonal entry of the state-similarity kernel: share of a state's update that every other state gets."""
    advantage: str | None = "grpo"
    """Advantage of a group, a name of `entrostat.advantages`. None: reward minus the expected reward of the state."""
    update: UpdateRule = "sgd"
    """Update rule of the logits: sgd (policy gradient), npg (natural policy gradient) or adam."""
    momentum: Annotated[float, "[0, 1)"] = 0.0
    """Momentum of sgd."""
    beta_1: Annotated[float, "[0, 1)"] = 0.9
    """Decay of adam's mean of gradients."""
    beta_2: Annotated[float, "[0, 1)"] = 0.999
    """Decay of adam's mean of their squares."""
    max_grad_norm: Annotated[float | None, "(0, inf)"] = None
    """Largest norm of the gradient of the loss; a larger one is scaled down. None: no limit."""
    mini_batches: PositiveInt = 1
    """Mini-batches of prompts that a pass goes through, with an update after each."""
    joint: bool = False
    """True: a response succeeds with the product of its arms' probabilities, as an answer that must be right as a
    whole. False: with their mean."""
    features: Annotated[int | None, "[1, inf)"] = None
    """d, features that the logits are linear in (`toybandit.features`), the same for all seeds: fewer share more.
    None: a table, where each state has logits of its own, as with a feature for every state, in training and held
    out."""
    pool: Annotated[int | None, "[1, inf)"] = None
    """Training prompts, which take turns, S at a time. None: the same S in each rollout."""
    held_out: NonNegativeInt = 0
    """Prompts that training never sees, on which the policy is evaluated."""
    predictable: Probability = 1.0
    """Share of the variance of the right arms' score that the features explain; the rest is each prompt's own."""
    skill: NonNegativeFloat = 0.0
    """Weight of the right arms' score in the initial logits: what a supervised start has learnt."""
    success: Annotated[Table | None, "[0, 1]"] = None
    """Probability that an arm is rewarded, instead of right and wrong arms: a row for each state, or one for all."""
    success_beta: Annotated[tuple[float, float] | None, "(0, inf)"] = None
    """Parameters of a Beta distribution to draw these probabilities from."""
    logits: Table | None = None
    """Mean of the initial logits, to which noise of `logit_std` is added: a row for each state, or one for all."""
    kernel: Table | None = None
    """State-similarity kernel, a row and a column for each state, instead of the one that `coupling` makes."""

    def __post_init__(self) -> None:
        for name, value in fit_fields(Environment, as_tables(vars(self))).items():
            if value != getattr(self, name):  # integers stay integers, so keys of earlier sweeps stay valid
                object.__setattr__(self, name, value)
        for name in ("branching", "right_arms"):
            _require(getattr(self, name) <= self.arms, name, f"at most the {self.arms} arms", getattr(self, name))
        if self.group == 1 and (self.advantage or "").partition(" ")[0] in CENTRED:
            raise ValueError(f"group must be at least 2 with advantage {self.advantage!r}: that of a group of 1 is 0")
        _require(self.lr != (), "lr", "a number, or one for each run", "none")
        _require(self.length == 1 or not self.enumerated, "length", "1 if every outcome is enumerated", self.length)
        deepest = MOST_LOGITS if self.branching == 1 else MOST_LOGITS.bit_length()
        if self.length > deepest or self.rows * self.arms > MOST_LOGITS:
            raise ValueError(f"states, arms, length and branching make over {MOST_LOGITS} logits: lower one of them")
        if self.coupling > 0 and self.features is None and self.rows**2 > MOST_LOGITS:
            raise ValueError(f"coupling of {self.rows} states takes over {MOST_LOGITS} numbers: lower states")
        _require(self.update == "sgd" or self.momentum == 0, "momentum", f"0 with {self.update}", self.momentum)
        _require(
            self.states % self.mini_batches == 0,
            "mini_batches",
            f"a divisor of {self.states} states",
            self.mini_batches,
        )
        self._check_features()
        _require(self.update != "npg" or self.mini_batches == 1, "mini_batches", "1 with npg", self.mini_batches)
        self._check_tables()

    def _check_features(self) -> None:
        if self.features is None:
            for name, without in (("pool", None), ("held_out", 0), ("predictable", 1.0), ("skill", 0.0)):
                if getattr(self, name) != without:
                    raise ValueError(f"{name} needs shared features: set features, or leave {name} out")
            return
        for name in (*TABLES, "success_beta", "right_logit"):
            if getattr(self, name):
                raise ValueError(f"with features, weights and right arms are drawn: leave {name} out")
        _require(self.update != "npg", "update", "sgd or adam with features", "npg")
        _require(not self.enumerated, "gradient", "sampled with features", "exact")
        _require(self.coupling < 1, "coupling", "below 1 with features", self.coupling)
        _require(self.prompts % self.states == 0, "pool", f"a multiple of the {self.states} states", self.pool)
        rows = (self.prompts + self.held_out) * self.nodes
        if rows * max(min(self.features, rows), self.arms) > MOST_LOGITS:
            raise ValueError(f"pool, held_out, length and features make over {MOST_LOGITS} numbers: lower one of them")

    def _check_tables(self) -> None:
        if self.success is not None and self.success_beta is not None:
            raise ValueError("success and success_beta both set the reward probabilities: give only one")
        for name in ("success", "logits"):
            table = getattr(self, name)
            if table is not None:
                _require(len(table) in (1, self.rows), name, f"1 row or {self.rows}", f"{len(table)} rows")
                _require_columns(name, table, self.arms)
        if self.kernel is not None:
            _require(len(self.kernel) == self.rows, "kernel", f"{self.rows} rows", f"{len(self.kernel)}")
            _require_columns("kernel", self.kernel, self.rows)

    @property
    def enumerated(self) -> bool:
        """True if the gradient is expected, over all (arm, reward) pairs; False if it is sampled."""
        return self.group is None

    @property
    def is_on_logits(self) -> bool:
        """True if a step follows the gradient in the logits alone: no features, momentum or limit."""
        return self.momentum == 0 and self.max_grad_norm is None and self.features is None

    @property
    def nodes(self) -> int:
        """Number of states of a prompt: the nodes of a tree of depth L."""
        return sum(self.branching**depth for depth in range(self.length))

    @property
    def rows(self) -> int:
        """Number of states of a rollout's prompts: S times the nodes."""
        return self.states * self.nodes

    @property
    def updates(self) -> int:
        """Number of updates on the samples of a rollout."""
        return self.passes * self.mini_batches

    @property
    def prompts(self) -> int:
        """Number of training prompts."""
        return self.pool or self.states


def _require(condition: bool, name: str, allowed: str, value: object) -> None:
    if not condition:
        raise ValueError(f"{name} must be {allowed}; got {value}")


def _require_columns(name: str, table: Table, columns: int) -> None:
    for number, row in enumerate(table):
        _require(len(row) == columns, f"{name}, row {number},", f"{columns} numbers", f"{len(row)}")


def as_tables(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return `numbers` with every flat list given for a table, one row for all states, as a table of that row."""
    tables = dict(numbers)
    for name in TABLES:
        rows = tables.get(name)
        if isinstance(rows, Sequence) and not (rows and isinstance(rows[0], Sequence)):
            tables[name] = (rows,)
    return tables


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
    "episodes": replace(NOISY, states=16, length=4, branching=2),
    "trap": replace(
        NOISY,
        states=16,
        logit_std=0.5,
        logits=((2.0, -2.5, *7 * (1.0, 0.0)),),
        success=((0.5, 1.0, *14 * (0.3,)),),
    ),
    "features": Environment(
        states=32,
        arms=4,
        group=8,
        length=6,
        rollouts=160,
        passes=1,
        mini_batches=2,
        update="adam",
        beta_2=0.95,
        max_grad_norm=1.0,
        lr=0.18,
        logit_std=3.4,
        right_arms=1,
        right_tilt=0.9,
        reward_right=1.0,
        reward_wrong=0.0,
        joint=True,
        features=4,
        coupling=0.3,
        pool=2048,
        held_out=128,
        predictable=0.1,
        skill=1.5,
    ),
}
"""exact: one state, expected gradient. noisy: the default. on: strictly on-policy. pure: no signal, so any entropy
change comes from the algorithm. det: 0/1 rewards, so groups become all-correct and A = 0. coupled: states share
features. episodes: responses of four tokens, so rules for sequences act on sequences. trap: the likeliest arm pays half
of the time; one that the initial policy seldom draws, with a probability of about .0025, always pays. features: prompts
never return soon, share few features, and are evaluated on others (docs/predict.md has how its numbers were fitted)."""
