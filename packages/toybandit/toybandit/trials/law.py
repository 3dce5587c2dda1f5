"""R = −a·e^H + b over the runs of a small bandit."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from entrostat.logs import laws

from ..claims.law import EQUAL
from ..config import Config
from ..simulator import simulate
from ..trajectory import Array
from ..trial import Outcome, Parameter, trial

RUNS = 8
"""Number of runs side by side; the law is about their mean."""
STATES = Parameter(
    key="states",
    label="States",
    symbol="S",
    unit="prompts",
    default=32,
    low=1,
    high=64,
    step=1,
    help="Prompts whose mean entropy and reward make one point. With few prompts the points are noisy.",
)
RIGHT = Parameter(
    key="right",
    label="Right arms pay",
    symbol="q₁",
    default=1.0,
    low=0.3,
    high=1.0,
    step=0.02,
    help="Probability that a right arm is rewarded.",
)
WRONG = Parameter(
    key="wrong",
    label="Others pay",
    symbol="q₂",
    default=0.0,
    low=0.0,
    high=0.7,
    step=0.02,
    help="Probability that another arm is rewarded. Close to q₁, noise exceeds the signal.",
)
ROLLOUTS = Parameter(
    key="rollouts",
    label="Rollouts",
    symbol="T",
    default=50,
    low=20,
    high=200,
    step=10,
    help="Length of the run. The law fits worse long after the reward has reached its ceiling.",
)
RATE = Parameter(
    key="lr",
    label="Learning rate",
    symbol="η",
    default=1.0,
    low=0.05,
    high=1.0,
    step=0.05,
    help="With a high rate the reward saturates early; after that, every prediction of it is right.",
)


@lru_cache(maxsize=16)
def points(rollouts: int, **config: object) -> tuple[Array, Array]:
    """Return entropy and expected reward before each rollout, means over RUNS, (rollouts,)."""
    run = simulate(Config(**{"env": "det", "rollouts": rollouts, "passes": 2, "lr": 1.0, **config}), range(RUNS))  # type: ignore[arg-type]
    return run.entropy[:, :-1].mean(0), run.reward.mean(0)


@trial(
    "law",
    Parameter(
        key="window",
        label="Share of the run that is fitted",
        default=1.0,
        low=0.1,
        high=1.0,
        step=0.05,
        help="1: the law is fitted to the whole run and judged by R². Less: it is fitted to the beginning and must "
        "predict the rest better than a constant and a line.",
    ),
    RIGHT,
    WRONG,
    STATES,
    ROLLOUTS,
    RATE,
)
def law(window: float, right: float, wrong: float, states: int, rollouts: int, lr: float) -> Outcome:
    """GRPO on a small bandit: the law is fitted to the entropy and reward of a run, or of its beginning."""
    entropy, reward = points(rollouts, states=states, reward_right=right, reward_wrong=wrong, lr=lr)
    if window == 1:
        fitted = laws.fit(entropy, reward)
        predicted = fitted(entropy)
        line = laws.alternatives(entropy, reward)["linear"].r2
        holds = bool(fitted.r2 >= 0.95 and fitted.r2 > line)
        because = f"R² is {fitted.r2:.3f}, a line's in H {line:.3f}; the claim is at least .95, and more than a line's."
        if np.isnan(fitted.r2):
            because = "the reward does not vary, so that no law explains it."
    else:
        found = laws.predict_end(entropy, reward, window)
        predicted = found.law(entropy)
        first = found.law.n
        rest = reward[first:]
        in_h = np.polyval(np.polyfit(entropy[:first], reward[:first], 1), entropy[first:])
        constant, straight = (float(np.sqrt(np.mean((rest - guess) ** 2))) for guess in (reward[first - 1], in_h))
        holds = found.rmse < min(constant, straight)
        because = (
            f"fitted to {first} of {rollouts} points, the law predicts the other rewards with an RMSE of "
            f"{found.rmse:.4f}; {constant:.4f} if the reward stayed at its last value, {straight:.4f} by a line in H. "
            "The claim is that the law is better than both."
        )
    return Outcome(
        x=entropy,
        x_title="mean entropy H (nats)",
        predicted=predicted,
        measured=reward,
        y_title="expected reward R",
        holds=holds,
        because=because,
        points=True,
    )


@trial(
    "law-algorithms",
    Parameter(
        key="advantage",
        label="Advantage",
        default="rloo",
        options=("rloo", "dr_grpo", "reinforce_pp", "w_reinforce", "psr", "nsr"),
        help="Estimator of the advantage. psr learns only from successes, nsr only from failures, and w_reinforce "
        "gives successes a small weight.",
    ),
    Parameter(
        key="std",
        label="Spread of its initial logits",
        symbol="σ",
        default=2.0,
        low=0.5,
        high=3.0,
        step=0.1,
        help="Spread for the runs with this advantage; GRPO's is 2.",
    ),
    RIGHT,
    WRONG,
    replace(STATES, default=64),
    replace(ROLLOUTS, default=150),
)
def law_algorithms(advantage: str, std: float, right: float, wrong: float, states: int, rollouts: int) -> Outcome:
    """The same bandits under an advantage other than GRPO's; the prediction is the law of GRPO's runs."""
    shared = {"states": states, "reward_right": right, "reward_wrong": wrong}
    grpo = laws.fit(*points(rollouts, **shared))
    entropy, reward = points(rollouts, advantage=advantage, logit_std=std, **shared)
    other = laws.fit(entropy, reward)
    of_a, of_b = other.a / grpo.a, other.b / grpo.b
    return Outcome(
        x=entropy,
        x_title="mean entropy H (nats)",
        predicted=grpo(entropy),
        measured=reward,
        y_title="expected reward R",
        holds=bool(max(abs(of_a - 1), abs(of_b - 1)) <= EQUAL),
        because=f"a is {of_a:.3f} and b {of_b:.3f} times GRPO's; the claim is that they agree within {EQUAL:.0%}.",
        points=True,
    )
