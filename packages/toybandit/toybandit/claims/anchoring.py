"""A bonus that should keep the entropy of the most uncertain tokens at its initial value: SIREN."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from entrostat.controllers.siren import Siren

from ..trajectory import Array, Trajectory
from .checks import Check, below, between, every, numbers_of, settle, told
from .counts import count
from .feedback import late
from .live_case import Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, scaled
from .pictures import picture
from .registry import Effort, Finding, claim, holds_if
from .runs import trajectory

PAPER = "SIREN"
PUBLISHED, STRONG = 0.005, 5.0
"""Values of β."""
TOP_P = 0.8
NEAR = 0.1
"""Largest distance from the anchor that counts as none, nats."""
ENVS = "noisy", "on"
ALL = 1.0
"""Value of top_p at which every action counts."""
TRIED = {f"β = {beta:g}, top_p = {p:g}": (beta, p) for beta, p in ((PUBLISHED, TOP_P), (STRONG, TOP_P), (STRONG, ALL))}
STRONGER = "β is a thousand times as large, and every action counts"


def anchored(effort: Effort, env: str, beta: float, top_p: float, **config: Any) -> Trajectory:
    """Simulate runs under the rule. The quantile is the mini-batch's, since responses have only one token."""
    args = {"beta": beta, "top_p": top_p, "per_response": False}
    return trajectory(effort, env=env, controller="siren", controller_args=args, **config)


@remember
def tried(effort: Effort, env: str, name: str) -> Trajectory:
    """Simulate runs with one of TRIED."""
    return anchored(effort, env, *TRIED[name])


def drift(run: Trajectory) -> Array:
    """Return H̄ of each rollout minus H̄ of the first, (runs, rollouts), nats."""
    mean = run.metrics["siren/entropy"] / run.metrics["siren/updates"]
    found: Array = mean - mean[:, :1]
    return found


def lost(run: Trajectory) -> NDArray[np.bool_]:
    """Return True for each run whose H̄ is below half its anchor at the end, (runs,)."""
    mean = run.metrics["siren/entropy"] / run.metrics["siren/updates"]
    found: NDArray[np.bool_] = mean[:, -1] < mean[:, 0] / 2
    return found


def told_runs(effort: Effort, env: str, name: str) -> str:
    """Return the late H̄ − anchor of the runs that are not lost, and the number of those that are, as text."""
    run = tried(effort, env, name)
    gone, error = lost(run), late(drift(run))
    if not gone.any():
        return told(error)
    kept = error[~gone]
    return f"{count(gone)} lost" + (f", {told(kept)} in the others" if len(kept) > 1 else "")


def near_the_anchor(effort: Effort, name: str) -> tuple[Check, dict[str, Array]]:
    """Check that H̄ is at the anchor late in the runs of all ENVS with one of TRIED; also return the distances."""
    errors = {env: late(drift(tried(effort, env, name))) for env in ENVS}
    return every(between(error, -NEAR, NEAR) for error in errors.values()), errors


@claim(
    "siren-anchor",
    paper=PAPER,
    source="section on self-anchored regularization",
    assumption=f"noisy, and strictly on-policy (on); β = {PUBLISHED:g}, the most uncertain fifth, top_p = {TOP_P:g}",
    words="the bonus keeps the mean entropy of the tokens that it acts on at its initial value",
    statement=(
        r"\mathcal{L} + \beta\,(\bar H - \bar H_0)^2 \ \Rightarrow\ \bar H \to \bar H_0,",
        r"\bar H: \text{ the most uncertain fifth of the tokens}",
    ),
    threshold=f"a mean within {NEAR} nats of the anchor late in the runs, in both environments; the null is outside",
    null="no bonus, β = 0",
    expected=holds_if(STRONGER),
    mutations=(
        Mutation("the bonus were off", Swap(Siren, "transform", scaled("beta", 0.0))),
        Mutation("β were the paper's", Swap(Siren, "transform", scaled("beta", PUBLISHED / STRONG))),
    ),
    live=Live(
        "anchor",
        turned={"log_beta": -2.3},
        conditions=(
            equals("env", "noisy", "on"),
            within("log_beta", low=0.0, stated=False),
            within("top_p", low=1.0, stated=False),
        ),
    ),
)
def siren_anchor(effort: Effort) -> Finding:
    """The squared distance from the anchor makes the bonus P control with a gain of 2β: the entropy settles where the
    bonus balances the pull of training, far below the anchor. A large β stays near the anchor and costs reward. If only
    the top-p actions count, the entropy still slips away, strictly on-policy to 0, one run after another: an action
    that leaves the set gets no bonus to come back."""
    checks = {name: near_the_anchor(effort, name) for name in TRIED}
    published, _, strong = (check for check, _ in checks.values())
    none = {env: late(drift(anchored(effort, env, 0.0, ALL))) for env in ENVS}
    apart = every(below(values, -NEAR) for values in none.values())
    errors = {f"{name}, {env}": error for name, (_, found) in checks.items() for env, error in found.items()}
    reward = {f"reward, {name}": tried(effort, "noisy", name).reward[:, -1] for name in TRIED}
    measured = ", ".join(f"{name}, {env}: {told_runs(effort, env, name)}" for name in TRIED for env in ENVS)
    paid = ", ".join(f"{values.mean():.3f}" for values in reward.values())
    return Finding(
        f"H̄ − anchor, {measured}; final reward in noisy {paid}",
        numbers_of(errors | reward),
        *settle(published & apart, STRONGER, strong & apart),
        null="H̄ − anchor, " + ", ".join(f"{env} {told(values)}" for env, values in none.items()),
    )


@picture("siren-anchor", caption="Mean entropy of the tokens with SIREN's bonus, minus its anchor, by β and top_p.")
def draw_anchored(figure: Figure, effort: Effort) -> None:
    for axes, env in zip(figure.subplots(1, 2, sharey=True), ENVS, strict=True):
        for name in TRIED:
            axes.plot(np.mean(drift(tried(effort, env, name)), 0), label=name)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=env, xlabel="rollout")
    figure.axes[0].set_ylabel("H̄ − H̄₀ (nats)")
    figure.axes[0].legend()
