"""First-order entropy change of a whole distribution: The Entropy Mechanism, lemma 1 and theorems 1 and 2."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import policy_stats
from entrostat.entropy_change import lemma1, natural_policy_gradient, policy_gradient

from .ensembles import STEPS, entropy_change, median_order, random_logits, random_vector
from .pictures import picture
from .registry import FAILS, HOLDS, Effort, Finding, claim, holds_if, judge

PAPER = "Entropy Mechanism"
LEMMA_ARMS = (2, 16, 1000, 50_000)
ORDER_TOLERANCE = 0.1
SMALL = 64
"""Largest K for which the remainder of lemma 1 is at most 1·‖Δz‖∞²."""


def second_order(slope: float) -> bool:
    return abs(slope - 2) <= ORDER_TOLERANCE


def instances_of(effort: Effort, arms: int) -> int:
    """Return the number of instances, fewer for large vocabularies, which vary less."""
    return max(min(effort.instances, 400_000 // arms), 8)


@claim(
    "lemma1-order",
    paper=PAPER,
    source="lemma 1",
    assumption="tabular softmax, any step Δz = η·d",
    predicted="ΔH = −Cov_p(log p, Δz) up to order η²: slope 2",
    expected=HOLDS,
)
def lemma1_order(effort: Effort) -> Finding:
    """Entropy falls if likely arms gain logit: the covariance of log p and the step is the whole first-order term."""
    slopes = {}
    for arms in LEMMA_ARMS:
        count = instances_of(effort, arms)
        logits, direction = random_logits(count, arms, 2.0, "lemma 1"), random_vector(count, arms, "lemma 1 step")
        predicted = lemma1(policy_stats(logits).logp, direction)
        slopes[f"slope K={arms}"] = median_order(logits, direction, predicted)
    low, high = min(slopes.values()), max(slopes.values())
    return Finding(
        f"median slope {low:.3f} to {high:.3f} for K = {LEMMA_ARMS[0]} to {LEMMA_ARMS[-1]:,}",
        slopes,
        judge(all(map(second_order, slopes.values()))),
    )


def remainder_ratio(logits: Tensor, delta: Tensor) -> Tensor:
    """Return |ΔH + Cov_p(log p, Δz)| / ‖Δz‖∞² of each instance, (instances,)."""
    error = entropy_change(logits, delta) - lemma1(policy_stats(logits).logp, delta)
    return error.abs() / delta.abs().amax(-1) ** 2


def two_level(arms: int) -> tuple[Tensor, Tensor]:
    """Return logits and steps with a large remainder, (instances, K) each, for a grid of m.

    Mass m is spread evenly over all arms but one, and they move against that one. Searches over all logits and steps
    end at this family.
    """
    mass = torch.linspace(0.02, 0.98, 25, dtype=torch.float64).unsqueeze(-1)
    spread = (mass / (arms - 1)).log().expand(-1, arms - 1)
    logits = torch.cat([(1 - mass).log(), spread], -1)
    step = torch.full_like(logits, 1e-2)
    step[:, 0] *= -1
    return logits, step


@claim(
    "lemma1-remainder",
    paper=PAPER,
    source="lemma 1; the constant is ours",
    assumption="any K, any Δz",
    predicted="remainder ≤ 1·‖Δz‖∞²",
    expected=holds_if(f"K ≤ {SMALL}"),
)
def lemma1_remainder(effort: Effort) -> Finding:
    """The remainder of lemma 1 is at most the squared largest logit change times a constant that grows with ln K."""
    numbers = {}
    for arms in (2, 16, SMALL, 1000, 50_000):
        count = instances_of(effort, arms)
        worst = float(remainder_ratio(*two_level(arms)).max())
        for std in (0.3, 1.0, 3.0, 10.0):
            logits = random_logits(count, arms, std, f"remainder {std}")
            delta = random_vector(count, arms, f"remainder step {std}")
            worst = max(worst, *(float(remainder_ratio(logits, size * delta).max()) for size in (0.01, 0.3, 3.0)))
        numbers[f"remainder/‖Δz‖∞² K={arms}"] = worst
    values = list(numbers.values())
    return Finding(
        f"largest ratio {max(values[:3]):.2f} for K ≤ {SMALL}; {values[3]:.2f} at K = 1,000, {values[4]:.2f} at 50,000",
        numbers,
        judge(max(values) <= 1, f"K ≤ {SMALL}", max(values[:3]) <= 1),
    )


def random_policy_and_advantage(effort: Effort, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, log p and advantages that are not centred, (instances, 16) each."""
    logits = random_logits(effort.instances, 16, 2.0, name)
    advantage = random_vector(effort.instances, 16, f"{name} advantage") + 0.5
    return logits, policy_stats(logits).logp, advantage


def centred(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return A − E_π[A], (instances, K)."""
    return advantage - (logp.exp() * advantage).sum(-1, keepdim=True)


def expected_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return the gradient of E_π[A] in the logits, p·(A − E A), (instances, K)."""
    return logp.exp() * centred(logp, advantage)


def policy_gradient_order(logits: Tensor, logp: Tensor, advantage: Tensor) -> float:
    """Return the order of theorem 1's error along the true expected gradient Δz = η·p·(A − E A)."""
    return median_order(logits, expected_gradient(logp, advantage), policy_gradient(logp, advantage))


@claim(
    "thm1-centred",
    paper=PAPER,
    source="theorem 1",
    assumption="policy gradient, E_π[A] = 0",
    predicted="ΔH = −η·Cov_p(log p, p·A): slope 2",
    expected=HOLDS,
)
def theorem1_centred(effort: Effort) -> Finding:
    """With advantages centred under the policy, the policy-gradient step is η·p·A, and theorem 1 is lemma 1."""
    logits, logp, advantage = random_policy_and_advantage(effort, "theorem 1")
    slope = policy_gradient_order(logits, logp, centred(logp, advantage))
    return Finding(f"median slope {slope:.3f}", {"slope": slope}, judge(second_order(slope)))


@claim(
    "thm1-any-advantage",
    paper=PAPER,
    source="theorem 1",
    assumption="policy gradient, any A",
    predicted="ΔH = −η·Cov_p(log p, p·A): slope 2",
    expected=FAILS,
)
def theorem1_uncentred(effort: Effort) -> Finding:
    """Without a baseline, the true step is η·p·(A − E A), and the formula is already wrong at first order."""
    slope = policy_gradient_order(*random_policy_and_advantage(effort, "theorem 1"))
    return Finding(f"median slope {slope:.3f}", {"slope": slope}, judge(second_order(slope)))


def natural_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return pinv(Fisher)·gradient of the expected advantage, (instances, K)."""
    p = logp.exp()
    fisher = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    gradient = expected_gradient(logp, advantage).unsqueeze(-1)
    return (torch.linalg.pinv(fisher, rtol=1e-12, hermitian=True) @ gradient).squeeze(-1)


@claim(
    "thm2-natural-gradient",
    paper=PAPER,
    source="theorem 2",
    assumption="natural policy gradient, any A",
    predicted="pinv(Fisher)·g = A − mean A; ΔH = −η·Cov_p(log p, A): slope 2",
    expected=HOLDS,
)
def theorem2(effort: Effort) -> Finding:
    """Natural policy gradient adds η·A to the logits, up to a constant, which does not change the policy."""
    logits, logp, advantage = random_policy_and_advantage(effort, "theorem 2")
    step = natural_gradient(logp, advantage)
    error = float((step - (advantage - advantage.mean(-1, keepdim=True))).abs().max())
    slope = median_order(logits, step, natural_policy_gradient(logp, advantage))
    return Finding(
        f"identity to {error:.0e}; median slope {slope:.3f}",
        {"identity error": error, "slope": slope},
        judge(second_order(slope) and error < 1e-9),
    )


@picture("thm1-centred", caption="Median error of the first-order ΔH against the step size η.")
def draw_errors(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    logits, logp, advantage = random_policy_and_advantage(effort, "theorem 1")
    gradient = expected_gradient(logp, advantage)
    predictions = {
        "policy gradient, centred A": (gradient, policy_gradient(logp, centred(logp, advantage))),
        "policy gradient, any A": (gradient, policy_gradient(logp, advantage)),
        "natural policy gradient, any A": (advantage, natural_policy_gradient(logp, advantage)),
    }
    for name, (step, predicted) in predictions.items():
        errors = [(entropy_change(logits, eta * step) - eta * predicted).abs().median() for eta in STEPS]
        axes.loglog(STEPS, errors, marker="o", label=name)
    axes.set(xlabel="η", ylabel="|ΔH − predicted| (nats)")
    axes.legend()
