"""Effect of weights by the sign of the advantage on the expected step, and on the entropy of a run."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..claims.checks import rising
from ..claims.entropic import weighted_step
from ..claims.runs import entropies
from ..environments import ENVIRONMENTS
from ..policy import Policy
from ..problem import draw_problem
from ..rollout import Rollout
from ..trial import Outcome, Parameter, nearest_rising, trial
from .rules import ENV, PASSES, ROLLOUTS, SIZE

STATES = 8


def halved(success: Tensor, partial: float) -> Tensor:
    """Return the probability of a reward of ½, (R, S, K): `partial` for the arms of a state that pay most, else 0."""
    return partial * (success == success.amax(-1, keepdim=True)).to(success)


def enumerate_levels(p: Tensor, success: Tensor, half: Tensor) -> Rollout:
    """Return every arm with reward 1, 0 and ½ as 3K tokens: ½ with probability `half`, else 1 with `success`.

    p, success, half: (R, S, K). The advantage is the reward minus the state's expected reward, as in
    `enumerate_rollout`.
    """
    arms = success.shape[-1]
    chances = [success * (1 - half), (1 - success) * (1 - half), half]
    levels = [torch.full_like(success, level) for level in (1.0, 0.0, 0.5)]
    reward, chance = torch.cat(levels, -1), torch.cat(chances, -1)
    probability = p.repeat(1, 1, 3) * chance
    expected = (probability * reward).sum(-1, keepdim=True)
    return Rollout(
        arm=torch.arange(arms).repeat(3).expand(reward.shape),
        reward=reward,
        advantage=reward - expected,
        frequency=3 * arms * probability,
    )


def total_step(logits: Tensor, success: Tensor, half: Tensor, alpha: float, lr: float, passes: int) -> Tensor:
    """Return the change of the logits by `passes` expected updates on a rollout, divided by lr·passes, (runs, S, K)."""
    old = Policy(logits)
    rollout = enumerate_levels(old.p, success, half)
    z, weight = logits, torch.full(logits.shape[:1], alpha, dtype=logits.dtype)
    for _ in range(passes):
        z = z + lr * weighted_step(Policy(z), old, rollout, weight)
    return (z - logits) / (lr * passes)


@trial(
    "collinear",
    Parameter(
        key="alpha",
        label="Weight",
        symbol="α",
        default=0.9,
        low=-1.0,
        high=1.0,
        step=0.1,
        help="Rewarded tokens weigh 1 + α, punished ones 1 − α.",
    ),
    replace(PASSES, default=1),
    Parameter(
        key="partial",
        label="Share of half rewards",
        default=0.0,
        low=0.0,
        high=0.9,
        step=0.05,
        help="Probability that a right arm is rewarded with ½ instead of 1 or 0. 0: rewards are binary.",
    ),
    Parameter(
        key="lr",
        label="Learning rate",
        symbol="η",
        default=0.5,
        low=0.1,
        high=4.0,
        step=0.1,
        help="Step of each update; on-policy it cancels.",
    ),
)
def collinear(alpha: float, passes: int, partial: float, lr: float) -> Outcome:
    """Expected change of every logit of 8 states of noisy with weights by the sign of A, against the change without.
    The claim is that each state's points are on its line through 0, with slope 1 + α(1 − 2ρ)."""
    environment = replace(ENVIRONMENTS["noisy"], states=STATES)
    logits, success = draw_problem(environment, torch.zeros(1, dtype=torch.int64), torch.float64)
    half = halved(success, partial)
    base, step = (total_step(logits, success, half, weight, lr, passes) for weight in (0.0, alpha))
    rate = (Policy(logits).p * (success * (1 - half) + half / 2)).sum(-1, keepdim=True)
    claimed = (1 + alpha * (1 - 2 * rate)) * base
    error = float(((step - claimed).abs().amax(-1) / base.abs().amax(-1)).max())
    return Outcome(
        x=base.flatten().numpy(),
        x_title="expected step of a logit without weights",
        predicted=claimed.flatten().numpy(),
        measured=step.flatten().numpy(),
        y_title="expected step of the logit with weights",
        holds=error < 1e-10,
        because=f"the largest deviation from the lines is {error:.1e} of a state's largest step.",
        points=True,
    )


NEGATIVES, ALL, POSITIVES = "negatives only", "all", "positives only"


@trial(
    "one-sign",
    Parameter(
        key="clip",
        label="Ratio clip of .2",
        default=True,
        help="On: the clip stops tokens whose ratio has moved by more than .2.",
    ),
    replace(PASSES, default=8),
    replace(ROLLOUTS, default=15, step=5),
    ENV,
)
def one_sign(clip: bool, passes: int, rollouts: int, env: str) -> Outcome:
    """Final entropy when learning from failures alone, from all samples, and from successes alone."""
    surrogate = "ppo" if clip else "clip_free"
    kept = {NEGATIVES: "negative_only+", ALL: "", POSITIVES: "positive_only+"}
    settings = {"env": env, "passes": passes, "rollouts": rollouts}
    final = np.stack([entropies(SIZE, controller=part + surrogate, **settings)[:, -1] for part in kept.values()])
    mean = final.mean(-1)
    holds = rising(*final[::-1]).holds
    told = ", ".join(f"{h:.2f} with {name}" for name, h in zip(kept, mean, strict=True))
    return Outcome(
        x=np.arange(3, dtype=np.float64),
        x_title="learnt from",
        names=tuple(kept),
        predicted=-nearest_rising(-mean),
        measured=mean,
        y_title="final entropy H (nats)",
        holds=holds,
        because=f"the entropy ends at {told}; the claim is that it falls in this order.",
    )
