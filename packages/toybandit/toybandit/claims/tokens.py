"""Entropy change by one sampled token: the exact flow, and the formulas of STEER and OPEFO."""

from collections.abc import Callable

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change, policy_stats

from .ensembles import entropy_change as measured_change
from .ensembles import median_order, random_logits, random_vector
from .live_case import SMALL_STEP, TINY_STEP, Live, equals, within
from .mutations import Change, Mutation, Swap, always
from .pictures import picture
from .registry import FAILS, HOLDS, Effort, Finding, claim, judge
from .theorems import Theorem

DYNAMICS = "Entropy Dynamics"
"""On the Entropy Dynamics in Reinforcement Fine-Tuning of Large Language Models, arXiv 2602.03392."""
STEP = 1e-3
SPREADS = (1.0, 2.0, 3.0)
"""Standard deviations of the logits for comparing signs."""
ARMS = 16


def every_token(logits: Tensor, weight: Tensor, eta: float = STEP) -> tuple[Tensor, Tensor]:
    """Return exact flow and measured ΔH/η of each arm as the sampled token, (instances, K); weight (instances, K)."""
    stats = policy_stats(logits)
    flow = entropy_change.exact(
        stats.logp, stats.entropy.unsqueeze(-1), stats.s2.unsqueeze(-1), stats.s2l.unsqueeze(-1), weight
    )
    arms = logits.shape[-1]
    step = weight.unsqueeze(-1) * (torch.eye(arms, dtype=logits.dtype) - stats.logp.exp().unsqueeze(-2))
    before = logits.unsqueeze(-2).expand_as(step)
    return flow, measured_change(before, eta * step) / eta


def own_part(logp: Tensor, entropy: Tensor, s2: Tensor, s2l: Tensor, weight: Tensor) -> Tensor:
    """Return the part of the sampled token's own logit, with the arguments of the whole flow."""
    return entropy_change.own_logit(logp, entropy, weight)


def swapped(change: Change) -> Swap:
    """Return the swap of the formula of the whole flow."""
    return Swap(entropy_change, "exact", change)


OPEFO_1 = Theorem(
    name="OPEFO, theorem 1",
    test="test_opefo_theorem_1.py",
    derivation=(
        "Under assumption 1 E_a[−p_a(lp + H)·A(1 − p_a)] = −E_p[A·p(1 − p)(log p + H)].",
        "Equation 6 has (1 − p)² in place of p(1 − p): a token counts (1 − p)/p times what it does.",
        "Its sign is that of assumption 1, with the boundary e^(−H).",
    ),
)
EXACT_FLOW = Theorem(
    name="Exact flow of a token, theorem 3.3 of arXiv 2602.03392",
    test="test_exact_flow_of_a_token.py",
    derivation=(
        "∂ log p_a/∂z = e_a − p, so a token's step is Δz = η·w·(e_a − p).",
        "⟨∂H/∂z, Δz⟩ = −η·w·(f_a − Σ p_b f_b) = −η·w·[p_a(lp + H) − (S2L + H·S2)].",
        "It is linear in w, so tokens add; E_a of the bracket is 0; it is 0 at p_a = p* ≥ e^(−H).",
    ),
)


@claim(
    "token-flow",
    paper=DYNAMICS,
    source="theorem 3.3 (Wang et al. 2026, arXiv 2602.03392); decomposed in arXiv 2605.11775 (Zhang et al. 2026) too",
    words="the whole first order of a sampled token's update is −η·w·(S* − E S), with S* = p(lp + H) and E S = S2L + "
    "H·S2; its mean over o ~ p is 0. STEER's theorem 1 and OPEFO's equation 6 count the sampled token's logit alone",
    statement=(
        r"\Delta H = -\eta\, w\, \varphi + O(\eta^2),",
        r"\varphi = p\,(\log p + H) - (S_{2L} + H S_2),",
        r"S_2 = \textstyle\sum_a p_a^2, \quad S_{2L} = \sum_a p_a^2 \log p_a",
    ),
    assumption="one sampled token of weight w = A·r, full softmax gradient",
    theorem=EXACT_FLOW,
    threshold="relative MSE < 1e-4 at η = 1e-3, since the second order is about η times the first and is squared; a "
    "mean of 0 to 1e-12; the null is above 1e-4",
    null="the part of the sampled token's own logit",
    expected=HOLDS,
    mutations=(
        Mutation("w had the other sign", swapped(lambda f: lambda *at: -f(*at))),
        Mutation("the other logits were left out", swapped(lambda f: own_part)),
        Mutation(
            "H were left out of the others' part", swapped(lambda f: lambda lp, h, s2, s2l, w: f(lp, h, 0 * s2, s2l, w))
        ),
    ),
    live=Live("token-flow", turned={"log_eta": 0.0}, conditions=(TINY_STEP,)),
)
def token_flow(effort: Effort) -> Finding:
    """A sampled token moves the logits of every arm; counting them all gives its entropy change to first order."""
    logits = random_logits(effort.instances, ARMS, 2.0, "token flow")
    weight = 2 * random_vector(effort.instances, ARMS, "token weight")
    flow, truth = every_token(logits, weight)
    relative = float(((flow - truth) ** 2).sum() / (truth**2).sum())
    correlation = float(torch.corrcoef(torch.stack([flow.flatten(), truth.flatten()]))[0, 1])
    same_weight, _ = every_token(logits, torch.ones_like(weight))
    stats = policy_stats(logits)
    mean = float((stats.logp.exp() * same_weight).sum(-1).abs().max())
    own = entropy_change.own_logit(stats.logp, stats.entropy.unsqueeze(-1), weight)
    other = float(((own - truth) ** 2).sum() / (truth**2).sum())
    return Finding(
        f"relative MSE {relative:.1e}, Pearson {correlation:.6f}, mean over o ~ p {mean:.0e}",
        {"relative MSE": relative, "Pearson": correlation, "mean": mean},
        judge(relative < 1e-4 < other and mean < 1e-12),
        null=f"relative MSE {other:.2f}",
    )


def wrong_signs(estimate: Callable[[Tensor, Tensor, Tensor], Tensor], effort: Effort, std: float) -> float:
    """Return the share of tokens sampled from p whose estimate and measured entropy change differ in sign."""
    logits = random_logits(effort.instances, ARMS, std, f"signs {std}")
    weight = torch.ones_like(logits)
    _, truth = every_token(logits, weight)
    stats = policy_stats(logits)
    wrong = estimate(stats.logp, stats.entropy.unsqueeze(-1), weight) * truth < 0
    return float((stats.logp.exp() * wrong).sum(-1).mean())


FEW = 1e-3
"""Share of tokens that are so near the boundary that the second order of the step decides."""


def exact_flow(logp: Tensor, entropy: Tensor, weight: Tensor) -> Tensor:
    """Return the whole flow of each arm of states as the sampled token, (instances, K)."""
    p = logp.exp()
    s2, s2l = (p**2).sum(-1, keepdim=True), (p**2 * logp).sum(-1, keepdim=True)
    return entropy_change.exact(logp, entropy, s2, s2l, weight)


def sign_finding(estimate: Callable[[Tensor, Tensor, Tensor], Tensor], effort: Effort) -> Finding:
    shares = {f"wrong sign, logit std {std:g}": wrong_signs(estimate, effort, std) for std in SPREADS}
    low, high = min(shares.values()), max(shares.values())
    exact = max(wrong_signs(exact_flow, effort, std) for std in SPREADS)
    return Finding(
        f"{low:.1%} to {high:.1%} of sampled tokens have the wrong sign",
        shares,
        judge(high < FEW),
        null=f"{exact:.2%} at most",
    )


def summed_step(logits: Tensor, weight: Tensor) -> Tensor:
    """Return the step of all arms as sampled tokens, Σ_o w_o·(e_o − p), per unit learning rate; (instances, K) each."""
    return weight - policy_stats(logits).logp.exp() * weight.sum(-1, keepdim=True)


def own_steps(logits: Tensor, weight: Tensor) -> Tensor:
    """Return the step of all arms as sampled tokens that move their own logits alone, (instances, K)."""
    return weight * (1 - policy_stats(logits).logp.exp())


@claim(
    "token-flows-add",
    paper=DYNAMICS,
    source="follows from theorem 3.3 (arXiv 2602.03392), which is linear in w",
    words="the whole first order of several tokens of a state is the sum of theirs, as STEER's theorem 1 sums its "
    "changes",
    statement=r"\Delta H = \textstyle\sum_{i} \Delta H_i + O(\eta^2)",
    assumption="several sampled tokens of one state, one step of the full softmax gradient",
    theorem=EXACT_FLOW,
    threshold="median slope of the error over η within .1 of 2, so that all of the first order is there, and outside "
    "for the null",
    null="the sum of the parts of the tokens' own logits",
    expected=HOLDS,
    mutations=(
        Mutation("w had the other sign", swapped(lambda f: lambda *at: -f(*at))),
        Mutation("the other logits were left out", swapped(lambda f: own_part)),
        Mutation("a step moved the tokens' own logits alone", Swap(__name__, "summed_step", always(own_steps))),
    ),
    live=Live("first-order", values={"rule": "sampled tokens"}, turned={"eta": 20.0}, conditions=(SMALL_STEP,)),
)
def token_flows_add(effort: Effort) -> Finding:
    """To first order, the entropy change of a mini-batch is the sum over its tokens, so it can be budgeted."""
    logits = random_logits(effort.instances, ARMS, 2.0, "flows add")
    weight = random_vector(effort.instances, ARMS, "flows add weight")
    flow, _ = every_token(logits, weight)
    stats, step = policy_stats(logits), summed_step(logits, weight)
    own = entropy_change.own_logit(stats.logp, stats.entropy.unsqueeze(-1), weight)
    slope, other = (median_order(logits, step, each.sum(-1)) for each in (flow, own))
    return Finding(
        f"median slope {slope:.3f}",
        {"slope": slope},
        judge(abs(slope - 2) <= 0.1 < abs(other - 2)),
        null=f"slope {other:.3f}",
    )


def boundary(logits: Tensor) -> Tensor:
    """Return p* of each instance, (instances,): the root of p(log p + H) = S2L + H·S2 above e^(−H), by bisection."""
    stats = policy_stats(logits)
    level = stats.s2l + stats.entropy * stats.s2
    low, high = (-stats.entropy).exp(), torch.ones_like(stats.entropy)
    for _ in range(60):
        p = (low + high) / 2
        below = p * (p.log() + stats.entropy) < level
        low, high = torch.where(below, p, low), torch.where(below, high, p)
    return low


def naive_boundary(logits: Tensor) -> Tensor:
    """Return e^(−H) of each instance, (instances,)."""
    return (-policy_stats(logits).entropy).exp()


def wrong_side(logits: Tensor, truth: Tensor, star: Tensor) -> float:
    """Return the share of sampled tokens whose ΔH has the sign of the other side of `star`; those within 1% of it do
    not count."""
    p, star = policy_stats(logits).logp.exp(), star.unsqueeze(-1)
    clear = (p / star - 1).abs() > 10 * STEP
    return float((p * (clear & ((p < star) != (truth > 0)))).sum(-1).mean())


def between_boundaries(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return p*/e^(−H), and the probability of the arms with e^(−H) < p < p*, (instances,) each."""
    stats = policy_stats(logits)
    p, star, entropy = stats.logp.exp(), boundary(logits), stats.entropy
    inside = (stats.logp > -entropy.unsqueeze(-1)) & (p < star.unsqueeze(-1))
    return star * entropy.exp(), (p * inside).sum(-1)


@claim(
    "sign-boundary",
    paper=DYNAMICS,
    source="the sign in theorem 3.3 (arXiv 2602.03392), against STEER's theorem 1 and remark 3; p* ≥ e^(−H) and the "
    "share of tokens in between were not found elsewhere",
    words="STEER's theorem 1 puts the boundary of rewarded tokens that raise and that lower the entropy at p = e^(−H); "
    "with the whole gradient it is at p*, where p*(log p* + H) = S2L + H·S2, and p* ≥ e^(−H)",
    statement=(
        r"w > 0: \quad \Delta H > 0 \iff p < p^*,",
        r"p^* (\log p^* + H) = S_{2L} + H S_2, \quad p^* \ge e^{-H}",
    ),
    assumption="one sampled token of positive weight, full softmax gradient",
    theorem=EXACT_FLOW,
    threshold="no wrong side among tokens not within 1% of p*, ten times the step; at e^(−H), the null, more than "
    "a thousandth of the tokens are on the wrong side",
    null="the boundary at e^(−H)",
    expected=HOLDS,
    mutations=(
        Mutation("p* were e^(−H)", Swap(__name__, "boundary", always(naive_boundary))),
        Mutation("p* were 10% larger", Swap(__name__, "boundary", lambda f: lambda z: 1.1 * f(z))),
        Mutation("the token were punished", Swap(__name__, "every_token", lambda f: lambda z, w: f(z, -w))),
    ),
    live=Live(
        "token-sign",
        turned={"weight": -1.0},
        conditions=(within("weight", low=0.1), equals("moves", "every logit"), TINY_STEP),
    ),
)
def sign_boundary(effort: Effort) -> Finding:
    """A rewarded token also takes probability from likely arms, so it must be likelier than e^(−H) before it lowers
    the entropy."""
    numbers, wrong, least, naive = {}, 0.0, 1.0, []
    for std in SPREADS:
        logits = random_logits(effort.instances, ARMS, std, f"signs {std}")
        ratio, share = between_boundaries(logits)
        _, truth = every_token(logits, torch.ones_like(logits))
        wrong = max(wrong, wrong_side(logits, truth, boundary(logits)))
        naive.append(wrong_side(logits, truth, naive_boundary(logits)))
        least = min(least, float(ratio.min()))
        numbers[f"p*/e^(−H), logit std {std:g}"] = float(ratio.median())
        numbers[f"share between, logit std {std:g}"] = float(share.mean())
    values = list(numbers.values())
    return Finding(
        f"wrong sign in {wrong:.0%} of tokens that are not within 1% of p*; median p*/e^(−H) {min(values[::2]):.2f} to "
        f"{max(values[::2]):.2f}, with {min(values[1::2]):.0%} to {max(values[1::2]):.0%} of sampled tokens in between",
        {**numbers, "wrong": wrong, "least p*/e^(−H)": least},
        judge(wrong == 0 and least >= 1 and min(naive) > FEW),
        null=f"wrong side for {min(naive):.1%} to {max(naive):.1%}",
    )


@picture("sign-boundary", caption="ΔH of a rewarded token by its probability, over random states.")
def draw_boundary(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    logits = random_logits(effort.instances, ARMS, 2.0, "signs 2.0")
    flow, _ = every_token(logits, torch.ones_like(logits))
    p, star = policy_stats(logits).logp.exp(), boundary(logits).unsqueeze(-1)
    inside = (policy_stats(logits).logp > -policy_stats(logits).entropy.unsqueeze(-1)) & (p < star)
    for mask, label, colour in (
        (~inside, "STEER's and OPEFO's sign is right", "C0"),
        (inside, "between e^(−H) and p*: it is wrong", "C1"),
    ):
        axes.plot(p[mask], flow[mask], ".", markersize=2.5, label=label, color=colour)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="probability p of the token", ylabel="ΔH/η (nats)", xscale="log", xlim=(1e-4, 1))
    axes.legend()


def own_truth(logits: Tensor, weight: Tensor) -> Tensor:
    """Return the derivative of H if the sampled token moves its own logit alone, (instances, K)."""
    stats = policy_stats(logits)
    return entropy_change.own_logit(stats.logp, stats.entropy.unsqueeze(-1), weight)


@claim(
    "opefo-sign",
    paper="OPEFO",
    source="section 4, equation 6, and section 5.1",
    words="the sign of a token's ΔH, −A·(1−p)²·(lp + H), tells whether its update raises or lowers the entropy",
    statement=r"\operatorname{sign} \Delta H = -\operatorname{sign} A\,(\log p + H)",
    assumption="one sampled token, full softmax gradient",
    theorem=OPEFO_1,
    threshold=f"the wrong sign for less than {FEW:.1%} of sampled tokens: those are at the boundary, where the second "
    "order decides",
    null="the exact flow, which the measurement must find correct",
    expected=FAILS,
    mutations=(
        Mutation("the formula were the exact flow", Swap(entropy_change, "opefo", lambda f: exact_flow)),
        Mutation(
            "only the token's own logit moved",
            Swap(__name__, "every_token", lambda f: lambda z, w: (f(z, w)[0], own_truth(z, w))),
        ),
    ),
    live=Live("token-sign", values={"boundary": "e^(−H)"}, turned={"boundary": "p*"}, conditions=(TINY_STEP,)),
)
def opefo_sign(effort: Effort) -> Finding:
    """The same boundary as STEER, and the same tokens on the wrong side of it."""
    return sign_finding(entropy_change.opefo, effort)
