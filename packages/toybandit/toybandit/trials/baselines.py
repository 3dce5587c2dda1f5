"""Baseline of the advantage: its effect on the expected step, and the effect of a quantile's K on a run."""

from dataclasses import replace

import numpy as np
import torch

from entrostat import policy_stats
from entrostat.entropy_change import policy_gradient

from ..claims.baselines import QUANTILES, baseline_step, rewarded
from ..claims.ensembles import entropy_change, random_logits
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, trial
from .first_order import ARMS, STD
from .rules import ENV, PASSES, ROLLOUTS, SIZE, monotone

GRADIENT, TAKEN = "gradient of the softmax", "logit of the sampled arm alone"
ETA = 1e-3


@trial(
    "baseline",
    Parameter(
        key="step",
        label="Step",
        default=GRADIENT,
        options=(GRADIENT, TAKEN),
        help="gradient: p·(A − E A), of all arms. sampled arm alone: p·A, which the proposition uses.",
    ),
    replace(ARMS, help="Actions of the policy; about half of them are rewarded."),
    STD,
)
def baseline(step: str, arms: int, std: float) -> Outcome:
    """One expected update of a random policy on rewards of 0 and 1 minus a baseline, at every baseline from 0 to 1."""
    logits, reward = random_logits(1, arms, std, "trial baseline"), rewarded(1, arms, "trial baseline")
    logp, x = policy_stats(logits).logp, torch.linspace(0, 1, 21, dtype=torch.float64)
    moved = [baseline_step(logits, reward, float(b)) if step == GRADIENT else logp.exp() * (reward - b) for b in x]
    measured = torch.cat([entropy_change(logits, ETA * delta) for delta in moved]) / ETA
    predicted = torch.cat([policy_gradient(logp, reward - b) for b in x])
    rise, said = float(measured[-1] - measured[0]), float(predicted[-1] - predicted[0])
    return Outcome(
        x=x.numpy(),
        x_title="baseline b",
        predicted=predicted.numpy(),
        measured=measured.numpy(),
        y_title="change of entropy ΔH/η (nats)",
        holds=abs(rise / said - 1) < 0.1,
        because=f"from b = 0 to 1 it changes by {rise:.3g}, and should change by {said:.3g}.",
    )


@trial(
    "quantile",
    Parameter(
        key="clip",
        label="Ratio clip",
        default=True,
        help="PPO's clip at 1 ± 0.2. Without it no token is stopped.",
    ),
    replace(PASSES, default=8),
    ROLLOUTS,
    ENV,
)
def quantile(clip: bool, passes: int, rollouts: int, env: str) -> Outcome:
    """Advantages are rewards minus the K-quantile of their group, at four values of K."""
    shared = {"env": env, "passes": passes, "rollouts": rollouts, "controller": "grpo" if clip else "clip_free"}
    found = np.stack([entropies(SIZE, advantage=f"qae k={k:g}", **shared)[:, -1] for k in QUANTILES])
    return monotone(found, QUANTILES, "quantile K")
