"""Advantages that aim at more than one response: the weight of a prompt under MaxRL, the entropy under pass@k."""

from dataclasses import replace

import torch

from ..claims.pass_at_k import expected_weight, max_rl, truncated, without_baseline
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, trial
from .rules import ENV, ROLLOUTS, SIZE, ends_above


@trial(
    "group-weight",
    Parameter(
        key="baseline",
        label="Baseline",
        default=True,
        help="(R − mean)/mean. Without it R/mean, the mean over successes alone, as in the paper's theorem.",
    ),
    Parameter(key="size", label="Group", symbol="n", default=4, low=2, high=16, step=1, help="Responses to a prompt."),
)
def group_weight(baseline: bool, size: int) -> Outcome:
    """Expected step of a prompt in units of ∇p, against its success probability p, beside the expansion up to n."""
    rates = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)
    measured = expected_weight(size, rates, max_rl if baseline else without_baseline)
    predicted = truncated(size, rates)
    distance = float((measured / predicted - 1).abs().max())
    return Outcome(
        x=rates.numpy(),
        x_title="success probability p",
        predicted=predicted.numpy(),
        measured=measured.numpy(),
        y_title="weight of ∇p",
        holds=distance < 1e-9,
        because=f"the weight differs from that of the order n by {distance:.2g} of it at most.",
    )


@trial(
    "pass-at-k",
    Parameter(
        key="k",
        label="Responses of which the best counts",
        symbol="k",
        default=4,
        low=1,
        high=8,
        step=1,
        help="1 is GRPO's objective.",
    ),
    replace(ROLLOUTS, default=40),
    replace(ENV, default="det"),
)
def pass_at_k(k: int, rollouts: int, env: str) -> Outcome:
    """Entropy when pass@k is trained, by its analytic advantage, beside that when pass@1 is."""
    trained, single = (
        entropies(SIZE, advantage=f"pass_at_k k={count} variant=analytic", env=env, rollouts=rollouts).mean(0)
        for count in (k, 1)
    )
    return ends_above(trained, single, "k = 1")
