"""Updates on samples of an older policy, weighted by the ratio of the whole sequence: VESPO."""

from collections.abc import Callable, Mapping
from copy import copy

from torch import Tensor

from entrostat.plan import Slice
from entrostat.surrogates.sequence import VESPO

from ..trajectory import Trajectory
from .checks import every, numbers_of, rising, settle, told
from .live_case import REUSED, Live, equals
from .memory import remember
from .mutations import Mutation, Swap, negated
from .registry import HOLDS, Effort, Finding, claim
from .runs import trajectory

PAPER = "VESPO"
PASSES = (8, 32)
"""Updates on one rollout."""
RUN = {"env": "episodes", "states": 8, "rollouts": 30, "lr": 2.0}
"""Size of the runs, at any effort: the null collapses within it."""
NO_DECAY = 1e-12
"""λ with which φ does not fall for any w that occurs."""
KERNELS: Mapping[str, dict[str, float]] = {
    "VESPO": {},
    "φ = w": {"k_positive": 1.0, "k_negative": 1.0, "lambda_positive": NO_DECAY, "lambda_negative": NO_DECAY},
}
"""Hyperparameters of φ = e^λ·w^k·e^(−λw)."""
Factor = Callable[[VESPO, Tensor, Slice], Tensor]


def without_decay(factor: Factor) -> Factor:
    """Return φ without its exponential, w^k."""

    def changed(self: VESPO, logp: Tensor, s: Slice) -> Tensor:
        other = copy(self)
        other.lambda_positive = other.lambda_negative = NO_DECAY
        return factor(other, logp, s)

    return changed


@remember
def stale(effort: Effort, kernel: str, passes: int) -> Trajectory:
    """Simulate responses of four tokens with that many updates on a rollout."""
    return trajectory(effort, controller="vespo", controller_args=KERNELS[kernel], passes=passes, **RUN)


@claim(
    "vespo-staleness",
    paper=PAPER,
    source="abstract (arXiv 2602.10693) and the figure of training rewards of the released code",
    words="weights by the importance ratio of the whole sequence, reshaped by a kernel that falls for large ratios, "
    "keep training stable on samples that are up to 64 updates old",
    statement=(
        r"\nabla = -\varphi(w)\, A\, \nabla \log \pi, \quad w = \textstyle\prod_t r_t,",
        r"\varphi(w) = e^{\lambda} w^k e^{-\lambda w} \ \Rightarrow\ R_{\mathrm{end}} > R_{\mathrm{half}}",
    ),
    assumption=f"episodes of four tokens, {' and '.join(map(str, PASSES))} updates on a rollout, η = 2",
    setting="language models, staleness 4 to 64, responses of thousands of tokens; there GRPO collapses too",
    threshold="the expected reward rises from half-way to the end of the runs, and ends above the null's, in paired "
    "runs, for each number of updates: the paper shows curves",
    null="importance sampling by the same ratio, φ = w",
    expected=HOLDS,
    mutations=(
        Mutation("φ did not fall for large w", Swap(VESPO, "factor", without_decay)),
        Mutation("φ had the other sign", Swap(VESPO, "factor", negated)),
    ),
    live=Live(
        "staleness",
        turned={"kernel": "φ = w"},
        conditions=(equals("kernel", "VESPO"), REUSED),
    ),
)
def vespo_staleness(effort: Effort) -> Finding:
    """The ratio of a response is a product, and a few responses with a large product take over the step: without the
    kernel the policy becomes sure before it has learnt what pays. The kernel gives those responses next to no weight.
    It keeps the reward, not the entropy, which falls further the more updates there are."""
    runs = {name: {passes: stale(effort, name, passes) for passes in PASSES} for name in KERNELS}
    end = {name: {m: run.reward[:, -1] for m, run in found.items()} for name, found in runs.items()}
    half = {m: run.reward[:, run.reward.shape[1] // 2] for m, run in runs["VESPO"].items()}
    left = {name: {m: run.entropy[:, -1] for m, run in found.items()} for name, found in runs.items()}
    check = every(rising(half[m], end["VESPO"][m]) & rising(end["φ = w"][m], end["VESPO"][m]) for m in PASSES)

    def said(name: str) -> str:
        return "; ".join(f"M = {m}: R {told(end[name][m])}, H {told(left[name][m])}" for m in PASSES)

    return Finding(
        f"{said('VESPO')}; half-way " + ", ".join(f"R {told(values)}" for values in half.values()),
        numbers_of(
            {f"R, M = {m}, {name}": end[name][m] for name in KERNELS for m in PASSES}
            | {f"H, M = {m}, {name}": left[name][m] for name in KERNELS for m in PASSES}
            | {f"R half-way, M = {m}": values for m, values in half.items()}
        ),
        *settle(check),
        null=said("φ = w"),
    )
