"""Clip bounds that are wider for unlikely tokens and move in the course of training: Flexible Entropy Control."""

from collections.abc import Callable

from matplotlib.figure import Figure

from entrostat.surrogates.flexible_clip import FlexibleClip

from ..figures import series_styles
from ..trajectory import Array
from .checks import Values, above, numbers_of, rising, settle, told
from .clipping import clipped
from .live_case import NOISY, REUSED, Live, equals
from .memory import remember
from .mutations import Mutation, Swap, constant
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, holds_if
from .runs import entropies

PAPER = "Flexible Entropy Control"
BLOG = "the first author's description (posts/2026/03/flexible-entropy) of arXiv 2602.09782; slopes from released code"
DEFAULT = "default .2/.2"
MARGIN = 0.1
"""Least distance above the null that counts as mitigation, nats: a quarter of the entropy that the null has left."""
STRATEGIES = {"increase, decrease": "id", "decrease, increase, decrease": "did"}


@remember
def flexible(effort: Effort, variant: str) -> Array:
    """Return the entropy in `noisy` with one of the rule's variants, (runs, rollouts + 1)."""
    return entropies(effort, env="noisy", controller="flexible_clip", controller_args={"variant": variant})


def exchanged(setting: Callable[[FlexibleClip, float], None]) -> Callable[[FlexibleClip, float], None]:
    """Return `_set` with the weights of the upper and of the lower bound exchanged."""

    def other_way(self: FlexibleClip, done: float) -> None:
        setting(self, done)
        self.upper, self.lower = self.lower, self.upper

    return other_way


FAULTS = (
    Mutation("the bounds were exchanged", Swap(FlexibleClip, "_set", exchanged)),
    Mutation("no bound were widened", Swap(FlexibleClip, "_set", constant(None))),
)


@claim(
    "flexible-clip-bounds",
    paper=PAPER,
    source=BLOG,
    words="a clip bound that falls with the token's probability regulates the entropy: widened above 1 for unlikely "
    "tokens it raises it, widened below 1 it lowers it",
    statement=(
        r"r \le \frac{1 + b}{1 - a\, p_{\mathrm{old}}},\ a < 0",
        r"\Rightarrow\ H_{\mathrm{end}} > H_{\mathrm{end}}(\varepsilon = 0.2)",
    ),
    assumption="noisy, samples reused in 8 passes, released slopes",
    setting="language models",
    threshold="final H with the wide lower bound < default < with the wide upper bound, in paired runs: the text ranks "
    "curves",
    null="the default bounds, .2/.2",
    expected=HOLDS,
    mutations=FAULTS,
    live=Live(
        "flexible-clip",
        turned={"passes": 1},
        conditions=(REUSED, NOISY),
    ),
)
def flexible_clip_bounds(effort: Effort) -> Finding:
    """The thresholds of Clip-Higher and Clip-Lower, with the width where it acts: on unlikely tokens, since likely ones
    seldom reach a bound."""
    final = {name: flexible(effort, name)[:, -1] for name in ("wide_lower", "wide_upper")}
    low, high = final.values()
    default = clipped(effort)[DEFAULT][:, -1]
    return Finding(
        f"final H: lower bound wide {told(low)}, upper bound wide {told(high)}",
        numbers_of(final | {DEFAULT: default}),
        *settle(rising(low, default, high)),
        null=f"final H {told(default)}",
    )


WIDE_LATE = "the upper bound is wide at the end"


def gap(effort: Effort, variant: str, at: float) -> Values:
    """Return H minus that of the default bounds after this share of the runs, (runs,)."""
    entropy, default = flexible(effort, variant), clipped(effort)[DEFAULT]
    rollout = int(at * (entropy.shape[1] - 1))
    difference: Values = entropy[:, rollout] - default[:, rollout]
    return difference


@claim(
    "flexible-clip-strategies",
    paper=PAPER,
    source=f"abstract; {BLOG}",
    words="bounds that move by a plan, increase-then-decrease or decrease-increase-decrease, mitigate the collapse of "
    "the entropy",
    statement=r"\varepsilon_{\mathrm{high}}(t),\ \varepsilon_{\mathrm{low}}(t) \ \Rightarrow\ "
    r"H_{\mathrm{end}} > H_{\mathrm{end}}(\varepsilon = 0.2) + 0.1",
    assumption="noisy, samples reused in 8 passes, released slopes; the third, an oscillation, is not included",
    setting="language models",
    threshold=f"H above the null's by at least {MARGIN:g} nats at the end of the runs, for both strategies in paired "
    "runs: a collapse that only comes later is not mitigated",
    null="the default bounds, .2/.2",
    expected=holds_if(WIDE_LATE),
    mutations=FAULTS,
    live=Live(
        "flexible-clip",
        values={"variant": "decrease, increase, decrease"},
        turned={"variant": "increase, decrease"},
        conditions=(REUSED, NOISY, equals("variant", "decrease, increase, decrease", stated=False)),
    ),
)
def flexible_clip_strategies(effort: Effort) -> Finding:
    """A phase that should increase the entropy only slows its fall. What it gains is lost again when the plan narrows
    the upper bound and widens the lower one: increase-then-decrease is above the default half-way and at its level in
    the end. The other strategy keeps the upper bound wide to the end, and its gain."""
    found = {name: {at: gap(effort, variant, at) for at in (0.5, 1.0)} for name, variant in STRATEGIES.items()}
    first, second = (above(each[1.0], MARGIN) for each in found.values())
    end = {name: flexible(effort, variant)[:, -1] for name, variant in STRATEGIES.items()}
    return Finding(
        "H − default: "
        + "; ".join(
            f"{name}: {told(each[0.5])} half-way, {told(each[1.0])} at the end" for name, each in found.items()
        ),
        numbers_of(
            {f"H − default at {at:.0%}, {name}": x for name, each in found.items() for at, x in each.items()}
            | {f"final H, {name}": x for name, x in end.items()}
        ),
        *settle(first & second, WIDE_LATE, second),
        null=f"final H {told(clipped(effort)[DEFAULT][:, -1])}",
    )


@picture("flexible-clip-strategies", caption="Entropy in NOISY under moving clip bounds and under the default.")
def draw_strategies(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    curves = {name: flexible(effort, variant) for name, variant in STRATEGIES.items()}
    curves |= {DEFAULT: clipped(effort)[DEFAULT]}
    for (name, entropy), style in zip(curves.items(), series_styles(list(curves)), strict=True):
        axes.plot(entropy.mean(0), color=style.colour, label=name)
    axes.set(xlabel="rollout", ylabel="mean entropy (nats)", ylim=(0, None))
    axes.legend()
