"""Runs that SIREN's bonus loses: counted, since a run's entropy is near its anchor or near 0, seldom in between."""

from matplotlib.figure import Figure

from entrostat.controllers.siren import Siren

from ..trajectory import Trajectory
from .anchoring import ALL, ENVS, NEAR, PAPER, STRONG, TOP_P, anchored, drift, lost
from .checks import Check, between, every, settle
from .counts import count
from .feedback import late
from .live_case import Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always, scaled
from .pictures import picture
from .registry import Effort, Finding, claim, holds_if

ROLLOUTS = 300
NONE = 0.0
"""β without a bonus."""
TRIED = {"no bonus": (NONE, TOP_P), f"top_p = {TOP_P:g}": (STRONG, TOP_P), f"top_p = {ALL:g}": (STRONG, ALL)}
"""Values of (β, top_p)."""
EVERY = "every action counts"


@remember
def long_runs(effort: Effort, env: str, name: str) -> Trajectory:
    """Simulate runs with one of TRIED, as long at every effort: runs are lost late."""
    return anchored(effort, env, *TRIED[name], rollouts=ROLLOUTS)


@claim(
    "siren-collapse",
    paper=PAPER,
    source="section on self-anchored regularization; the count is ours",
    assumption=f"noisy, and strictly on-policy (on); β = {STRONG:g}, top_p = {TOP_P:g}, {ROLLOUTS} rollouts",
    words="the bonus, anchored at the initial entropy, prevents the collapse of the entropy",
    statement=r"\mathcal{L} + \beta\,(\bar H - \bar H_0)^2 \ \Rightarrow\ \bar H_T > \tfrac12 \bar H_0 \ "
    r"\text{ in every run}",
    threshold="no run ends below half its anchor, where it is plainly lost, and under the condition every mean is "
    f"within {NEAR} nats of it; the null loses runs",
    null="no bonus, β = 0",
    expected=holds_if(EVERY),
    mutations=(
        Mutation("every action counted", Swap(TRIED, f"top_p = {TOP_P:g}", always((STRONG, ALL)))),
        Mutation("the bonus were off", Swap(Siren, "transform", scaled("beta", 0.0))),
    ),
    live=Live(
        "anchor",
        values={"env": "on", "rollouts": 300},
        turned={"top_p": 0.8},
        conditions=(equals("env", "noisy", "on"), within("rollouts", low=300), within("top_p", low=1.0, stated=False)),
    ),
)
def siren_collapse(effort: Effort) -> Finding:
    """A bonus a thousand times the published one still loses runs if only the likely actions count: strictly on-policy
    nearly all of them, as without a bonus, each at a time of its own. A mean over runs would describe none of them."""
    gone = {(name, env): count(lost(long_runs(effort, env, name))) for name in TRIED for env in ENVS}
    of = {name: [gone[name, env] for env in ENVS] for name in TRIED}
    none, stated, condition = of.values()
    near = every(
        between(late(drift(long_runs(effort, env, f"top_p = {ALL:g}"))), -NEAR, NEAR) & Check(not each.some)
        for env, each in zip(ENVS, condition, strict=True)
    )
    none_lost = Check(not any(each.some for each in stated), min(each.doubt for each in stated))
    told = "; ".join(f"{name}: " + ", ".join(f"{env} {gone[name, env]}" for env in ENVS) for name in list(TRIED)[1:])
    return Finding(
        f"below half the anchor, {told}",
        {f"runs lost, {name}, {env}": float(each.some) for (name, env), each in gone.items()}
        | {"runs": float(stated[0].total)},
        *settle(none_lost, EVERY, near & Check(any(each.some for each in none))),
        null=", ".join(f"{env} {each}" for env, each in zip(ENVS, none, strict=True)),
    )


@picture("siren-collapse", caption="Runs below half their anchor, by rollout, with 95% intervals: β = 5.")
def draw_lost(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    for env in ENVS:
        run = long_runs(effort, env, f"top_p = {TOP_P:g}")
        mean = run.metrics["siren/entropy"] / run.metrics["siren/updates"]
        counts = [count(column) for column in (mean < mean[:, :1] / 2).T]
        low, high = zip(*(each.interval for each in counts), strict=True)
        axes.plot([each.some / each.total for each in counts], label=f"{env}, top_p = {TOP_P:g}")
        axes.fill_between(range(len(counts)), low, high, alpha=0.2)
    axes.set(xlabel="rollout", ylabel="share of runs", ylim=(0, 1))
    axes.legend()
