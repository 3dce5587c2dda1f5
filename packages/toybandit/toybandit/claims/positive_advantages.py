"""Sign of the advantage that drives the entropy: Revisiting Entropy, sections 7.1 and 7.2."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change
from entrostat.controller import Context
from entrostat.plan import Plan, importance_ratio
from entrostat.surrogates.ratio_clip import PPO

from ..instruments import at_hand, probe
from ..trajectory import Trajectory
from .checks import Values, above, below, numbers_of, settle, told
from .holding import EQUATIONS_3_AND_4
from .live_case import Live, within
from .memory import remember
from .mutations import Mutation, Swap, constant, negated
from .pictures import picture
from .registry import Effort, Finding, claim, holds_if
from .runs import trajectory

PAPER = "Revisiting Entropy"
SETTINGS: dict[str, dict[str, Any]] = {
    "on-policy": {"env": "on"},
    "reused": {"env": "noisy"},
    "reused, no clip": {"env": "noisy", "controller": "clip_free"},
}
"""Runs whose tokens are divided by the sign of their advantage."""


def by_sign(plan: Plan, context: Context) -> Mapping[str, Tensor]:
    """Return the summed exact flows of the tokens with A > 0 and with A < 0 that are not clipped, (...,) each."""
    t = context.tokens
    logp, old_logp, positive = t.get("logp"), t.get("old_logp"), t.advantage > 0
    weight = (t.advantage * importance_ratio(logp, old_logp)).masked_fill(plan.clipped(logp), 0.0)
    flow = entropy_change.exact(logp, t.get("entropy"), t.get("s2"), t.get("s2l"), weight) / positive.shape[-1]
    return {"positive flow": (flow * positive).sum(-1), "negative flow": (flow * ~positive).sum(-1)}


SignProbe = probe(by_sign, "logp", "old_logp", "entropy", "s2", "s2l")
"""Controller that changes nothing and records the flows of either sign."""


@remember
def observed(effort: Effort, name: str) -> Trajectory:
    """Simulate one of SETTINGS with the flows recorded."""
    config = {"controller": "grpo", **SETTINGS[name]}
    with at_hand(sign_probe=SignProbe):
        return trajectory(effort, **config | {"controller": f"{config['controller']}+sign_probe"})


def flows(effort: Effort, name: str) -> tuple[Values, Values]:
    """Return the entropy flow over a run of one of SETTINGS by tokens with A > 0 and with A < 0, (runs,) each."""
    metrics = observed(effort, name).metrics
    positive, negative = (metrics[f"{sign} flow"].sum(-1) for sign in ("positive", "negative"))
    return positive, negative


CLIPPED = "samples are reused under a ratio clip"


@claim(
    "positive-advantages",
    paper=PAPER,
    source="sections 7.1 and 7.2, equations 3 and 4, figure 5",
    words="tokens with positive advantages are the primary drivers of the collapse of the entropy; those with negative "
    "advantages alleviate it",
    statement=r"\textstyle\sum_{A_i > 0} \Delta H_i < 0 < \sum_{A_i < 0} \Delta H_i",
    assumption="strictly on-policy (on), as in the paper's derivation",
    theorem=EQUATIONS_3_AND_4,
    setting="Qwen2.5-Math-7B, 4 updates on a rollout; its experiment trains on one sign alone (here: cor4.1-signs)",
    threshold="over a run the exact flows of tokens with A > 0 sum to less than 0, and those with A < 0 to more than "
    "0: the paper states signs",
    null="either sign has its share of one expected step, 1 − ρ for A > 0 and ρ for A < 0 (cor4.1-collinear), so that "
    "both lower the entropy",
    expected=holds_if(CLIPPED),
    mutations=(
        Mutation("flows had the other sign", Swap(entropy_change, "exact", negated)),
        Mutation("nothing were clipped", Swap(PPO, "ratio_bounds", constant((0.0, float("inf"), float("inf"))))),
        Mutation("successes counted as failures", Swap(__name__, "flows", lambda f: lambda *at: f(*at)[::-1])),
    ),
    live=Live(
        "flow-by-sign",
        turned={"passes": 1},
        conditions=(within("passes", low=8, stated=False),),
    ),
)
def positive_advantages(effort: Effort) -> Finding:
    """On-policy both signs lower the entropy, about half each: a failure that loses probability gives it to likely arms
    as well as to unlikely ones. Negative advantages raise the entropy only where samples are reused and a clip stops
    the failures that have lost much: what is left of them are likely tokens. Then the thesis holds."""
    found = {name: flows(effort, name) for name in SETTINGS}
    rate = observed(effort, "on-policy").reward.mean(-1)
    shares = {name: positive / (positive + negative) for name, (positive, negative) in found.items()}

    def opposed(name: str) -> Any:
        positive, negative = found[name]
        return below(positive) & above(negative)

    measured = "; ".join(f"{name}: A > 0 {told(p, 2)}, A < 0 {told(n, 2)}" for name, (p, n) in found.items())
    return Finding(
        f"flow over a run, nats per unit step: {measured}",
        numbers_of(
            {
                f"flow, {sign}, {name}": x
                for name, pair in found.items()
                for sign, x in zip(("A > 0", "A < 0"), pair, strict=True)
            }
            | {"share of A > 0, on-policy": shares["on-policy"], "1 − ρ, on-policy": 1 - rate}
        ),
        *settle(opposed("on-policy"), CLIPPED, opposed("reused")),
        null=f"share of A > 0 on-policy {told(shares['on-policy'])}, 1 − ρ {told(1 - rate)}; reused without a clip "
        f"{told(shares['reused, no clip'])}",
    )


@picture("positive-advantages", caption="Entropy flow of a rollout by the sign of A, strictly on-policy and reused.")
def draw_flows(figure: Figure, effort: Effort) -> None:
    for axes, name in zip(figure.subplots(1, 2), ("on-policy", "reused"), strict=True):
        metrics = observed(effort, name).metrics
        for sign, label in (("positive", "A > 0"), ("negative", "A < 0")):
            axes.plot(metrics[f"{sign} flow"].mean(0), label=label)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=name, xlabel="rollout", ylabel="flow of an update (nats per unit step)")
        axes.legend()
