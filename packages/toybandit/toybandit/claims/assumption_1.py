"""Theorems of STEER and OPEFO under their assumption 1: a sampled token moves its own logit alone."""

from collections.abc import Callable

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change, policy_stats

from .ensembles import STEPS, median_order, random_logits, random_vector
from .ensembles import entropy_change as measured_change
from .live_case import TINY_STEP, Live, equals
from .mutations import Mutation, Swap, always, negated
from .pictures import picture
from .registry import FAILS, Effort, Finding, claim, holds_if, judge
from .theorems import Theorem
from .tokens import ARMS, FEW, OPEFO_1, SPREADS, STEP, wrong_signs

OWN = "a token moves its own logit alone (assumption 1)"
EPSILON = 0.2
"""Ratio clip on both sides, STEER equation 1."""
ORDER_TOLERANCE = 0.1


def second_order(slope: float) -> bool:
    return abs(slope - 2) <= ORDER_TOLERANCE


def weights_and_policies(effort: Effort) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits of π, π_old, and 1_clip·A of every action, (instances, ARMS) each; ratios are about e^±½."""
    logits = random_logits(effort.instances, ARMS, 2.0, "steer theorem 1")
    old = torch.softmax(logits + random_logits(effort.instances, ARMS, 0.5, "steer theorem 1 old"), -1)
    advantage = random_vector(effort.instances, ARMS, "steer theorem 1 advantage")
    ratio = torch.softmax(logits, -1) / old
    clipped = ((advantage > 0) & (ratio > 1 + EPSILON)) | ((advantage < 0) & (ratio < 1 - EPSILON))
    return logits, old, advantage.masked_fill(clipped, 0.0)


def omega(logits: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    """Return Ω of STEER equation 8 with L = 1, per unit learning rate: (instances, K) each to (instances,)."""
    stats = policy_stats(logits)
    p = stats.logp.exp()
    bracket = advantage / old * p * (1 - p) * (stats.logp + stats.entropy.unsqueeze(-1))
    return -(p * bracket).sum(-1)


def own_step(logits: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    """Return the step of STEER equation 14 of every action, per unit learning rate, (instances, K)."""
    p = torch.softmax(logits, -1)
    return p / old * advantage * (1 - p)


def softmax_step(logits: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    """Return Σ_a (π/π_old)·A·(e_a − p), the step of the same tokens with the whole gradient, (instances, K)."""
    p = torch.softmax(logits, -1)
    weight = p / old * advantage
    return weight - p * weight.sum(-1, keepdim=True)


def implemented(logits: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    """Return Σ_a of the bracket that is computed for a token, which has no second factor p, (instances,)."""
    stats = policy_stats(logits)
    weight = advantage * stats.logp.exp() / old
    return entropy_change.steer(stats.logp, stats.entropy.unsqueeze(-1), weight).sum(-1)


STEER_1 = Theorem(
    name="STEER, theorem 1",
    test="test_steer_theorem_1.py",
    derivation=(
        "Assumption 1: Δz_a = η·w·(1 − p_a) for the sampled token alone (equation 14).",
        "Times ∂H/∂z_a = −p_a(lp + H): ΔH = −η·w·p_a(1 − p_a)(lp + H), with a factor p_a.",
        "The whole gradient, w(e_a − p), also moves the other logits and adds η·w·(S2L + H·S2 − p_a·f_a).",
    ),
)
FOUR_QUADRANTS = Theorem(
    name="STEER, four quadrants",
    test="test_steer_quadrants.py",
    derivation=(
        "Under assumption 1 ΔH has the sign of −A(lp + H), and lp + H > 0 where p > e^(−H).",
        "A > 0: likely tokens lower H (I), unlikely ones raise it (II). A < 0: the opposite (III, IV).",
        "With the whole gradient the boundary is p* ≥ e^(−H).",
    ),
)


@claim(
    "steer-thm1",
    paper="STEER",
    source="section 3.1, theorem 1, and its proof in the appendix",
    words="the change of a state's entropy by an update of GRPO is Ω up to an error of order η²",
    statement=(
        r"\Delta H = \Omega + O(\eta^2),",
        r"\Omega = -\eta\, \mathbb{E}_{\pi}\Bigl[\tfrac{A}{\pi_{\mathrm{old}}}\, \pi (1 - \pi)(\log \pi + H)\Bigr]",
    ),
    assumption="a GRPO update of every action of a state, π_old other than π, clip .2/.2",
    theorem=STEER_1,
    threshold=f"median slope of the error over η within {ORDER_TOLERANCE} of 2, so that all of the first order is "
    "there, and outside for the null",
    null="the bracket of a token as implemented and released, under assumption 1, which has the sign of Ω's terms and "
    "lacks one factor p",
    expected=holds_if(OWN),
    mutations=(
        Mutation("Ω had the other sign", Swap(__name__, "omega", negated)),
        Mutation("Ω lacked a factor p", Swap(__name__, "omega", lambda f: implemented)),
        Mutation(
            "Ω lacked 1/π_old", Swap(__name__, "omega", lambda f: lambda z, old, a: f(z, torch.ones_like(old), a))
        ),
        Mutation("tokens moved every logit", Swap(__name__, "own_step", lambda f: softmax_step)),
    ),
    live=Live("omega", turned={"moves": "every logit"}, conditions=(equals("moves", "its own logit", stated=False),)),
)
def theorem_1(effort: Effort) -> Finding:
    """Ω is the first-order change if each token moves its own logit alone, and if it keeps the factor p that equations
    13 and 14 bring. The bracket of a single token, as implemented and released, lacks that factor and is no ΔH; nor is
    Ω under the whole gradient of the softmax, which also lowers the logits of the other actions."""
    case = weights_and_policies(effort)
    logits, flow = case[0], omega(*case)
    slopes = {
        "assumption 1": median_order(logits, own_step(*case), flow),
        "assumption 1, bracket as implemented": median_order(logits, own_step(*case), implemented(*case)),
        "whole gradient": median_order(logits, softmax_step(*case), flow),
    }
    numbers = {f"slope, {name}": slope for name, slope in slopes.items()}
    measured = ", ".join(f"{name} {slope:.3f}" for name, slope in slopes.items())
    apart = not second_order(slopes["assumption 1, bracket as implemented"])
    return Finding(
        f"median slope: {measured}",
        numbers,
        judge(second_order(slopes["whole gradient"]), OWN, apart and second_order(slopes["assumption 1"])),
        null=f"slope {slopes['assumption 1, bracket as implemented']:.3f}",
    )


@picture("steer-thm1", caption="Median error of STEER's Ω against the step size η.")
def draw_errors(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    case = weights_and_policies(effort)
    pairs = {
        "assumption 1": (own_step(*case), omega(*case)),
        "assumption 1, bracket as implemented": (own_step(*case), implemented(*case)),
        "whole gradient": (softmax_step(*case), omega(*case)),
    }
    for name, (step, predicted) in pairs.items():
        errors = [(measured_change(case[0], eta * step) - eta * predicted).abs().median() for eta in STEPS]
        axes.loglog(STEPS, errors, marker="o", label=name)
    axes.set(xlabel="η", ylabel="|ΔH − Ω| (nats)")
    axes.legend()


Estimate = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Formula of a token's change from log p, H and weight."""


def falling(logp: Tensor, entropy: Tensor, weight: Tensor) -> Tensor:
    """Return −w: every rewarded token lowers the entropy."""
    return -weight.expand_as(logp)


def alone(logits: Tensor, weight: Tensor, eta: float = STEP) -> Tensor:
    """Return ΔH/η of each arm as a sampled token that moves its own logit alone, (instances, K)."""
    step = torch.diag_embed(weight * (1 - torch.softmax(logits, -1)))
    return measured_change(logits.unsqueeze(-2).expand_as(step), eta * step) / eta


def wrong_signs_alone(std: float, effort: Effort, estimate: Estimate) -> float:
    """Return what `wrong_signs` does if the sampled token's own logit alone moves.

    Tokens within 1% of e^(−H) are left out: there the second order of the step decides.
    """
    logits = random_logits(effort.instances, ARMS, std, f"signs {std}")
    stats = policy_stats(logits)
    entropy, weight = stats.entropy.unsqueeze(-1), torch.ones_like(logits)
    wrong = estimate(stats.logp, entropy, weight) * alone(logits, weight) < 0
    near = (stats.logp + entropy).abs() < 10 * STEP
    return float((stats.logp.exp() * (wrong & ~near)).sum(-1).mean())


@claim(
    "steer-sign",
    paper="STEER",
    source="section 3.1, theorem 1 and remark 3",
    words="whether a token raises or lowers the entropy follows from the sign of −A·(log p + H): the boundary is at "
    "p = e^(−H)",
    statement=r"\operatorname{sign} \Delta H = -\operatorname{sign} A\,(\log p + H)",
    assumption="one sampled token",
    theorem=FOUR_QUADRANTS,
    threshold=f"the wrong sign for less than {FEW:.1%} of sampled tokens under the whole gradient, and for none if its "
    "own logit alone moves, where the first order is exact; the null has more",
    null="every rewarded token lowers the entropy",
    expected=holds_if(OWN),
    mutations=(
        Mutation("the sign were opposite", Swap(entropy_change, "steer", negated)),
        Mutation("H were left out", Swap(entropy_change, "steer", lambda f: lambda lp, h, w: f(lp, 0 * h, w))),
        Mutation("every rewarded token lowered the entropy", Swap(entropy_change, "steer", always(falling))),
    ),
    live=Live(
        "token-sign",
        values={"boundary": "e^(−H)", "moves": "its own logit"},
        turned={"moves": "every logit"},
        conditions=(equals("moves", "its own logit", stated=False), TINY_STEP),
    ),
)
def sign(effort: Effort) -> Finding:
    """If only its own logit moved, a rewarded token would lower the entropy from p = e^(−H) on. The whole gradient also
    takes logit from likelier actions, so tokens slightly likelier than e^(−H) raise the entropy."""
    whole = [wrong_signs(entropy_change.steer, effort, std) for std in SPREADS]
    alone = [wrong_signs_alone(std, effort, entropy_change.steer) for std in SPREADS]
    none = [wrong_signs_alone(std, effort, falling) for std in SPREADS]
    numbers = {f"wrong sign, logit std {std:g}": share for std, share in zip(SPREADS, whole, strict=True)}
    numbers |= {f"wrong sign, own logit, logit std {std:g}": share for std, share in zip(SPREADS, alone, strict=True)}
    return Finding(
        f"{min(whole):.1%} to {max(whole):.1%} of sampled tokens have the wrong sign under the whole gradient, "
        f"{max(alone):.1%} if their own logit alone moves (p within 1% of e^(−H) aside)",
        numbers,
        judge(max(whole) < FEW, OWN, max(alone) == 0 and min(none) > FEW),
        null=f"wrong for {min(none):.1%} to {max(none):.1%}",
    )


def relative_error(estimate: Tensor, truth: Tensor) -> float:
    """Return the mean squared error relative to predicting no change."""
    return float(((estimate - truth) ** 2).sum() / (truth**2).sum())


def correlation(x: Tensor, y: Tensor) -> float:
    """Return Pearson's correlation of two vectors."""
    return float(torch.corrcoef(torch.stack([x, y]))[0, 1])


STATE_FORMULAS = {
    "equation 6": entropy_change.opefo,
    "own logit": entropy_change.own_logit,
    "exact": None,
}
"""Formulas of a token whose mean over a state's actions is its change; the exact flow of a state is lemma 1's."""


def state_changes(effort: Effort) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return ΔH/η by each of STATE_FORMULAS, and as measured under each kind of step; (instances,) each.

    A step is the expected on-policy update of a state with any advantage.
    """
    logits = random_logits(effort.instances, ARMS, 2.0, "opefo state")
    advantage = random_vector(effort.instances, ARMS, "opefo state advantage")
    stats = policy_stats(logits)
    p, entropy = stats.logp.exp(), stats.entropy.unsqueeze(-1)
    steps = {
        "whole gradient": p * (advantage - (p * advantage).sum(-1, keepdim=True)),
        "assumption 1": p * (1 - p) * advantage,
    }
    found = {
        name: (p * formula(stats.logp, entropy, advantage)).sum(-1)
        if formula
        else entropy_change.lemma1(stats.logp, steps["whole gradient"])
        for name, formula in STATE_FORMULAS.items()
    }
    return found, {name: measured_change(logits, STEP * step) / STEP for name, step in steps.items()}


@claim(
    "opefo-thm1",
    paper="OPEFO",
    source="section 4, theorem 1, equation 6",
    words="the first-order change of a state's entropy by an on-policy update is −η·E_p[A·(1−p)²·(log p + H)]",
    statement=r"\Delta H = -\eta\, \mathbb{E}_{\pi}\bigl[A\,(1 - \pi)^2 (\log \pi + H)\bigr]",
    assumption="expected on-policy update of a state, any advantage, with the whole gradient or under assumption 1",
    theorem=OPEFO_1,
    threshold="a smaller mean squared error than the null under one of them: the least that an estimate must do",
    null="no change, ΔH = 0",
    expected=FAILS,
    mutations=(
        Mutation("one factor 1−p were p", Swap(STATE_FORMULAS, "equation 6", always(entropy_change.own_logit))),
    ),
    live=Live("state-change", turned={"formula": "exact"}),
)
def opefo_state(effort: Effort) -> Finding:
    """The expectation over a state's actions does not repair what the formula of a single token gets wrong: it has a
    factor 1−p where the derivation from assumption 1 gives p, so rare actions count too much. The error is larger than
    that of predicting no change, under the whole gradient and under assumption 1."""
    found, truth = state_changes(effort)
    whole = truth["whole gradient"]
    errors = {name: relative_error(found["equation 6"], change) for name, change in truth.items()}
    others = {name: relative_error(found[name], whole) for name in ("own logit", "exact")}
    r = correlation(found["equation 6"], whole)
    return Finding(
        f"relative MSE {errors['whole gradient']:.2f} under the whole gradient (1 is no change; r {r:.2f}), "
        f"{errors['assumption 1']:.2f} under assumption 1; of the own-logit part {others['own logit']:.2f}, of "
        f"the exact flow {others['exact']:.0e}",
        {f"relative MSE, {name}": x for name, x in (errors | others).items()} | {"r": r},
        judge(min(errors.values()) < 1),
        null="relative MSE 1",
    )
