"""Ratio clipping and the reuse of samples: Revisiting Entropy, figures 3, 4; STEER, figures 3a, 17; Park et al."""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change
from entrostat.controller import Context
from entrostat.numbers.draws import salt, uniform
from entrostat.plan import Plan, importance_ratio
from entrostat.surrogates.ratio_clip import PPO

from ..environments import ENVIRONMENTS
from ..instruments import at_hand, probe
from ..trajectory import Array
from .checks import Check, above, below, every, numbers_of, rising, settle, told
from .live_case import NOISY, OFTEN_REUSED, REUSED, Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always, constant, negated
from .pictures import panels, picture
from .registry import FAILS, HOLDS, Effort, Finding, claim
from .runs import entropies, trajectory

PAPER = "Revisiting Entropy"
RATE = float(np.max(ENVIRONMENTS["noisy"].lr))
"""Learning rate of `noisy`."""
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


def exchanged(bounds: Callable[[PPO], tuple[Any, Any, Any]]) -> Callable[[PPO], tuple[Any, Any, Any]]:
    """Return the ratio bounds with the widths below and above 1 exchanged."""

    def other_way(self: PPO) -> tuple[Any, Any, Any]:
        low, high, dual = bounds(self)
        return 2 - high, 2 - low, dual

    return other_way


def drawn(logp: Tensor) -> Tensor:
    """Return a uniform number for each token, the same ones at each call, (N,)."""
    return uniform(salt("stopped at random"), torch.arange(logp.shape[-1]))


@remember
def clipped(effort: Effort) -> dict[str, Array]:
    """Return the entropy in `noisy` with each of CLIPS, (runs, rollouts + 1)."""
    return {name: entropies(effort, env="noisy", **config) for name, config in CLIPS.items()}


@claim(
    "clip-thresholds",
    paper=PAPER,
    source="section 6.1, figure 3, and STEER figure 17",
    words="Clip-Lower has the most pronounced collapse of the entropy, Clip-Tighter keeps more than the default, and "
    "so does Clip-Higher. Asked is their order alone; clip-higher asks whether the entropy rises",
    statement=r"\frac{\partial H_{\mathrm{end}}}{\partial \varepsilon_{\mathrm{high}}} > 0, \qquad "
    r"\frac{\partial H_{\mathrm{end}}}{\partial \varepsilon_{\mathrm{low}}} < 0",
    assumption="noisy, samples reused in 8 passes",
    setting="Qwen2.5-Math-7B, the same thresholds of .28, .2 and .12; the wider .5 is ours",
    threshold="final H of Clip-Lower < default < Clip-Higher < its wider form, default < Clip-Tighter, each in paired "
    "runs: the paper ranks curves and gives no numbers",
    null="samples used once: the bounds then act on no token, and all must be equal",
    expected=HOLDS,
    mutations=(
        Mutation("the bounds were exchanged", Swap(PPO, "ratio_bounds", exchanged)),
        Mutation("nothing were clipped", Swap(PPO, "ratio_bounds", constant((0.0, inf, inf)))),
        Mutation("samples were used once", Swap(__name__, "entropies", lambda f: partial(f, passes=1))),
    ),
    live=Live(
        "clipping",
        turned={"passes": 1},
        conditions=(OFTEN_REUSED, NOISY),
    ),
)
def clip_thresholds(effort: Effort) -> Finding:
    """A wider upper bound lets unlikely successes grow and leaves more entropy; a wider lower bound lets unlikely
    failures shrink and leaves less. The entropy falls under each of them, from 1.64 nats, under Clip-Higher too."""
    start = next(iter(clipped(effort).values()))[:, 0]
    final = {name: entropy[:, -1] for name, entropy in clipped(effort).items()}
    lower, _, default, higher, highest, tighter = final.values()
    once = [entropies(effort, env="on", rollouts=EARLY, **config)[:, -1] for config in CLIPS.values()]
    gap = float(np.abs(np.subtract(once, once[0])).max())
    check = rising(lower, default, higher, highest) & rising(default, tighter) & Check(gap == 0)
    measured = ", ".join(f"{name}: {told(values)}" for name, values in final.items())
    return Finding(
        f"final H, from {told(start)}: {measured}",
        numbers_of({"initial H": start, **final}) | {"largest difference, samples used once": gap},
        *settle(check),
        null=f"largest difference of final H after {EARLY} rollouts {gap:.0e}",
    )


BOUNDLESS = {name: CLIPS[name] for name in ("Clip-Free", "default .2/.2", "Clip-Tighter .12/.2")}
"""Clip-Free, and what it is compared with."""
FEW = 2
"""Number of updates on a rollout that counts as few."""


@remember
def boundless(effort: Effort, passes: int) -> dict[str, Array]:
    """Return the final entropy in `noisy` with each of BOUNDLESS, (runs,)."""
    found = {name: entropies(effort, env="noisy", passes=passes, **config) for name, config in BOUNDLESS.items()}
    return {name: entropy[:, -1] for name, entropy in found.items()}


@claim(
    "clip-free",
    paper=PAPER,
    source="section 6.1, figure 3",
    words="without clipping the entropy is the highest of all, except for Clip-Higher",
    statement=(
        r"H_{\mathrm{end}}(\varepsilon = \infty) > H_{\mathrm{end}}(\varepsilon)",
        r"\text{for the default and the tighter } \varepsilon",
    ),
    assumption=f"noisy, samples reused in {FEW} passes, as few as in the paper",
    setting="Qwen2.5-Math-7B with few updates on a rollout, each on samples of its own",
    threshold="final H above that of the default and of Clip-Tighter, in paired runs",
    null="the default bounds",
    expected=FAILS,
    mutations=(
        Mutation(
            "it kept the lower bound, at .05",
            Swap(
                BOUNDLESS,
                "Clip-Free",
                always({"controller": "ppo", "controller_args": {"eps_low": 0.05, "eps_high": 1e6}}),
            ),
        ),
    ),
    live=Live(
        "clipping",
        values={"bound": "both"},
        turned={"bound": "upper"},
        conditions=(OFTEN_REUSED, NOISY),
    ),
)
def clip_free(effort: Effort) -> Finding:
    """With two passes the default bounds stop so few tokens that leaving them out makes no difference. With eight it
    costs entropy: without a lower bound, unlikely failures go to zero probability, which outweighs the missing upper
    bound. A tighter lower bound keeps more entropy at either number."""
    final, often = boundless(effort, FEW), boundless(effort, PASSES[-1])
    free, *others = final.values()
    measured, more = (", ".join(f"{name}: {told(x)}" for name, x in each.items()) for each in (final, often))
    return Finding(
        f"final H: {measured}; with {PASSES[-1]} passes {more}",
        numbers_of(final | {f"{name}, {PASSES[-1]} passes": x for name, x in often.items()}),
        *settle(every(rising(other, free) for other in others)),
        null=f"final H {told(others[0])}",
    )


@claim(
    "clip-random-rewards",
    paper="Park et al.",
    source="Clip-Low Increases Entropy and Clip-High Decreases Entropy, abstract",
    words="even with random rewards, the upper bound lowers the entropy and the lower bound raises it; with symmetric "
    "bounds it falls, and with a tighter lower bound it can rise",
    statement=(
        r"R \perp a \ \Rightarrow",
        r"H_{\mathrm{end}}(1 + \varepsilon) < H_{\mathrm{end}} < H_{\mathrm{end}}(1 - \varepsilon)",
    ),
    assumption="rewards drawn alike for every arm (pure), samples reused in 8 passes, bounds .8 and 1.2",
    setting="language models with random rewards",
    threshold="ΔH of upper bound alone < both < none < lower bound alone, ΔH < 0 with both and > 0 with a lower bound "
    "of .95, in paired runs: the paper states signs",
    null="no bounds",
    expected=HOLDS,
    mutations=(
        Mutation("the bounds were exchanged", Swap(PPO, "ratio_bounds", exchanged)),
        Mutation("nothing were clipped", Swap(PPO, "ratio_bounds", constant((0.0, inf, inf)))),
    ),
    live=Live(
        "clipping",
        values={"bound": "lower", "env": "pure"},
        turned={"passes": 1},
        conditions=(OFTEN_REUSED, equals("env", "pure")),
    ),
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
    return Finding(f"ΔH with {measured}", numbers_of(change), *settle(check), null=f"ΔH {told(none)}")


@picture("clip-thresholds", caption="Entropy in NOISY under each choice of clipping thresholds (lower/upper).")
def draw_clips(figure: Figure, effort: Effort) -> None:
    panels(figure, {"": clipped(effort)})


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
    words="clipping stops mostly unlikely tokens: those at the upper bound would have raised the entropy, those at the "
    "lower bound would have lowered it",
    statement=(r"r > 1 + \varepsilon,\ A > 0: \quad \Delta H > 0,", r"r < 1 - \varepsilon,\ A < 0: \quad \Delta H < 0"),
    assumption="GRPO, clip .2/.2, samples reused in 8 passes; first 20 rollouts",
    setting="the first 10 steps of GRPO on a language model",
    threshold="mean π_old of tokens stopped at the upper bound below that of all positives; their mean exact flow "
    "above 0, and that of tokens stopped at the lower bound below 0: the paper shows counts",
    null="all tokens with A > 0",
    expected=HOLDS,
    mutations=(
        Mutation("flows had the other sign", Swap(entropy_change, "exact", negated)),
        Mutation(
            "bounds stopped tokens at random",
            Swap(Plan, "clipped", lambda f: lambda self, logp: drawn(logp) < f(self, logp).double().mean()),
        ),
    ),
    live=Live(
        "clip-mechanism",
        turned={"passes": 1},
        conditions=(REUSED, within("std", low=1.5)),
    ),
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
        null=f"all positives: mean π_old {told(likely['positive'])}",
    )


@remember
def reuse(effort: Effort) -> dict[str, Array]:
    """Return ΔH in `noisy` after EARLY rollouts with each number of passes M, with 1/M of the step too, (runs,)."""

    def change(passes: int, lr: float) -> Array:
        entropy = entropies(effort.times(4), env="noisy", passes=passes, lr=lr, rollouts=EARLY)
        return entropy[:, -1] - entropy[:, 0]

    found = {f"M = {passes}": change(passes, RATE) for passes in PASSES}
    return found | {f"M = {passes}, η/{passes}": change(passes, RATE / passes) for passes in PASSES[1:]}


@claim(
    "off-policy-updates",
    paper=PAPER,
    source="section 6.2, figure 4",
    words="more updates on a rollout amplify the change of the entropy: under the default clipping, where it falls, it "
    "falls faster; off-policy-rising has the other half, where it rises",
    statement=r"M_1 < M_2 \ \Rightarrow\ \Delta H(M_2) < \Delta H(M_1) < 0",
    assumption="noisy, early in training: 20 rollouts",
    setting="Qwen2.5-Math-7B, .2/.2, mini-batches of one batch instead of passes over all of it",
    threshold="ΔH falls with each M in paired runs: the paper ranks curves. It falls less than in proportion to M, and "
    "the null says how much of it is the number of steps alone",
    null="M passes with a learning rate of 1/M: as long a way with more updates; must fall less than M whole steps",
    expected=HOLDS,
    mutations=(
        Mutation(
            "later passes did not move the policy",
            Swap(__name__, "entropies", lambda f: lambda effort, **config: f(effort, **{**config, "passes": 1})),
        ),
        Mutation(
            "the whole way stayed the same",
            Swap(
                __name__,
                "entropies",
                lambda f: lambda effort, **config: f(effort, **{**config, "lr": RATE / config["passes"]}),
            ),
        ),
    ),
    live=Live(
        "reuse",
        turned={"lr": 4.0},
        conditions=(within("rollouts", high=20), within("lr", high=1)),
    ),
)
def off_policy_updates(effort: Effort) -> Finding:
    """More passes are more steps, so early in training the entropy falls further, by less with each further pass. With
    the same whole way, more passes change little: it is the steps, not the age of the samples."""
    found = reuse(effort)
    whole = {name: found[name] for name in found if "η" not in name}
    parts = {name: found[name] for name in found if "η" in name}
    check = rising(*reversed(whole.values()))
    check &= every(rising(whole[name.split(",")[0]], values) for name, values in parts.items())
    return Finding(
        f"ΔH after {EARLY} rollouts: " + ", ".join(f"{name}: {told(values)}" for name, values in whole.items()),
        numbers_of(found),
        *settle(check),
        null="ΔH " + ", ".join(f"{name}: {told(values)}" for name, values in parts.items()),
    )
