"""First-order entropy change of a whole distribution: The Entropy Mechanism, lemma 1 and theorems 1 and 2."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import policy_stats
from entrostat.entropy_change import lemma1, natural_policy_gradient, policy_gradient

from .ensembles import STEPS, entropy_change, median_order, random_logits, random_vector
from .live_case import SMALL_STEP, Live, equals
from .mutations import Mutation, Swap, always, negated
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, holds_if, judge
from .theorems import Theorem

PAPER = "Entropy Mechanism"
LEMMA_ARMS = (2, 16, 1000, 50_000)
ORDER_TOLERANCE = 0.1
ORDER = (
    f"median slope of the error over η within {ORDER_TOLERANCE} of 2, so that all of the first order is there, and "
    "outside for the null: an error of first order has slope 1"
)
SIGN = "the covariance had the other sign"
SMALL = 64
"""Largest K for which the remainder of lemma 1 is at most 1·‖Δz‖∞²."""


def second_order(slope: float) -> bool:
    return abs(slope - 2) <= ORDER_TOLERANCE


def instances_of(effort: Effort, arms: int) -> int:
    """Return the number of instances, fewer for large vocabularies, which vary less."""
    return max(min(effort.instances, 400_000 // arms), 8)


def evenly_weighted(logp: Tensor, delta: Tensor) -> Tensor:
    """Return lemma 1 with equal weights for all arms, (instances,)."""
    return -(logp - logp.mean(-1, keepdim=True)).mul(delta).mean(-1)


LEMMA_1 = Theorem(
    name="Entropy Mechanism, lemma 1",
    test="test_entropy_mechanism_lemma_1.py",
    derivation=(
        "∂H/∂z_a = −p_a(log p_a + H) = −p_a(log p_a − E_p[log p]).",
        "⟨∂H/∂z, Δz⟩ = −Σ p_a(log p_a − E_p[log p])·Δz_a = −Cov_p(log p, Δz).",
        "Taylor's remainder is of second order; its constant grows with ln K.",
    ),
)
THEOREM_1 = Theorem(
    name="Entropy Mechanism, proposition 1 and theorem 1",
    test="test_entropy_mechanism_theorem_1.py",
    derivation=(
        "∂E_p[A]/∂z_a = Σ_b p_b A_b(1[a = b] − p_a) = p_a(A_a − E_p[A]).",
        "With E_p[A] = 0 the step is Δz = η·p·A; lemma 1 gives ΔH = −η·Cov_p(log p, p·A).",
        "Otherwise the formula has p·E_p[A] too much, and Cov_p(log p, p) is not 0.",
    ),
)
THEOREM_2 = Theorem(
    name="Entropy Mechanism, theorem 2",
    test="test_entropy_mechanism_theorem_2.py",
    derivation=(
        "F = diag(p) − p·pᵀ, so F·A = p(A − E_p[A]), which is the gradient of E_p[A].",
        "F⁺ gives A up to a constant, which does not move p: Δz = η·A.",
        "Lemma 1 gives ΔH = −η·Cov_p(log p, A), for any baseline.",
    ),
)


@claim(
    "lemma1-order",
    paper=PAPER,
    source="section 3.1, lemma 1",
    words="to first order, a state's entropy falls by the covariance, under its policy, of log-probability and change "
    "of the logit",
    statement=(r"\Delta H = -\operatorname{Cov}_{a\sim p}(\log p_a,\ \Delta z_a) + O(\eta^2),", r"\Delta z = \eta\, d"),
    assumption="tabular softmax, any step Δz = η·d",
    theorem=LEMMA_1,
    threshold=ORDER,
    null="no change, ΔH = 0",
    expected=HOLDS,
    mutations=(
        Mutation(SIGN, Swap(__name__, "lemma1", negated)),
        Mutation("the covariance were under equal weights", Swap(__name__, "lemma1", always(evenly_weighted))),
        Mutation(
            "Δz had a factor p", Swap(__name__, "lemma1", lambda f: lambda logp, delta: f(logp, delta * logp.exp()))
        ),
    ),
    live=Live("first-order", turned={"eta": 5.0}, conditions=(SMALL_STEP,)),
)
def lemma1_order(effort: Effort) -> Finding:
    """Entropy falls if likely arms gain logit: the covariance of log p and the step is the whole first-order term."""
    slopes, none = {}, []
    for arms in LEMMA_ARMS:
        count = instances_of(effort, arms)
        logits, direction = random_logits(count, arms, 2.0, "lemma 1"), random_vector(count, arms, "lemma 1 step")
        predicted = lemma1(policy_stats(logits).logp, direction)
        slopes[f"slope K={arms}"] = median_order(logits, direction, predicted)
        none.append(median_order(logits, direction, torch.zeros_like(predicted)))
    low, high = min(slopes.values()), max(slopes.values())
    return Finding(
        f"median slope {low:.3f} to {high:.3f} for K = {LEMMA_ARMS[0]} to {LEMMA_ARMS[-1]:,}",
        slopes,
        judge(all(map(second_order, slopes.values())) and not any(map(second_order, none))),
        null=f"slope {min(none):.3f} to {max(none):.3f}",
    )


def remainder_ratio(logits: Tensor, delta: Tensor) -> Tensor:
    """Return |ΔH + Cov_p(log p, Δz)| and |ΔH|, both over ‖Δz‖∞², of each instance, (2, instances)."""
    change = entropy_change(logits, delta)
    error = change - lemma1(policy_stats(logits).logp, delta)
    return torch.stack([error, change]).abs() / delta.abs().amax(-1) ** 2


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
    source="section 3.1, lemma 1; the constant is measured here. That the entropy of a softmax is smooth, with a "
    "constant that grows with ln K, is known from Mei et al. 2020 (arXiv 2005.06392)",
    words="the covariance is an approximation of first order; the paper has no bound of what it leaves out",
    statement=r"|\Delta H + \operatorname{Cov}_p(\log p, \Delta z)| \le \lVert \Delta z \rVert_\infty^2",
    assumption="any K, any Δz",
    theorem=LEMMA_1,
    threshold="remainder ≤ 1·‖Δz‖∞², a constant that is easy to use and just above the largest found with few arms; "
    "the null is above it for every K",
    null="no change, whose error is of first order and so has no such constant",
    expected=holds_if(f"K ≤ {SMALL}"),
    mutations=(
        Mutation(SIGN, Swap(__name__, "lemma1", negated)),
        Mutation("the covariance had half its size", Swap(__name__, "lemma1", lambda f: lambda *at: f(*at) / 2)),
    ),
    live=Live("remainder", turned={"arms": "1000"}, conditions=(equals("arms", "2", "16", "64", stated=False),)),
)
def lemma1_remainder(effort: Effort) -> Finding:
    """The remainder of lemma 1 is at most the squared largest logit change times a constant that grows with ln K."""
    numbers, none = {}, []
    for arms in (2, 16, SMALL, 1000, 50_000):
        count = instances_of(effort, arms)
        worst = remainder_ratio(*two_level(arms)).amax(-1)
        for std in (0.3, 1.0, 3.0, 10.0):
            logits = random_logits(count, arms, std, f"remainder {std}")
            delta = random_vector(count, arms, f"remainder step {std}")
            for size in (0.01, 0.3, 3.0):
                worst = torch.maximum(worst, remainder_ratio(logits, size * delta).amax(-1))
        numbers[f"remainder/‖Δz‖∞² K={arms}"] = float(worst[0])
        none.append(float(worst[1]))
    values = list(numbers.values())
    return Finding(
        f"largest ratio {max(values[:3]):.2f} for K ≤ {SMALL}; {values[3]:.2f} at K = 1,000, {values[4]:.2f} at 50,000",
        numbers,
        judge(max(values) <= 1 < min(none), f"K ≤ {SMALL}", max(values[:3]) <= 1 < min(none)),
        null=f"ratio {min(none):.0f} to {max(none):.0f}",
    )


def random_policy_and_advantage(effort: Effort, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, log p and advantages that are not centred, (instances, 16) each."""
    logits = random_logits(effort.instances, 16, 2.0, name)
    advantage = random_vector(effort.instances, 16, f"{name} advantage") + 0.5
    return logits, policy_stats(logits).logp, advantage


def centred(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return A − E_π[A], (instances, K)."""
    return advantage - (logp.exp() * advantage).sum(-1, keepdim=True)


def weighted(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return p·A, (instances, K)."""
    return logp.exp() * advantage


def expected_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return the gradient of E_π[A] in the logits, p·(A − E A), (instances, K)."""
    return logp.exp() * centred(logp, advantage)


def policy_gradient_order(logits: Tensor, logp: Tensor, advantage: Tensor) -> float:
    """Return the order of theorem 1's error along the true expected gradient Δz = η·p·(A − E A)."""
    return median_order(logits, expected_gradient(logp, advantage), policy_gradient(logp, advantage))


@claim(
    "thm1-centred",
    paper=PAPER,
    source="section 3.2, theorem 1 and proposition 1; lemma 3 of appendix C.1 states E[A] = 0",
    words="under the policy gradient, a state's entropy changes by about −η·Cov_p(log p, p·A), since an action's logit "
    "gains η·p·A (proposition 1)",
    statement=(
        r"\mathbb{E}_\pi[A] = 0 \ \Rightarrow",
        r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ p\,A) + O(\eta^2)",
    ),
    assumption="policy gradient, E_π[A] = 0",
    theorem=THEOREM_1,
    threshold=ORDER,
    null="theorem 2's formula, which lacks the factor p",
    expected=HOLDS,
    mutations=(
        Mutation(SIGN, Swap(__name__, "policy_gradient", negated)),
        Mutation("the factor p were dropped", Swap(__name__, "policy_gradient", always(natural_policy_gradient))),
        Mutation(
            "half a unit were added to A", Swap(__name__, "policy_gradient", lambda f: lambda logp, a: f(logp, a + 0.5))
        ),
    ),
    live=Live(
        "first-order",
        values={"rule": "policy gradient"},
        turned={"shift": 0.5},
        conditions=(equals("shift", 0), equals("rule", "policy gradient"), SMALL_STEP),
    ),
)
def theorem1_centred(effort: Effort) -> Finding:
    """With advantages centred under the policy, the policy-gradient step is η·p·A, and theorem 1 is lemma 1."""
    logits, logp, advantage = random_policy_and_advantage(effort, "theorem 1")
    slope = policy_gradient_order(logits, logp, centred(logp, advantage))
    other = median_order(logits, expected_gradient(logp, advantage), natural_policy_gradient(logp, advantage))
    return Finding(
        f"median slope {slope:.3f}",
        {"slope": slope},
        judge(second_order(slope) and not second_order(other)),
        null=f"slope {other:.3f}",
    )


def missing(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return E_π[A]·Cov_p(log p, p), what theorem 1's formula lacks if A is not centred, (instances,)."""
    return -(logp.exp() * advantage).sum(-1) * policy_gradient(logp, torch.ones_like(advantage))


@claim(
    "thm1-without-baseline",
    paper="Ours",
    source="on the Entropy Mechanism's theorem 1, whose lemma 3 states E[A] = 0 and whose proposition 1 uses it",
    words="without a baseline the formula of theorem 1 is wrong at first order: it lacks η·E[A]·Cov_p(log p, p), and "
    "is right with it",
    statement=(
        r"\mathbb{E}_\pi[A] \ne 0 \ \Rightarrow",
        r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ p\,A)",
        r"{} + \eta\, \mathbb{E}_\pi[A] \operatorname{Cov}_p(\log p,\ p) + O(\eta^2)",
    ),
    assumption="policy gradient, rewards in place of advantages: A with any mean",
    theorem=THEOREM_1,
    threshold=f"median slope of the error over η within {ORDER_TOLERANCE} of 2 with the term, and within "
    f"{ORDER_TOLERANCE} of 1 without it: an error of first order has slope 1",
    null="the formula alone, as if the mean of A did not matter",
    expected=HOLDS,
    mutations=(
        Mutation("the step were η·p·A, without the softmax", Swap(__name__, "expected_gradient", always(weighted))),
        Mutation("the term had the other sign", Swap(__name__, "missing", negated)),
        Mutation("A had mean 0", Swap(__name__, "uncentred", always(centred))),
    ),
    live=Live(
        "first-order",
        values={"rule": "policy gradient", "shift": 0.5, "baseline": True},
        turned={"baseline": False},
        conditions=(equals("rule", "policy gradient"), equals("baseline", True), SMALL_STEP),
    ),
)
def theorem1_uncentred(effort: Effort) -> Finding:
    """The gradient of the softmax subtracts the mean of A by itself: its step is η·p·(A − E A). A formula with A as it
    is describes another step. The paper's advantages have mean 0, so its theorem stands; rewards without a baseline do
    not."""
    logits, logp, advantage = random_policy_and_advantage(effort, "theorem 1")
    advantage = uncentred(logp, advantage)
    step, formula = expected_gradient(logp, advantage), policy_gradient(logp, advantage)
    whole, alone = (median_order(logits, step, each) for each in (formula + missing(logp, advantage), formula))
    return Finding(
        f"median slope {whole:.3f} with the term",
        {"slope with the term": whole, "slope": alone},
        judge(second_order(whole) and abs(alone - 1) <= ORDER_TOLERANCE),
        null=f"slope {alone:.3f}",
    )


def uncentred(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return A as it is, (instances, K)."""
    return advantage


def natural_gradient(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return pinv(Fisher)·gradient of the expected advantage, (instances, K)."""
    p = logp.exp()
    fisher = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    gradient = expected_gradient(logp, advantage).unsqueeze(-1)
    return (torch.linalg.pinv(fisher, rtol=1e-12, hermitian=True) @ gradient).squeeze(-1)


@claim(
    "thm2-natural-gradient",
    paper=PAPER,
    source="section 3.2, theorem 2 and appendix C.4",
    words="under the natural policy gradient, whose step on a logit is η·A, a state's entropy changes by about "
    "−η·Cov_p(log p, A)",
    statement=(r"F^{+} g = A - \bar A,", r"\Delta H = -\eta \operatorname{Cov}_p(\log p,\ A) + O(\eta^2)"),
    assumption="natural policy gradient, any A",
    theorem=THEOREM_2,
    threshold=f"pinv(Fisher)·gradient = A − mean A to 1e-9; {ORDER}",
    null="theorem 1's formula, which has a factor p more",
    expected=HOLDS,
    mutations=(
        Mutation(SIGN, Swap(__name__, "natural_policy_gradient", negated)),
        Mutation("A had a factor p", Swap(__name__, "natural_policy_gradient", always(policy_gradient))),
        Mutation("the step were the plain gradient", Swap(__name__, "natural_gradient", always(expected_gradient))),
    ),
    live=Live(
        "first-order",
        values={"rule": "natural policy gradient", "shift": 0.5},
        turned={"rule": "policy gradient"},
        conditions=(equals("rule", "natural policy gradient"), SMALL_STEP),
    ),
)
def theorem2(effort: Effort) -> Finding:
    """Natural policy gradient adds η·A to the logits, up to a constant, which does not change the policy."""
    logits, logp, advantage = random_policy_and_advantage(effort, "theorem 2")
    step = natural_gradient(logp, advantage)
    error = float((step - (advantage - advantage.mean(-1, keepdim=True))).abs().max())
    slope = median_order(logits, step, natural_policy_gradient(logp, advantage))
    other = median_order(logits, step, policy_gradient(logp, advantage))
    return Finding(
        f"identity to {error:.0e}; median slope {slope:.3f}",
        {"identity error": error, "slope": slope},
        judge(second_order(slope) and error < 1e-9 and not second_order(other)),
        null=f"slope {other:.3f}",
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
