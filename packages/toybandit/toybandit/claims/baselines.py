"""The advantage's baseline as a lever of the entropy: Quantile Advantage Estimation."""

from collections.abc import Mapping
from math import inf
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import policy_stats
from entrostat.entropy_change import policy_gradient
from entrostat.surrogates.ratio_clip import PPO

from ..trajectory import Array
from .checks import Check, Values, above, every, numbers_of, rising, settle, told
from .ensembles import STEPS, entropy_change, random_logits, random_vector
from .live_case import NOISY, Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always, constant
from .pictures import panels, picture
from .registry import FAILS, Effort, Finding, claim, holds_if, judge
from .runs import entropies

PAPER = "QAE"
QUANTILES = (0.2, 0.4, 0.6, 0.8)
CLIPPED = "reused, clipped"
SETTINGS: dict[str, dict[str, Any]] = {
    "used once": {"passes": 1},
    "reused, no clip": {"passes": 8, "controller": "clip_free"},
    CLIPPED: {"passes": 8},
}
"""Uses of a rollout's samples; reused samples are in 8 updates."""


def baseline_step(logits: Tensor, reward: Tensor, baseline: float) -> Tensor:
    """Return the gradient in the logits of the surrogate Σ_a sg(p_a)·(r_a − b)·log p_a, (instances, K)."""
    z = logits.detach().requires_grad_()
    logp = z.log_softmax(-1)
    return torch.autograd.grad((logp.detach().exp() * (reward - baseline) * logp).sum(), z)[0]


def weighted(logits: Tensor, reward: Tensor, baseline: float) -> Tensor:
    """Return the step of proposition 4.2, p·(r − b), (instances, K)."""
    return policy_stats(logits).logp.exp() * (reward - baseline)


def rewarded(instances: int, arms: int, name: str) -> Tensor:
    """Return rewards of 0 and 1, (instances, K): about half of the arms are right."""
    return (random_vector(instances, arms, name) > 0).double()


@claim(
    "qae-baseline",
    paper=PAPER,
    source="proposition 4.2",
    words="to first order, a state's entropy rises with the baseline b by η·b·Cov_p(log p, p): lowest at b = 0, "
    "highest at b = 1",
    statement=(
        r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ p\,(r - b)) + O(\eta^2)",
        r"\Rightarrow\ \frac{\partial \Delta H}{\partial b} > 0",
    ),
    assumption="tabular softmax, first order; rewards of 0 and 1, baselines 0 and 1",
    threshold="a difference between the baselines of .9 to 1.1 of the claimed one in every instance, since the "
    "second order of a step of .001 adds a little",
    null="a baseline without effect, which has a share of 0",
    expected=FAILS,
    mutations=(
        Mutation("the step were η·p·(r − b), without the softmax", Swap(__name__, "baseline_step", always(weighted))),
    ),
    live=Live(
        "baseline",
        turned={"step": "logit of the sampled arm alone"},
        conditions=(equals("step", "gradient of the softmax"),),
    ),
)
def qae_baseline(effort: Effort) -> Finding:
    """A term that weights all arms alike has no gradient in a softmax: the expected step is the same for every
    baseline. The proposition puts r − b into a formula for advantages of mean zero."""
    logits, reward = random_logits(effort.instances, 16, 2.0, "baseline"), rewarded(effort.instances, 16, "baseline")
    logp, eta = policy_stats(logits).logp, float(STEPS[-1])
    high, low = (entropy_change(logits, eta * baseline_step(logits, reward, b)) for b in (1.0, 0.0))
    said = eta * (policy_gradient(logp, reward - 1) - policy_gradient(logp, reward))
    share = (high - low) / said
    least, most = float(share.min()), float(share.max())
    return Finding(
        f"the difference between the baselines is at most {float(share.abs().max()):.0e} of the claimed difference",
        {"least share of the claimed difference": least, "largest share": most},
        judge(least > 0.9 and most < 1.1),
        null="share 0",
    )


@remember
def by_quantile(effort: Effort) -> dict[str, dict[str, Array]]:
    """Return the entropy in `noisy` under each of SETTINGS with each of QUANTILES, (runs, rollouts + 1)."""
    return {
        setting: {
            f"K = {k:g}": entropies(effort.times(4), env="noisy", advantage=f"qae k={k:g}", **config) for k in QUANTILES
        }
        for setting, config in SETTINGS.items()
    }


LEVER = 0.5
"""Least effect of all steps of K on the final entropy that counts as a lever, nats."""


def raises(final: Mapping[str, Values]) -> Check:
    """Return the check that the final entropy rises with every step of K, and by LEVER over all of them."""
    values = list(final.values())
    return rising(*values) & above(values[-1] - values[0], LEVER)


@claim(
    "qae-quantile",
    paper=PAPER,
    source="sections 1 and 6",
    words="a higher quantile K as baseline raises the entropy: the baseline, not the clip, is its primary lever",
    statement=r"K_1 < K_2 \ \Rightarrow\ H_{\mathrm{end}}(K_1) < H_{\mathrm{end}}(K_2)",
    assumption="noisy; samples are used once, or in 8 passes",
    threshold="a final entropy that rises with every step of K in paired runs, for every use of the samples, by at "
    f"least {LEVER} nats over all steps: a third of the initial entropy, to count as a lever",
    null="the clip is the lever: K in reused samples without it",
    expected=holds_if("samples are reused under a ratio clip"),
    mutations=(Mutation("no ratio were clipped", Swap(PPO, "ratio_bounds", constant((0.0, inf, inf)))),),
    live=Live(
        "quantile",
        turned={"clip": False},
        conditions=(equals("clip", True, stated=False), within("passes", low=8, stated=False), NOISY),
    ),
)
def qae_quantile(effort: Effort) -> Finding:
    """A low K learns from successes, and the upper bound stops the unlikely ones; a high K learns from failures, and
    the lower bound stops the unlikely ones. Without clipping, K hardly matters."""
    final = {
        setting: {name: entropy[:, -1] for name, entropy in found.items()}
        for setting, found in by_quantile(effort).items()
    }
    measured = "; ".join(
        f"samples {setting}: " + ", ".join(f"{name} {told(values)}" for name, values in found.items())
        for setting, found in final.items()
    )
    free = final["reused, no clip"]
    stated = every(raises(found) for found in final.values())
    return Finding(
        f"final H, {measured}",
        numbers_of({f"{name}, samples {s}": values for s, found in final.items() for name, values in found.items()}),
        *settle(stated, "samples are reused under a ratio clip", raises(final[CLIPPED])),
        null="final H " + ", ".join(f"{name} {told(values)}" for name, values in free.items()),
    )


@picture("qae-quantile", caption="Entropy in NOISY with each quantile K, by the use of a rollout's samples.")
def draw_quantiles(figure: Figure, effort: Effort) -> None:
    panels(figure, by_quantile(effort))
