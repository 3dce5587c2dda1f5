"""EntroPIC: what positive and negative samples do to the entropy, and what P and PI control reach."""

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from entrostat import StepStats, make
from entrostat.tokens import Tokens

from ..config import Config
from ..environments import ENVIRONMENTS
from ..policy import logit_gradient, softmax_policy, token_logp
from ..problem import draw_problem
from ..rollout import enumerate_rollout
from ..simulator import simulate
from .ensembles import entropy_change
from .registry import HOLDS, Effort, Finding, claim, holds_if, judge

PAPER = "EntroPIC"
TARGET, TAU = 1.0, 0.5
"""Of the exact environment."""
POSITIVES_ONLY, NEGATIVES_ONLY = 1.0, -1.0
"""α that leaves the tokens of one sign only."""


def expected_step(logits: Tensor, success: Tensor, alpha: Tensor) -> Tensor:
    """Expected on-policy step E[Δz] per unit learning rate, (runs, S, K), with EntroPIC's α (runs,) on all tokens."""
    policy = softmax_policy(logits)
    rollout = enumerate_rollout(policy, success)
    controller = make("entropic", target=0.0, kp=1.0, ki=0.0, tau=0.0, alpha_max=10.0)
    controller.observe(StepStats(entropy=alpha))
    logp = token_logp(policy, rollout.arm)
    plan = controller.plan(Tokens(logp=logp, old_logp=logp, advantage=rollout.advantage.flatten(1)))
    dlogp, _ = plan.coefficients(logp)
    assert rollout.frequency is not None
    return -logits.shape[1] * logit_gradient(policy, rollout.arm, dlogp * rollout.frequency.flatten(1), None)


def collinearity_error(logits: Tensor, success: Tensor, alpha: Tensor) -> Tensor:
    """Largest |E[Δz_α] − (1 + α(1−2ρ))·E[Δz_0]| of a state relative to the largest |E[Δz_0]|; the largest of all."""
    base = expected_step(logits, success, torch.zeros_like(alpha))
    rate = (softmax_policy(logits).p * success).sum(-1, keepdim=True)
    factor = 1 + alpha.reshape(-1, 1, 1) * (1 - 2 * rate)
    error = (expected_step(logits, success, alpha) - factor * base).abs().amax(-1)
    return (error / base.abs().amax(-1)).max()


@claim(
    "cor4.1-collinear",
    source="ours, on EntroPIC corollary 4.1",
    assumption="on-policy SGD, binary rewards, weights that depend on sign(A) alone",
    predicted="E[Δz_α] = (1 + α(1−2ρ))·E[Δz_0]: the weights cannot turn the expected step",
    expected=HOLDS,
)
def collinear(effort: Effort) -> Finding:
    logits, success = draw_problem(ENVIRONMENTS["noisy"], torch.arange(effort.runs), torch.float64)
    worst = max(
        float(collinearity_error(logits, success, torch.full((effort.runs,), alpha, dtype=torch.float64)))
        for alpha in (-1.0, -0.5, 0.3, 1.0)
    )
    return Finding(f"relative error {worst:.0e}", {"relative error": worst}, judge(worst < 1e-10))


def positives_raise(effort: Effort, right_tilt: float) -> float:
    """Share of initial states of `noisy` whose entropy an on-policy step on positive samples alone raises."""
    environment = replace(ENVIRONMENTS["noisy"], right_tilt=right_tilt)
    logits, success = draw_problem(environment, torch.arange(effort.runs), torch.float64)
    step = expected_step(logits, success, torch.full((effort.runs,), POSITIVES_ONLY, dtype=torch.float64))
    return float((entropy_change(logits, 1e-3 * step) > 0).double().mean())


def reused_samples(effort: Effort) -> tuple[float, dict[str, float]]:
    """Entropy of `noisy` at the start, and at the end under positives only, all samples, and negatives only."""
    alphas = {"positives": POSITIVES_ONLY, "all": 0.0, "negatives": NEGATIVES_ONLY}
    each = [alpha for alpha in alphas.values() for _ in range(effort.runs)]
    always = {"target": [-1e3 * alpha for alpha in each], "alpha_max": [abs(alpha) or 1e-12 for alpha in each]}
    config = Config(
        env="noisy",
        controller="entropic",
        controller_args={**always, "kp": 1.0, "ki": 0.0, "tau": 0.0},
        states=48,
        rollouts=150,
    )
    entropy = simulate(config, list(range(effort.runs)) * len(alphas)).entropy.reshape(len(alphas), effort.runs, -1)
    return float(entropy[:, :, 0].mean()), {
        name: float(h[:, -1].mean()) for name, h in zip(alphas, entropy, strict=True)
    }


@claim(
    "cor4.1-signs",
    source=f"{PAPER}, corollary 4.1",
    assumption="binary rewards",
    predicted="positive samples lower the entropy, negative samples raise it",
    expected=holds_if("samples are reused under a ratio clip"),
)
def signs(effort: Effort) -> Finding:
    share, untilted = positives_raise(effort, ENVIRONMENTS["noisy"].right_tilt), positives_raise(effort, 0.0)
    start, final = reused_samples(effort)
    reused = final["positives"] < final["all"] < final["negatives"]
    return Finding(
        f"on-policy, positives raise H in {share:.0%} of states ({untilted:.0%} when right arms are not likelier); "
        f"reused: positives {final['positives']:.2f}, all {final['all']:.2f}, negatives {final['negatives']:.2f} "
        f"(from {start:.2f})",
        {
            "positives raise H": share,
            "positives raise H, right arms anywhere": untilted,
            "initial H": start,
            **{f"final H, {name}": value for name, value in final.items()},
        },
        judge(share == 0, "samples are reused under a ratio clip", reused),
    )


def fixed_point_error(kp: float) -> float:
    """Closed form of |H − target| that P control leaves in `exact`.

    With p the right arm's probability, ρ = q2 + p(q1−q2), and the base drift is cancelled by
    α* = (q1−q2)/(q1(1−ρ) + (1−q1)ρ); the error is α*/Kp where H(p) = target − α*/Kp, found by bisection in p.
    """
    environment = ENVIRONMENTS["exact"]
    q1, q2, others = environment.reward_right, environment.reward_wrong, environment.arms - 1

    def alpha(p: Tensor) -> Tensor:
        rate = q2 + p * (q1 - q2)
        return (q1 - q2) / (q1 * (1 - rate) + (1 - q1) * rate)

    def surplus(p: Tensor) -> Tensor:
        entropy = -(p * p.log() + (1 - p) * ((1 - p) / others).log())
        return entropy - TARGET + alpha(p) / kp

    low, high = torch.tensor([TAU, 1 - 1e-12], dtype=torch.float64)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
    return float(alpha(low) / kp)


GAINS = {"P, Kp = 1": (1.0, 0.0), "P, Kp = 4": (4.0, 0.0), "PI": (1.0, 0.05)}


@cache
def final_errors() -> dict[str, float]:
    """|H − target| at the end of a run in `exact`, for each of GAINS."""
    kp, ki = zip(*GAINS.values(), strict=True)
    gains = {"kp": kp, "ki": ki, "tau": TAU}
    config = Config(env="exact", controller="entropic", target=TARGET, controller_args=gains, rollouts=2500)
    entropy = simulate(config, [0] * len(GAINS)).entropy[:, -1]
    return {name: abs(float(value) - TARGET) for name, value in zip(GAINS, entropy, strict=True)}


def error_without_drift() -> float:
    """What P control leaves when all arms are rewarded alike and one starts likely enough for τ to act on it."""
    config = Config(
        env="exact",
        controller="entropic",
        target=TARGET,
        controller_args={"kp": 1.0, "ki": 0.0, "tau": TAU},
        reward_right=0.5,
        reward_wrong=0.5,
        right_logit=3.0,
        rollouts=1000,
    )
    return abs(float(simulate(config, [0]).entropy[0, -1]) - TARGET)


@claim(
    "thm4.2-p-control",
    source=f"{PAPER}, theorem 4.2",
    assumption="on-policy, P control (Ki = 0)",
    predicted="the entropy error goes to 0",
    expected=holds_if("the base drift at the target is zero"),
)
def p_control(effort: Effort) -> Finding:
    one, four, still = final_errors()["P, Kp = 1"], final_errors()["P, Kp = 4"], error_without_drift()
    return Finding(
        f"error {one:.4f} at Kp = 1, {four:.4f} at Kp = 4; {still:.0e} without drift",
        {"error Kp=1": one, "error Kp=4": four, "error without drift": still},
        judge(max(one, four) < 1e-5, "the base drift at the target is zero", still < 1e-10),
    )


@claim(
    "thm4.2-fixed-point",
    source="ours, on EntroPIC theorem 4.2",
    assumption="exact environment, P control",
    predicted="error = α*/Kp, α* = (q1−q2)/(q1(1−ρ) + (1−q1)ρ): .4133 at Kp = 1, .1027 at Kp = 4",
    expected=HOLDS,
)
def fixed_point(effort: Effort) -> Finding:
    closed = {name: fixed_point_error(GAINS[name][0]) for name in ("P, Kp = 1", "P, Kp = 4")}
    gaps = {f"gap, {name}": abs(final_errors()[name] - error) for name, error in closed.items()}
    form = ", ".join(f"{name}: {error:.4f}" for name, error in closed.items())
    return Finding(
        f"closed form {form}; simulation within {max(gaps.values()):.0e}", gaps, judge(max(gaps.values()) < 1e-5)
    )


@claim(
    "thm4.3-pi-control",
    source=f"{PAPER}, theorem 4.3",
    assumption="PI control; exact environment, base drift not zero",
    predicted="the entropy error goes to 0",
    expected=HOLDS,
)
def pi_control(effort: Effort) -> Finding:
    error = final_errors()["PI"]
    return Finding(f"error {error:.0e}", {"error": error}, judge(error <= 1e-10))
