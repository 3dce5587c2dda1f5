"""Ratio clipping and the reuse of samples: Revisiting Entropy, figures 3, 4; STEER, figures 3a, 17; Park et al."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change
from entrostat.controller import Context
from entrostat.plan import Plan, importance_ratio

from ..instruments import at_hand, probe
from ..trajectory import Array
from .checks import above, below, every, numbers_of, rising, settle, told
from .memory import remember
from .pictures import picture
from .registry import FAILS, HOLDS, Effort, Finding, claim
from .runs import entropies, trajectory

PAPER = "Revisiting Entropy"
CLIPS: dict[str, dict[str, Any]] = {
    "Clip-Lower .28/.2": {"controller": "clip_lower"},
    "Clip-Free": {"controller": "clip_free"},
    "default .2/.2": {"controller": "grpo"},
    "Clip-Higher .2/.28": {"controller": "clip_higher"},
    "Clip-Higher .2/.5": {"controller": "clip_higher", "controller_args": {"eps_high": 0.5}},
    "Clip-Tighter .12/.2": {"controller": "clip_tighter"},
}
"""Choices of lower / upper clipping thresholds."""
ONE_SIDED: dict[str, dict[str, Any]] = {
    "upper bound alone": {"controller_args": {"eps_low": 1.0, "eps_high": 0.2}},
    "both": {"controller_args": {"eps_low": 0.2, "eps_high": 0.2}},
    "none": {"controller": "clip_free"},
    "lower bound alone": {"controller_args": {"eps_low": 0.2, "eps_high": 1e6}},
    "lower bound at .95, upper at 1.2": {"controller_args": {"eps_low": 0.05, "eps_high": 0.2}},
}
PASSES = (1, 2, 4, 8)
EARLY = 20
"""Number of rollouts after which the reuse of samples is compared."""


@remember
def clipped(effort: Effort) -> dict[str, Array]:
    """Return the entropy in `noisy` with each of CLIPS, (runs, rollouts + 1)."""
    return {name: entropies(effort, env="noisy", **config) for name, config in CLIPS.items()}


@claim(
    "clip-thresholds",
    paper=PAPER,
    source="figure 3, and STEER figure 17",
    assumption="samples reused in 8 passes",
    predicted="final H: Clip-Lower < default < Clip-Higher, and higher still if wider; default < Clip-Tighter",
    expected=HOLDS,
)
def clip_thresholds(effort: Effort) -> Finding:
    """A wider upper bound lets unlikely successes grow and raises H; a wider lower bound lets unlikely failures shrink
    and lowers it."""
    final = {name: entropy[:, -1] for name, entropy in clipped(effort).items()}
    lower, _, default, higher, highest, tighter = final.values()
    check = rising(lower, default, higher, highest) & rising(default, tighter)
    measured = ", ".join(f"{name}: {told(values)}" for name, values in final.items())
    return Finding(f"final H: {measured}", numbers_of(final), *settle(check))


@claim(
    "clip-free",
    paper=PAPER,
    source="figure 3",
    assumption="samples reused in 8 passes",
    predicted="without clipping, the final H is above that of every clipping but Clip-Higher",
    expected=FAILS,
)
def clip_free(effort: Effort) -> Finding:
    """Without a lower bound, unlikely failures go to zero probability, which costs the entropy that the missing upper
    bound brings; a tighter lower bound keeps by far the most entropy."""
    names = ("Clip-Free", "default .2/.2", "Clip-Tighter .12/.2")
    final = {name: clipped(effort)[name][:, -1] for name in names}
    free, *others = final.values()
    measured = ", ".join(f"{name}: {told(values)}" for name, values in final.items())
    return Finding(f"final H: {measured}", numbers_of(final), *settle(every(rising(other, free) for other in others)))


@claim(
    "clip-random-rewards",
    paper="Park et al.",
    source="Clip-Low Increases Entropy and Clip-High Decreases Entropy, abstract",
    assumption="rewards drawn alike for every arm (pure), samples reused in 8 passes, bounds .8 and 1.2",
    predicted="the upper bound lowers the entropy, the lower bound raises it; with both it falls, and with a tight "
    "lower bound it rises",
    expected=HOLDS,
)
def clip_random_rewards(effort: Effort) -> Finding:
    """If nothing can be learnt, the bounds decide the entropy: the upper bound keeps unlikely arms from growing back,
    the lower bound keeps them from being lost."""
    found = {
        name: entropies(effort, env="pure", **{"controller": "ppo", **config}) for name, config in ONE_SIDED.items()
    }
    change = {name: entropy[:, -1] - entropy[:, 0] for name, entropy in found.items()}
    upper, both, none, lower, tight = change.values()
    measured = ", ".join(f"{name} {told(values)}" for name, values in change.items())
    check = rising(upper, both, none, lower) & below(both) & above(tight)
    return Finding(f"ΔH with {measured}", numbers_of(change), *settle(check))


@picture("clip-thresholds", caption="Entropy in NOISY under each choice of clipping thresholds (lower/upper).")
def draw_clips(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    for name, entropy in clipped(effort).items():
        axes.plot(entropy.mean(0), label=name)
    axes.set(xlabel="rollout", ylabel="mean entropy (nats)", ylim=(0, None))
    axes.legend()


def stops(plan: Plan, context: Context) -> Mapping[str, Tensor]:
    """Return statistics of clipped and of positive tokens: sums over the mini-batch, (...,) each."""
    t = context.tokens
    logp, old_logp, positive = t.get("logp"), t.get("old_logp"), t.advantage > 0
    weight = t.advantage * importance_ratio(logp, old_logp)
    flow = entropy_change.exact(logp, t.get("entropy"), t.get("s2"), t.get("s2l"), weight)
    stopped = plan.clipped(logp)
    info = {}
    for name, mask in {"high": stopped & positive, "low": stopped & ~positive, "positive": positive}.items():
        info[f"{name} tokens"] = mask.sum(-1)
        info[f"{name} probability"] = (mask * old_logp.exp()).sum(-1)
        info[f"{name} flow"] = (mask * flow).sum(-1)
        info[f"{name} lowering"] = (mask & (flow < 0)).sum(-1)
    return info


ClipProbe = probe(stops, "logp", "old_logp", "entropy", "s2", "s2l")
"""Controller that changes nothing and records the tokens that clipping stops."""


@claim(
    "clip-mechanism",
    paper="STEER",
    source="section 4, figure 3a",
    assumption="GRPO, clip .2/.2, samples reused in 8 passes; first 20 rollouts",
    predicted="the upper bound stops unlikely tokens that would raise H, the lower bound unlikely tokens that would "
    "lower it",
    expected=HOLDS,
)
def clip_mechanism(effort: Effort) -> Finding:
    """Both bounds stop unlikely tokens; tokens stopped at the upper bound would have raised the entropy, tokens stopped
    at the lower bound would have lowered it."""
    with at_hand(clip_probe=ClipProbe):
        found = trajectory(effort, env="noisy", controller="clip_probe", rollouts=EARLY).metrics
    total = {name: values.sum(-1) for name, values in found.items()}
    groups = ("high", "low", "positive")
    likely = {name: total[f"{name} probability"] / total[f"{name} tokens"] for name in groups}
    lowering = {name: total[f"{name} lowering"] / total[f"{name} tokens"] for name in groups[:2]}
    flow = {name: total[f"{name} flow"] / total[f"{name} tokens"] for name in groups[:2]}
    check = rising(likely["high"], likely["positive"]) & above(flow["high"]) & below(flow["low"])
    return Finding(
        f"mean π_old: stopped at the upper bound {told(likely['high'])}, at the lower {told(likely['low'])}, all "
        f"positives {told(likely['positive'])}; mean flow of tokens stopped at the upper bound {told(flow['high'])}, "
        f"at the lower {told(flow['low'])}; {1 - lowering['high'].mean():.0%} of the first would raise H, "
        f"{lowering['low'].mean():.0%} of the second would lower it",
        numbers_of(
            {f"mean π_old, {name}": values for name, values in likely.items()}
            | {f"mean flow, {name}": values for name, values in flow.items()}
            | {f"share that lowers H, {name}": values for name, values in lowering.items()}
        ),
        *settle(check),
    )


@remember
def reuse(effort: Effort) -> dict[int, Array]:
    """Return the entropy in `noisy` with each number of passes, (runs, EARLY + 1)."""
    return {passes: entropies(effort.times(4), env="noisy", passes=passes, rollouts=EARLY) for passes in PASSES}


@claim(
    "off-policy-updates",
    paper=PAPER,
    source="section 6.2, figure 4",
    assumption="early in training",
    predicted="more updates on the samples of a rollout make the entropy fall faster",
    expected=HOLDS,
)
def off_policy_updates(effort: Effort) -> Finding:
    """More passes are more steps, so early in training the entropy falls further, by less with each further pass."""
    change = {f"M = {passes}": entropy[:, -1] - entropy[:, 0] for passes, entropy in reuse(effort).items()}
    check = rising(*reversed(change.values()))
    measured = ", ".join(f"{name}: {told(values)}" for name, values in change.items())
    return Finding(f"ΔH after {EARLY} rollouts: {measured}", numbers_of(change), *settle(check))
