"""Sign of the covariance over a run: Entropy Mechanism, section 3.3 and figure 4."""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from ..simulator import simulate
from ..trajectory import Array
from .checks import Check, Values, above, numbers_of, rising, settle, standard_error, told
from .counts import Count, count
from .first_order import THEOREM_1
from .live_case import Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, negated
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim
from .runs import sized

PAPER = "Entropy Mechanism"
ROLLOUTS = 150
"""Length of a run, at any effort: at its end five sixths of the entropy are gone."""
CALIBRATED, IGNORANT = 0.5, 0.0
"""Dependence of the right arms on the initial policy: as in `noisy`, and none."""


class Course(NamedTuple):
    """Covariances and entropy over runs."""

    with_p: Array
    """Cov_p(log p, p·A), mean over states, before each rollout, (runs, rollouts)."""
    without: Array
    """Cov_p(log p, A), theorem 2's, (runs, rollouts)."""
    fall: Array
    """Entropy lost in each rollout, (runs, rollouts), nats."""


def covariance(p: Array, value: Array) -> Array:
    """Return Cov_p(log p, value) of each state, (..., K) to (...,)."""
    logp = np.log(np.maximum(p, 1e-300))
    centred = value - (p * value).sum(-1, keepdims=True)
    found: Array = (p * (logp - (p * logp).sum(-1, keepdims=True)) * centred).sum(-1)
    return found


def knowing() -> float:
    """Return the dependence of the right arms on the initial policy of the claim's runs."""
    return CALIBRATED


@remember
def course(effort: Effort, right_tilt: float, rollouts: int = ROLLOUTS, **config: object) -> Course:
    """Train with GRPO, strictly on-policy, and examine the policy before every rollout, with the expected advantage."""
    config = {"env": "on", "right_tilt": right_tilt, "rollouts": rollouts, **config}
    run = simulate(sized(effort, config), range(effort.runs), keep_policies=True)
    assert run.policies is not None
    p, success = run.policies[:, :-1], run.success[:, None]
    advantage = success - (p * success).sum(-1, keepdims=True)
    with_p, without = (covariance(p, value).mean(-1) for value in (p * advantage, advantage))
    return Course(with_p, without, -np.diff(run.entropy, axis=1))


def alike(covariances: Array, fall: Array) -> Values:
    """Return Pearson's correlation of the two curves of each run, (runs,)."""
    return np.array([np.corrcoef(*pair)[0, 1] for pair in zip(covariances, fall, strict=True)])


@claim(
    "covariance-positive",
    paper=PAPER,
    source="section 3.3, figure 4, and the abstract",
    words="in runs the fall of the entropy and the covariance of log π and π·A have similar curves, and the covariance "
    "remains positive throughout training, so that the entropy falls to the end",
    statement=(
        r"\operatorname{Cov}_{a \sim \pi_t}(\log \pi_t(a),\ \pi_t(a)\, A_t(a)) > 0",
        r"\text{for all } t \le T",
    ),
    assumption=f"strictly on-policy (on), {ROLLOUTS} rollouts; right arms are likelier at the start, as in a "
    "pretrained model; mean over the states",
    theorem=THEOREM_1,
    setting="Qwen2.5-7B, groups of sampled responses, the whole response as the action",
    threshold="positive before every rollout of every run; and the correlation of the two curves of a run above that "
    "of the null, in paired runs: curves that both decay are always correlated",
    null="theorem 2's covariance, without π; for the sign, a policy to which right arms are no likelier than others",
    expected=HOLDS,
    mutations=(
        Mutation("the covariance had the other sign", Swap(__name__, "covariance", negated)),
        Mutation("the policy preferred wrong arms at the start", Swap(__name__, "knowing", lambda f: lambda: -0.5)),
        Mutation("the formula lacked the factor π", Swap(__name__, "course", lambda f: without_p(f))),
    ),
    live=Live(
        "covariance-sign",
        turned={"tilt": -0.5},
        conditions=(within("tilt", low=0.3), equals("passes", 1)),
    ),
)
def covariance_positive(effort: Effort) -> Finding:
    """A policy that prefers what pays makes it likelier still: the covariance stays positive for as long as there is
    something to learn, and the entropy falls to the end. That is a property of the start. Where right arms are no
    likelier, the covariance is 0 at first, and where they are less likely it is negative, until the policy has learnt
    what pays."""
    found, ignorant = course(effort, knowing()), course(effort, IGNORANT)
    negative = count(np.asarray((found.with_p <= 0).any(1)))
    smallest = found.with_p.min(1)
    curves, others = (alike(x, found.fall) for x in (found.with_p, found.without))
    check = positive(negative, smallest) & rising(others, curves)
    first = ignorant.with_p[:, 0]
    return Finding(
        f"not positive at some time in {negative}; smallest of a run {told(smallest, 5)}, first "
        f"{told(found.with_p[:, 0], 4)}; correlation of the curves of a run {told(curves)}",
        numbers_of(
            {
                "smallest covariance": smallest,
                "first covariance": found.with_p[:, 0],
                "correlation": curves,
                "correlation without π": others,
                "first covariance, right arms anywhere": first,
            }
        ),
        *settle(check),
        null=f"correlation {told(others)}; first covariance {told(first, 4)}, which is "
        f"{'not ' if abs(first.mean()) < 2 * standard_error(first) else ''}told apart from 0",
    )


def positive(negative: Count, smallest: Values) -> Check:
    """Return the check that no run has a covariance that is not positive."""
    return Check(not negative.some, min(negative.doubt, above(smallest).doubt))


def without_p(function: object) -> object:
    """Return `course` with theorem 2's covariance in both places."""

    def changed(*args: object, **config: object) -> Course:
        found: Course = function(*args, **config)  # type: ignore[operator]
        return found._replace(with_p=found.without)

    return changed


@picture(
    "covariance-positive", caption="Cov(log π, π·A) on-policy, by how well the initial policy knows the right arms."
)
def draw_covariances(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    for tilt, label in ((CALIBRATED, "right arms likelier"), (IGNORANT, "no likelier"), (-0.5, "less likely")):
        axes.plot(course(effort, tilt).with_p.mean(0), label=label)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="mean covariance (nats)")
    axes.legend()
