"""Clip bounds that move to balance successes and failures: BAPO."""

from typing import Any

import torch
from matplotlib.figure import Figure

from entrostat import Tokens, make

from ..trajectory import Array
from .checks import above, numbers_of, rising, settle, told
from .ensembles import random_vector
from .live_case import NOISY, REUSED, Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, constant
from .pictures import panels, picture
from .registry import Effort, Finding, claim, holds_if, judge
from .runs import trajectory

PAPER = "BAPO"
TOKENS = 64
LOWS, HIGHS = (0.6, 0.7, 0.8, 0.9), (1.2, 1.8, 2.4, 3.0)
"""Lower and upper clip bounds within the paper's ranges."""
MORE = 0.55
"""Requested share above the actual share in `noisy`."""
CONTROLLERS: dict[str, dict[str, Any]] = {
    "clip .2/.2": {"controller": "grpo"},
    "BAPO": {"controller": "bapo"},
    f"BAPO, ρ = {MORE}": {"controller": "bapo", "controller_args": {"share": MORE}},
}


def random_tokens(instances: int, spread: float, name: str) -> Tokens:
    """Return mini-batches of tokens with ratios other than 1: log-ratios are uniform within ±`spread`."""
    old_logp = -random_vector(instances, TOKENS, f"{name} old").abs() - spread  # log π stays below 0
    logp = old_logp + spread * random_vector(instances, TOKENS, f"{name} ratio")
    advantage = random_vector(instances, TOKENS, f"{name} advantage")
    return Tokens(logp=logp, old_logp=old_logp, advantage=advantage)


def share_at(tokens: Tokens, low: float, high: float) -> torch.Tensor:
    """Return the share of the loss from tokens with A > 0, under fixed bounds, (instances,)."""
    return make("bapo", low=low, low_max=low, high=high, high_max=high).plan(tokens).info["bapo/share"]


@claim(
    "bapo-bounds",
    paper=PAPER,
    source="section 4, condition of the share and algorithm 1",
    words="the share of the loss from tokens with A > 0 is brought up to the requested one by raising the bounds",
    statement=(
        r"\rho = \frac{\sum_{A > 0} \pi_{\mathrm{old}}\, |\operatorname{clip}(r)\, A|}"
        r"{\sum \pi_{\mathrm{old}}\, |\operatorname{clip}(r)\, A|},",
        r"\frac{\partial \rho}{\partial c_{\mathrm{high}}},\ \frac{\partial \rho}{\partial c_{\mathrm{low}}} \ge 0",
    ),
    assumption="any mini-batch with ratios other than 1",
    threshold="no step of a bound lowers the share in any of the mini-batches, and some raise it: a search that only "
    "raises bounds needs that",
    null="bounds without effect, every step 0",
    expected=holds_if("the bound is the upper one"),
    mutations=(
        Mutation("no bound had an effect", Swap(__name__, "share_at", constant(torch.zeros(TOKENS)))),
        Mutation(
            "it were the share of tokens with A < 0", Swap(__name__, "share_at", lambda f: lambda *at: 1 - f(*at))
        ),
        Mutation(
            "the bounds were swapped",
            Swap(__name__, "share_at", lambda f: lambda at, low, high: f(at, 1 / high, 1 / low)),
        ),
    ),
    live=Live("share", turned={"bound": "lower"}, conditions=(equals("bound", "upper", stated=False),)),
)
def bapo_bounds(effort: Effort) -> Finding:
    """A clipped token counts with its bound. The upper bound limits the weight of successes, and limits it less as it
    rises; the lower bound is the least weight of unlikely failures, which count more as it rises."""
    tokens = random_tokens(effort.instances, 0.5, "bapo")
    steps = {
        "upper": torch.stack([share_at(tokens, LOWS[0], high) for high in HIGHS]).diff(dim=0),
        "lower": torch.stack([share_at(tokens, low, HIGHS[-1]) for low in LOWS]).diff(dim=0),
    }
    upper, lower = (bool((step >= 0).all() and (step > 0).any()) for step in steps.values())
    numbers = {
        f"{end} change of the share, {name} bound": float(getattr(step, end)())
        for name, step in steps.items()
        for end in ("min", "max")
    }
    measured = "; ".join(f"{name} bound {float(x.min()):+.3f} to {float(x.max()):+.3f}" for name, x in steps.items())
    return Finding(
        f"change of the share by a step: {measured}",
        numbers,
        judge(upper and lower, "the bound is the upper one", upper),
        null="change of the share 0",
    )


@remember
def balanced(effort: Effort) -> dict[str, Any]:
    """Return the runs in `noisy` of each of CONTROLLERS."""
    return {name: trajectory(effort, env="noisy", **config) for name, config in CONTROLLERS.items()}


def entropy_of(effort: Effort) -> dict[str, Array]:
    return {name: run.entropy for name, run in balanced(effort).items()}


@claim(
    "bapo-entropy",
    paper=PAPER,
    source="section 5, figure 8",
    words="bounds that adapt to the share of successes keep the entropy higher than a fixed clip does",
    statement=r"H_{\mathrm{end}}(\mathrm{BAPO}) > H_{\mathrm{end}}(0.8,\ 1.2)",
    assumption="noisy, samples reused in 8 passes, published values",
    threshold="a higher final entropy than the null in paired runs; under the condition, also a request above "
    "the actual share",
    null="a fixed clip at .8 and 1.2",
    expected=holds_if("the requested share is above the actual one"),
    mutations=(
        Mutation(
            "the bounds did not move",
            Swap("entrostat.controllers.bapo", "_bounds", lambda f: lambda low, high, *rest: f(low, low, *rest)),
        ),
    ),
    live=Live(
        "bapo",
        turned={"share": 0.4},
        conditions=(REUSED, NOISY, within("share", low=0.55, stated=False)),
    ),
)
def bapo_entropy(effort: Effort) -> Finding:
    """Advantages of a group sum to 0, so successes have about half of the loss, and a share of 0.4 is met from the
    start. The bounds stay at 0.6 and 1.2, which lets unlikely failures fall further than a fixed clip does."""
    runs = balanced(effort)
    share = runs["BAPO"].metrics["bapo/share"].mean(-1)
    final = {name: entropy[:, -1] for name, entropy in entropy_of(effort).items()}
    fixed, published, more = final.values()
    return Finding(
        f"final H: BAPO {told(published)}, with ρ = {MORE} {told(more)}; the actual share is "
        f"{told(share)}, the requested one 0.4",
        numbers_of({**{f"final H, {name}": values for name, values in final.items()}, "share": share}),
        *settle(
            rising(fixed, published),
            "the requested share is above the actual one",
            rising(fixed, more) & above(MORE - share),
        ),
        null=f"final H {told(fixed)}",
    )


@picture(
    "bapo-entropy", caption="Entropy in NOISY under a fixed clip and under BAPO with requested shares 0.4 and 0.55."
)
def draw_balanced(figure: Figure, effort: Effort) -> None:
    panels(figure, {"": entropy_of(effort)})
