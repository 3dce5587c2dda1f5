"""STEER: the quality of its estimate (table 7), its four quadrants (appendix C.3), and the effect of its weights."""

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change, policy_stats
from entrostat.controllers.quadrant_mask import QuadrantMask

from ..environments import ENVIRONMENTS
from ..instruments import at_hand, by_key, weights
from ..policy import Policy
from ..problem import draw_problem
from ..rollout import enumerate_rollout
from .assumption_1 import FOUR_QUADRANTS
from .checks import Check, Values, above, clearance, every, numbers_of, rising, settle, standard_error
from .live_case import TINY_STEP, Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always, negated
from .pictures import picture
from .registry import FAILS, HOLDS, Effort, Finding, claim, holds_if
from .runs import side_by_side
from .tokens import STEP, every_token

PAPER = "STEER"
ESTIMATES = ("exact", "own logit", "STEER", "OPEFO", "Cov")
UNLIKE = "states differ in how sure the policy is"
SPREAD = 0.99
"""Largest deviation from 1 of the factors on the logits of such states."""


def estimates(effort: Effort, spread: float, eta: float = STEP) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Return each of ESTIMATES, the measured ΔH per unit step, and the probability of each token, (runs, S·2K).

    Tokens are all (arm, reward) pairs of the first rollout of `noisy`, with the advantage of an infinite group. The
    logits of the states are multiplied by factors from 1 − spread to 1 + spread, so some states are surer than others.
    """
    logits, success = draw_problem(ENVIRONMENTS["noisy"], torch.arange(effort.runs), torch.float64)
    logits = logits * torch.linspace(1 - spread, 1 + spread, logits.shape[1]).reshape(-1, 1).to(logits)
    policy = Policy(logits)
    rollout = enumerate_rollout(policy, success)
    assert rollout.frequency is not None
    rate = (policy.p * success).sum(-1, keepdim=True)
    advantage = rollout.advantage / (rate * (1 - rate)).sqrt()
    arms = logits.shape[-1]
    truth = torch.cat(
        [every_token(logits.flatten(0, 1), a.flatten(0, 1), eta)[1] for a in advantage.split(arms, -1)], -1
    ).reshape(advantage.shape)
    share = rollout.frequency / rollout.frequency.sum((1, 2), keepdim=True)
    found = estimates_of(logits, policy_stats(logits).logp.repeat(1, 1, 2), advantage, share)
    return {name: x.flatten(1) for name, x in found.items()}, truth.flatten(1), share.flatten(1)


def estimates_of(logits: Tensor, logp: Tensor, advantage: Tensor, share: Tensor) -> dict[str, Tensor]:
    """Return each of ESTIMATES for the tokens of states, (runs, S, n).

    logits: (runs, S, K). logp, advantage and share in the mini-batch of the tokens: (runs, S, n).
    """
    stats = policy_stats(logits)
    entropy, s2, s2l = (x.unsqueeze(-1) for x in (stats.entropy, stats.s2, stats.s2l))
    mean_logp = (share * logp).sum((1, 2), keepdim=True)
    return {
        "exact": entropy_change.exact(logp, entropy, s2, s2l, advantage),
        "own logit": entropy_change.own_logit(logp, entropy, advantage),
        "STEER": entropy_change.steer(logp, entropy, advantage),
        "OPEFO": entropy_change.opefo(logp, entropy, advantage),
        "Cov": -entropy_change.covariance(logp, advantage, mean_logp, torch.zeros(())),
    }


def weighted_pearson(x: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """Return the correlation of x and y under the probabilities `share`, all (..., N) to (...,)."""
    x, y = (v - (share * v).sum(-1, keepdim=True) for v in (x, y))
    return (share * x * y).sum(-1) / ((share * x * x).sum(-1) * (share * y * y).sum(-1)).sqrt()


def ranks(x: Tensor, share: Tensor) -> Tensor:
    """Return the mid-rank of each value under the probabilities `share`, in (0, 1); (..., N)."""
    order = x.argsort(-1)
    sorted_share = share.gather(-1, order)
    return torch.empty_like(x).scatter_(-1, order, sorted_share.cumsum(-1) - sorted_share / 2)


@remember
def ranking(effort: Effort, spread: float = 0.0) -> dict[str, dict[str, Values]]:
    """Return mean squared error, Pearson and Spearman correlation of each of ESTIMATES, (runs,) each."""
    found, truth, share = estimates(effort, spread)
    true_ranks = ranks(truth, share)
    return {
        "MSE": {name: (share * (x - truth) ** 2).sum(-1).numpy() for name, x in found.items()},
        "Pearson": {name: weighted_pearson(x, truth, share).numpy() for name, x in found.items()},
        "Spearman": {name: weighted_pearson(ranks(x, share), true_ranks, share).numpy() for name, x in found.items()},
    }


def no_change(effort: Effort) -> Values:
    """Return the mean squared error of the estimate that no token changes the entropy, (runs,)."""
    _, truth, share = estimates(effort, 0.0)
    found: Values = (share * truth**2).sum(-1).numpy()
    return found


def told_metrics(found: Mapping[str, Mapping[str, Values]]) -> str:
    return "; ".join(
        f"{metric}: " + ", ".join(f"{name} {values.mean():.2g}" for name, values in each.items())
        for metric, each in found.items()
    )


@claim(
    "estimates-by-error",
    paper=PAPER,
    source="on table 7; the exact flow is theorem 3.3 of arXiv 2602.03392, this comparison was not found elsewhere",
    words="the more of a token's effect an estimate includes, the smaller its error: exact flow, own logit, "
    "Ω and OPEFO's formula, covariance",
    statement=(
        r"\mathrm{MSE}_{\mathrm{exact}} < \mathrm{MSE}_{\mathrm{own\ logit}}",
        r"< \mathrm{MSE}_{\Omega},\ \mathrm{MSE}_{\mathrm{OPEFO}} < \mathrm{MSE}_{\mathrm{Cov}}",
    ),
    assumption="tokens of the first rollout of noisy, GRPO advantage",
    threshold="mean squared errors in this order in paired runs, and the first two below the null's",
    null="no change: every token's ΔH is 0",
    expected=HOLDS,
    mutations=(
        Mutation("the exact flow had the other sign", Swap(entropy_change, "exact", negated)),
        Mutation("the own logit's part were Ω", Swap(entropy_change, "own_logit", always(entropy_change.steer))),
    ),
    live=Live("estimates", turned={"log_eta": 1.0}, conditions=(TINY_STEP,)),
)
def estimates_by_error(effort: Effort) -> Finding:
    """An estimate that includes more of a token's effect has a smaller error; the exact flow includes all of it."""
    error, unchanged = ranking(effort)["MSE"], no_change(effort)
    check = rising(error["exact"], error["own logit"], error["STEER"], error["Cov"])
    check &= rising(error["own logit"], error["OPEFO"], error["Cov"]) & rising(error["own logit"], unchanged)
    return Finding(
        told_metrics({"MSE": error}),
        numbers_of({**error, "no change": unchanged}),
        *settle(check),
        null=f"MSE {unchanged.mean():.2g}",
    )


def better_than_cov(found: Mapping[str, Mapping[str, Values]]) -> Check:
    """Return the check that Ω has the smaller error and the larger correlations."""
    check = rising(found["MSE"]["STEER"], found["MSE"]["Cov"])
    return check & every(rising(found[metric]["Cov"], found[metric]["STEER"]) for metric in ("Pearson", "Spearman"))


@claim(
    "steer-table-7",
    paper=PAPER,
    source="section 3.1 and table 7",
    words="the mean squared error of Ω is smaller than that of Cov by orders of magnitude, and its correlations with "
    "the true ΔH of a token, Pearson and Spearman, are much higher, Spearman's above .6",
    statement=(
        r"\mathrm{MSE}_\Omega < \mathrm{MSE}_{\mathrm{Cov}},",
        r"r_\Omega > r_{\mathrm{Cov}}, \quad \rho_\Omega > \rho_{\mathrm{Cov}}",
    ),
    assumption="tokens of the first rollout of noisy, GRPO advantage",
    setting="tokens of language models in training with GRPO",
    threshold="a smaller error and larger correlations than the null's in paired runs; how much smaller depends on the "
    "policy",
    null="Cov, the estimate of the covariance law",
    expected=holds_if(UNLIKE),
    mutations=(
        Mutation("Ω had the other sign", Swap(entropy_change, "steer", negated)),
        Mutation(
            "Ω left out that a token's own state has an entropy",
            Swap(entropy_change, "steer", lambda f: lambda logp, entropy, advantage: advantage),
        ),
    ),
    live=Live(
        "omega-or-cov",
        values={"spread": 0.99},
        turned={"spread": 0.0},
        conditions=(within("spread", low=0.8, stated=False),),
    ),
)
def steer_table_7(effort: Effort) -> Finding:
    """Ω compares a token with its own state, Cov with the mini-batch: this matters if states differ, as the paper
    says. A correlation of Cov near 0, as in its table, is not found in either case."""
    alike, unlike = ranking(effort), ranking(effort, SPREAD)
    numbers = {
        f"{metric}, {name}{label}": values
        for label, found in (("", alike), (", states differ", unlike))
        for metric, each in found.items()
        for name, values in each.items()
    }
    return Finding(
        f"{told_metrics(alike)}. With logits scaled by factors from almost 0 to 2: {told_metrics(unlike)}",
        numbers_of(numbers),
        *settle(better_than_cov(alike), UNLIKE, better_than_cov(unlike)),
        null=told_metrics({metric: {"Cov": found["Cov"]} for metric, found in unlike.items()}) + " where states differ",
    )


INTERVENTIONS = {
    "mask I": ("exploitation", 0.0, 1),
    "double II": ("exploration", 2.0, 1),
    "mask III": ("suppression", 0.0, 1),
    "double IV": ("correction", 2.0, 1),
    "double I": ("exploitation", 2.0, -1),
    "mask II": ("exploration", 0.0, -1),
    "double III": ("suppression", 2.0, -1),
    "mask IV": ("correction", 0.0, -1),
}
"""Quadrant of tokens above .8 or below .2, factor on 10% of them, and predicted sign of the effect on H."""
SHARE = 0.1
"""Share of the tokens of a quadrant that are reweighted."""
NOTABLE = 0.005
"""Smallest effect on the mean entropy of a run that counts, nats."""


REWARDS = {"stochastic": ("noisy", "on"), "deterministic": ("det",)}
"""Environments of the claims on the quadrants."""
WORDS = (
    "masking a tenth of the tokens of quadrant I or III, or doubling those of II or IV, raises the entropy above "
    "GRPO's, and the opposite lowers it"
)
SIGNS = (
    r"\frac{\partial H}{\partial w_{\mathrm{I}}},\ \frac{\partial H}{\partial w_{\mathrm{III}}} < 0 < "
    r"\frac{\partial H}{\partial w_{\mathrm{II}}},\ \frac{\partial H}{\partial w_{\mathrm{IV}}}"
)
SETTING = "language models; 5% to 20% of the tokens, ε .2/.2 to raise the entropy and .2/.28 to lower it"
THRESHOLD = (
    f"each of the eight moves the mean entropy of paired runs in this direction by at least {NOTABLE} nats, far "
    "above rounding"
)


@remember
def intervened(effort: Effort, env: str) -> dict[str, Values]:
    """Return the mean entropy of a run under each of INTERVENTIONS minus the mean without, (runs,)."""
    changed = [("exploitation", 1.0), *(settings[:2] for settings in INTERVENTIONS.values())]
    rows = [weights(quadrant, factor) | {"share": SHARE} for quadrant, factor in changed]
    with at_hand(intervention=QuadrantMask):
        mean = side_by_side(effort, by_key(rows), env=env, controller="intervention").mean(-1)
    return dict(zip(INTERVENTIONS, mean[1:] - mean[0], strict=True))


def as_predicted(effects: Mapping[str, Values]) -> Check:
    """Return the check that each intervention moves the entropy in the predicted direction, by at least NOTABLE."""
    return every(above(INTERVENTIONS[name][2] * effect, NOTABLE) for name, effect in effects.items())


def quadrant_finding(effort: Effort, rewards: str) -> Finding:
    envs = REWARDS[rewards]
    lines: list[str] = []
    numbers: dict[str, float] = {}
    for env in envs:
        effects = intervened(effort, env)
        t = min(clearance(x) for x in effects.values())
        told_effects = ", ".join(f"{name} {x.mean():+.3f}" for name, x in effects.items())
        lines.append(f"{env}: {told_effects}; smallest |t| {t:.1f}")
        numbers |= numbers_of({f"{env}, {name}": x for name, x in effects.items()})
    check = every(as_predicted(intervened(effort, env)) for env in envs)
    return Finding("change of mean H in " + "; in ".join(lines), numbers, *settle(check), null="change of mean H 0")


@claim(
    "four-quadrants",
    paper=PAPER,
    source="appendix C.3, figures 14 to 16",
    words=WORDS,
    statement=SIGNS,
    assumption="stochastic rewards (noisy, on); 10% of the tokens of a quadrant masked or doubled",
    theorem=FOUR_QUADRANTS,
    setting=SETTING,
    threshold=THRESHOLD,
    null="no effect on the entropy",
    expected=HOLDS,
    mutations=(
        Mutation(
            "a mask left its tokens as they are", Swap(INTERVENTIONS, "mask III", always(("suppression", 1.0, 1)))
        ),
        Mutation(
            "the advantage's sign were the other in one of them",
            Swap(INTERVENTIONS, "double II", always(("suppression", 2.0, 1))),
        ),
        Mutation(
            "likely and unlikely were exchanged in one of them",
            Swap(INTERVENTIONS, "double I", always(("exploration", 2.0, -1))),
        ),
    ),
    live=Live(
        "quadrants",
        values={"quadrant": "IV: likely, punished"},
        turned={"env": "det"},
        conditions=(equals("env", "noisy", "on"),),
    ),
)
def four_quadrants(effort: Effort) -> Finding:
    """Rewarding likely tokens and punishing unlikely ones lowers the entropy; the other two raise it."""
    return quadrant_finding(effort, "stochastic")


@claim(
    "four-quadrants-det",
    paper=PAPER,
    source="appendix C.3, figures 14 to 16",
    words=WORDS,
    statement=SIGNS,
    assumption="deterministic rewards (det); 10% of the tokens of a quadrant masked or doubled",
    theorem=FOUR_QUADRANTS,
    setting=SETTING,
    threshold=THRESHOLD,
    null="no effect on the entropy",
    expected=FAILS,
    mutations=(Mutation("rewards were stochastic", Swap(REWARDS, "deterministic", always(("noisy",)))),),
    live=Live(
        "quadrants",
        values={"quadrant": "IV: likely, punished", "env": "det"},
        turned={"env": "noisy"},
        conditions=(equals("env", "det"),),
    ),
)
def four_quadrants_det(effort: Effort) -> Finding:
    """Once every sample of a state is right, its advantages are 0, and weights on them have no more effect: the effects
    are small, and quadrant IV, likely tokens that fail, has none."""
    return quadrant_finding(effort.times(0.5), "deterministic")


@picture("four-quadrants", caption="Mean entropy of a run minus GRPO's; ±2 standard errors.")
def draw_quadrants(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    where = np.arange(len(INTERVENTIONS))
    for shift, env in ((-0.2, "noisy"), (0.2, "on")):
        effects = intervened(effort, env)
        errors = [2 * standard_error(x) for x in effects.values()]
        axes.bar(where + shift, [x.mean() for x in effects.values()], 0.38, yerr=errors, capsize=2, label=env)
    axes.set_xticks(where, list(INTERVENTIONS), rotation=30, ha="right")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(ylabel="change of mean entropy (nats)")
    axes.legend()
