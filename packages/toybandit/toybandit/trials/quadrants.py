"""Tokens by the sign of their advantage and their probability: quadrants, clipped tokens, STEER's weights."""

import numpy as np

from entrostat.controllers.quadrant_mask import QuadrantMask

from ..claims.clipping import ClipProbe
from ..claims.runs import entropies, side_by_side, trajectory
from ..claims.steer import NOTABLE
from ..claims.steer_collapse import FREE, STEADY, tenth
from ..instruments import at_hand, by_key, weights
from ..trial import Outcome, Parameter, nearest_rising, trial
from .rules import PASSES, ROLLOUTS, SIZE, over_time

I, II = "I: likely, rewarded", "II: unlikely, rewarded"
III, IV = "III: unlikely, punished", "IV: likely, punished"
QUADRANTS = {I: ("exploitation", -1), II: ("exploration", 1), III: ("suppression", -1), IV: ("correction", 1)}
"""Name, and the sign of the entropy change that more of these tokens should cause."""
FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0)
ENV = Parameter(
    key="env",
    label="Environment",
    default="noisy",
    options=("noisy", "on", "det", "pure"),
    help="noisy: right arms pay with probability .6, others with .3. on: the same, with one update per rollout. det: 1 "
    "and 0. pure: all alike.",
)


@trial(
    "quadrants",
    Parameter(
        key="quadrant",
        label="Quadrant",
        default=I,
        options=tuple(QUADRANTS),
        help="Likely tokens have a probability above .8, unlikely ones below .2.",
    ),
    Parameter(
        key="share",
        label="Reweighted share",
        default=0.5,
        low=0.05,
        high=1.0,
        step=0.05,
        help="Share of the quadrant's tokens, drawn at random. The paper uses .1; smaller effects drown in the noise.",
    ),
    ENV,
    ROLLOUTS,
)
def quadrants(quadrant: str, share: float, env: str, rollouts: int) -> Outcome:
    """Tokens of one quadrant get a weight from 0, which masks them, to 2. Measured is the change of the run's mean
    entropy from the run without weights."""
    name, direction = QUADRANTS[quadrant]
    rows = [weights(name, factor) | {"share": share} for factor in FACTORS]
    passes = 1 if env == "on" else 4
    with at_hand(intervention=QuadrantMask):
        mean = side_by_side(
            SIZE, by_key(rows), env=env, controller="intervention", rollouts=rollouts, passes=passes
        ).mean((1, 2))
    effect = mean - mean[FACTORS.index(1.0)]
    masked, doubled = -direction * effect[0], direction * effect[-1]
    holds = bool(min(masked, doubled) >= NOTABLE)
    return Outcome(
        x=np.array(FACTORS),
        x_title="weight of the tokens",
        predicted=direction * nearest_rising(direction * effect),
        measured=effect,
        y_title="change of the mean entropy of a run (nats)",
        holds=holds,
        because=f"masking them changes the mean entropy by {effect[0]:+.3f} and doubling them by {effect[-1]:+.3f}; "
        f"the claim is {'a rise and a fall' if direction < 0 else 'a fall and a rise'} of at least {NOTABLE}.",
    )


UPPER, LOWER = "upper", "lower"


@trial(
    "clip-mechanism",
    Parameter(
        key="bound",
        label="Bound",
        default=UPPER,
        options=(UPPER, LOWER),
        help="The upper bound of the ratio stops rewarded tokens that have grown, the lower bound stops punished "
        "tokens that have shrunk.",
    ),
    Parameter(
        key="passes",
        label="Updates per rollout",
        symbol="M",
        default=8,
        low=1,
        high=8,
        step=1,
        help="1 is strictly on-policy: the ratio is 1 and nothing is clipped.",
    ),
    Parameter(
        key="std",
        label="Spread of the initial logits",
        symbol="σ",
        default=2.0,
        low=0.5,
        high=4.0,
        step=0.1,
        help="A larger spread makes the policy more concentrated.",
    ),
    Parameter(
        key="rollouts",
        label="Rollouts",
        symbol="T",
        default=15,
        low=5,
        high=60,
        step=5,
        help="Length of the run.",
    ),
)
def clip_mechanism(bound: str, passes: int, std: float, rollouts: int) -> Outcome:
    """The mean entropy flow of the tokens that one bound of GRPO's ratio clip stops, which is their lost effect on the
    entropy. The prediction is the measured size with the claimed sign."""
    settings = {"env": "noisy", "passes": passes, "logit_std": std, "rollouts": rollouts}
    with at_hand(clip_probe=ClipProbe):
        found = trajectory(SIZE, controller="clip_probe", **settings).metrics
    name, sign = ("high", 1) if bound == UPPER else ("low", -1)
    tokens, flow = (found[f"{name} {what}"].sum(0) for what in ("tokens", "flow"))
    each = np.divide(flow, tokens, out=np.full(rollouts, np.nan), where=tokens > 0)
    stopped, rewarded = tokens.sum(), found["positive tokens"].sum()
    mean = flow.sum() / max(stopped, 1)
    likely = found[f"{name} probability"].sum() / max(stopped, 1)
    of_rewarded = found["positive probability"].sum() / max(rewarded, 1)
    return Outcome(
        x=np.arange(rollouts, dtype=np.float64),
        x_title="rollout",
        predicted=sign * np.abs(each),
        measured=each,
        y_title="mean flow of a stopped token (nats per unit step)",
        holds=bool(sign * mean > 0 and likely < of_rewarded),
        because=f"the tokens that the {bound} bound stops would change the entropy by {mean:+.3f} each, and should "
        f"{'raise' if sign > 0 else 'lower'} it; their mean probability is {likely:.2f}, and should be below the "
        f"{of_rewarded:.2f} of rewarded tokens."
        if stopped > 0
        else f"the {bound} bound stops no token at all.",
    )


@trial(
    "steer-collapse",
    Parameter(
        key="lambda_min",
        label="Smallest weight",
        symbol="λ_min",
        default=0.7,
        low=0.001,
        high=1.0,
        step=0.001,
        help="Weight of the token with the largest Ω; 1 is GRPO.",
    ),
    Parameter(
        key="std",
        label="Spread of the initial logits",
        symbol="σ",
        default=2.0,
        low=0.5,
        high=12.0,
        step=0.5,
        help="2: the policy starts at 1.6 nats. 9: at .37 nats, like the paper's model.",
    ),
    Parameter(
        key="rollouts",
        label="Rollouts",
        symbol="T",
        default=60,
        low=10,
        high=150,
        step=10,
        help="Length of the run: the weights delay the fall.",
    ),
    PASSES,
    ENV,
)
def steer_collapse(lambda_min: float, std: float, rollouts: int, passes: int, env: str) -> Outcome:
    """Mean entropy under STEER's exponential weights, clip .99/5; the prediction is a lower limit, a plateau at
    the entropy half-way, less a twentieth."""
    settings = {"env": env, "passes": passes, "rollouts": rollouts, "logit_std": std, "controller_args": FREE}
    entropy = side_by_side(SIZE, {"lambda_min": [lambda_min]}, controller="ppo+steer", **settings)[0]
    grpo = entropies(SIZE, controller="grpo", **settings)
    end, half, under_grpo = (float(tenth(*at).mean()) for at in ((entropy, 1.0), (entropy, 0.5), (grpo, 1.0)))
    measured = entropy.mean(0)
    return over_time(
        measured,
        np.where(np.arange(len(measured)) > rollouts / 2, STEADY * half, np.nan),
        bool(end >= STEADY * half and end > under_grpo),
        f"half-way the entropy is {half:.3f}, at the end {end:.3f}, and {under_grpo:.3f} under GRPO; the claim is a "
        f"plateau, at least {STEADY:.0%} of the entropy half-way, and more than GRPO's.",
    )
