"""Theorems of STEER and OPEFO under their assumption 1: a sampled token moves its own logit alone."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change, policy_stats

from .ensembles import STEPS, median_order, random_logits, random_vector
from .ensembles import entropy_change as measured_change
from .pictures import picture
from .registry import FAILS, Effort, Finding, claim, holds_if, judge
from .tokens import ARMS, SPREADS, STEP, wrong_signs

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


# Null: the bracket as implemented, which is of the same sign and rank, has slope 1.
# Mutations that turn it: a dropped factor p, 1/π_old or clip indicator, the opposite sign, or the whole gradient.
@claim(
    "steer-thm1",
    paper="STEER",
    source="theorem 1, equations 8 and 13 to 16",
    assumption="a GRPO update of every action of a state, π_old other than π, clip .2/.2",
    predicted="ΔH = Ω + O(η²): slope 2",
    expected=holds_if(OWN),
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


def alone(logits: Tensor, weight: Tensor, eta: float = STEP) -> Tensor:
    """Return ΔH/η of each arm as a sampled token that moves its own logit alone, (instances, K)."""
    step = torch.diag_embed(weight * (1 - torch.softmax(logits, -1)))
    return measured_change(logits.unsqueeze(-2).expand_as(step), eta * step) / eta


def wrong_signs_alone(std: float, effort: Effort) -> float:
    """Return what `wrong_signs` does for STEER's estimate if the sampled token's own logit alone moves.

    Tokens within 1% of e^(−H) are left out: there the second order of the step decides.
    """
    logits = random_logits(effort.instances, ARMS, std, f"signs {std}")
    stats = policy_stats(logits)
    entropy, weight = stats.entropy.unsqueeze(-1), torch.ones_like(logits)
    wrong = entropy_change.steer(stats.logp, entropy, weight) * alone(logits, weight) < 0
    near = (stats.logp + entropy).abs() < 10 * STEP
    return float((stats.logp.exp() * (wrong & ~near)).sum(-1).mean())


# Null: a coin has the wrong sign for half of the tokens, "every rewarded token lowers the entropy" for the share of
# tokens below e^(−H). Mutations that turn it: the opposite sign, log p without H.
@claim(
    "steer-sign",
    paper="STEER",
    source="theorem 1",
    assumption="one sampled token",
    predicted="ΔH has the sign of −A·(lp + H): boundary at p = e^(−H)",
    expected=holds_if(OWN),
)
def sign(effort: Effort) -> Finding:
    """If only its own logit moved, a rewarded token would lower the entropy from p = e^(−H) on. The whole gradient also
    takes logit from likelier actions, so tokens slightly likelier than e^(−H) raise the entropy."""
    whole = [wrong_signs(entropy_change.steer, effort, std) for std in SPREADS]
    alone = [wrong_signs_alone(std, effort) for std in SPREADS]
    numbers = {f"wrong sign, logit std {std:g}": share for std, share in zip(SPREADS, whole, strict=True)}
    numbers |= {f"wrong sign, own logit, logit std {std:g}": share for std, share in zip(SPREADS, alone, strict=True)}
    return Finding(
        f"{min(whole):.1%} to {max(whole):.1%} of sampled tokens have the wrong sign under the whole gradient, "
        f"{max(alone):.1%} if their own logit alone moves (p within 1% of e^(−H) aside)",
        numbers,
        judge(max(whole) < 1e-3, OWN, max(alone) == 0),
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


# Null: no change at all, whose relative mean squared error is 1. Mutations that turn it: the exact flow or the
# own-logit part in place of equation 6, which both predict better than no change.
@claim(
    "opefo-thm1",
    paper="OPEFO",
    source="theorem 1, equation 6",
    assumption="expected on-policy update of a state, any advantage",
    predicted="ΔH = −η·E_p[A(1−p)²(log p + H)]: a smaller error than predicting no change",
    expected=FAILS,
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
    )
