"""EntroPIC: effects of positive and negative samples on the entropy, and the errors of P and PI control."""

from dataclasses import replace
from math import inf

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import StepStats, make
from entrostat.controllers.entropic import Entropic
from entrostat.tokens import Tokens

from ..config import Config
from ..environments import ENVIRONMENTS, Environment
from ..policy import Policy, logit_gradient, token_logp
from ..problem import draw_problem
from ..rollout import Rollout, enumerate_rollout
from ..simulator import simulate
from ..trajectory import Array
from .checks import Values, above, numbers_of, rising, settle, told
from .ensembles import entropy_change
from .live_case import NOISY, ON_POLICY, Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always, faults
from .pictures import panels, picture
from .registry import HOLDS, Effort, Finding, claim, holds_if, judge
from .runs import entropies
from .theorems import Theorem

PAPER = "EntroPIC"
TARGET, TAU = 1.0, 0.5
"""Target (nats) and τ in the exact environment."""
LIMIT = 16.0
"""Upper limit of |α|."""
POSITIVES_ONLY = 1.0
"""Value of α that leaves only the positive tokens."""


def expected_step(logits: Tensor, success: Tensor, alpha: Tensor, tau: float = 0.0) -> Tensor:
    """Return the expected on-policy step E[Δz] per unit learning rate, (runs, S, K), with α (runs,) on p > tau."""
    policy = Policy(logits)
    return weighted_step(policy, policy, enumerate_rollout(policy, success), alpha, tau)


def weighted_step(policy: Policy, old: Policy, rollout: Rollout, alpha: Tensor, tau: float = 0.0) -> Tensor:
    """Return the step per unit learning rate, (runs, S, K), on the enumerated outcomes of `old`, with α (runs,)."""
    controller = make("entropic", target=LIMIT, kp=1.0, ki=0.0, tau=tau, alpha_max=LIMIT)
    controller.observe(StepStats(entropy=LIMIT + alpha))
    logp, old_logp = token_logp(policy, rollout.arm), token_logp(old, rollout.arm)
    plan = controller.plan(Tokens(logp=logp, old_logp=old_logp, advantage=rollout.advantage.flatten(1)))
    dlogp, _ = plan.coefficients(logp)
    assert rollout.frequency is not None
    return -policy.p.shape[1] * logit_gradient(policy, rollout.arm, dlogp * rollout.frequency.flatten(1), None)


def collinearity_error(logits: Tensor, success: Tensor, alpha: Tensor, tau: float = 0.0) -> Tensor:
    """Return the maximum over states of |E[Δz_α] − (1 + α(1−2ρ))·E[Δz_0]|, relative to the state's max |E[Δz_0]|."""
    base = expected_step(logits, success, torch.zeros_like(alpha))
    rate = (Policy(logits).p * success).sum(-1, keepdim=True)
    error = (expected_step(logits, success, alpha, tau) - step_factor(alpha.reshape(-1, 1, 1), rate) * base).abs()
    return (error.amax(-1) / base.abs().amax(-1)).max()


def step_factor(alpha: Tensor, rate: Tensor) -> Tensor:
    """Return 1 + α(1−2ρ) with ρ the success rate of a state."""
    return 1 + alpha * (1 - 2 * rate)


COROLLARY_4_1 = Theorem(
    name="EntroPIC, corollary 4.1",
    test="test_entropic_corollary_4_1.py",
    derivation=(
        "The proof puts the same A⁺ for all arms into theorem 1; that A is not centred, and its step is 0.",
        "R is 1 with probability q_a: E[Δz_α] = p_a[(1+α)(1−ρ)q_a − (1−α)ρ(1−q_a)] − p_a·(its mean).",
        "= p_a(q_a − ρ)·[(1+α)(1−ρ) + (1−α)ρ]: the step for α = 0, times 1 + α(1 − 2ρ).",
    ),
)
THEOREM_4_2 = Theorem(
    name="EntroPIC, theorem 4.2",
    test="test_entropic_theorem_4_2.py",
    derivation=(
        "P: e⁺ = (1 − s)e + d rests at e = d/s, which is 0 only without drift.",
        "PI: V = e² + κS² has ΔV without a product e·S only for κ = c/(1 − c), positive if c < 1.",
        "ΔV = ((1 − s)²/(1 − c) − 1)e² − c²/(1 − c)·S² < 0 if (1 − s)² < 1 − c: sufficient, not necessary.",
    ),
)
THEOREM_4_3 = Theorem(
    name="EntroPIC, theorem 4.3",
    test="test_entropic_theorem_4_3.py",
    derivation=(
        "At rest e⁺ = e gives g·α = d. P: e = d/s. PI: S⁺ = S gives e = 0 and S = d/c.",
        "The loop's matrix [[1 − s − c, −c], [1, 1]] has determinant 1 − s and trace 2 − s − c.",
        "Jury: both poles are inside the unit circle if and only if 0 < s < 2, c > 0 and 2s + c < 4.",
    ),
)


@claim(
    "cor4.1-collinear",
    paper=PAPER,
    source="on corollary 4.1; follows from GRPO's contrastive form (arXiv 2503.06639) as E[∇ log π] = 0, not found as "
    "a limit of control",
    words="E[Δz_α] = (1 + α(1−2ρ))·E[Δz_0], so that weights by the sign of A cannot turn the expected step",
    statement=r"\mathbb{E}[\Delta z_\alpha] = (1 + \alpha\,(1 - 2\rho))\ \mathbb{E}[\Delta z_0]",
    assumption="on-policy SGD, binary rewards, weights that depend on sign(A) alone",
    theorem=COROLLARY_4_1,
    threshold="relative error below 1e-10, the rounding of float64 with room",
    null="the same weights on tokens with p > .5 alone, which must turn it",
    expected=HOLDS,
    mutations=(
        Mutation(
            "the factor were 1 + α(1−ρ)", Swap(__name__, "step_factor", always(lambda a, rate: 1 + a * (1 - rate)))
        ),
        Mutation("the factor were 1 − α(1−2ρ)", Swap(__name__, "step_factor", lambda f: lambda a, rate: f(-a, rate))),
        Mutation(
            "the weights depended on p too",
            Swap(__name__, "expected_step", lambda f: lambda z, q, a, tau=0.0: f(z, q, a, 0.1)),
        ),
    ),
    live=Live(
        "collinear",
        turned={"passes": 4},
        conditions=(ON_POLICY, equals("partial", 0)),
    ),
)
def collinear(effort: Effort) -> Finding:
    """On-policy, weights by the sign of A change how far the policy moves, never its direction."""
    logits, success = draw_problem(ENVIRONMENTS["noisy"], torch.arange(effort.runs), torch.float64)
    worst, turned = (
        max(
            float(collinearity_error(logits, success, torch.full((effort.runs,), alpha, dtype=torch.float64), tau))
            for alpha in (-1.0, -0.5, 0.3, 1.0)
        )
        for tau in (0.0, TAU)
    )
    return Finding(
        f"relative error {worst:.0e}",
        {"relative error": worst, "relative error, p > .5": turned},
        judge(worst < 1e-10 < turned),
        null=f"relative error {turned:.2g}",
    )


def positives_raise(effort: Effort, right_tilt: float) -> Values:
    """Return the share of initial states of `noisy` whose entropy a step on positive samples alone raises, (runs,)."""
    environment = replace(ENVIRONMENTS["noisy"], right_tilt=right_tilt)
    logits, success = draw_problem(environment, torch.arange(effort.runs), torch.float64)
    step = expected_step(logits, success, torch.full((effort.runs,), POSITIVES_ONLY, dtype=torch.float64))
    return (entropy_change(logits, 1e-3 * step) > 0).double().mean(-1).numpy()


KEPT = {"positives": "positive_only+", "all": "", "negatives": "negative_only+"}
"""Signs of the advantage that are learnt from, with the part of the chain that drops the other."""
SURROGATES = {"": "ppo", ", no clip": "clip_free"}


@remember
def one_sign(effort: Effort) -> dict[str, Array]:
    """Return the entropy in `noisy` with one sign dropped, with and without GRPO's ratio clip, (runs, rollouts + 1)."""
    return {
        name + clip: entropies(effort, env="noisy", controller=part + surrogate)
        for clip, surrogate in SURROGATES.items()
        for name, part in KEPT.items()
    }


@claim(
    "cor4.1-signs",
    paper=PAPER,
    source="corollary 4.1",
    words="with policy gradient, positive samples alone lower the entropy, and negative samples alone raise it",
    statement=r"\Delta H\,\big|_{A > 0} < 0 < \Delta H\,\big|_{A < 0}",
    assumption="binary rewards, advantages of mean zero",
    theorem=COROLLARY_4_1,
    setting="the corollary has none; figure 3 shows a language model",
    threshold="on-policy, a step on positives raises the entropy of no state; reused, final H with positives < all < "
    "negatives in paired runs: the corollary is about signs",
    null="learning from all samples; without a clip",
    expected=holds_if("samples are reused under a ratio clip"),
    mutations=(
        Mutation(
            "the signs were exchanged",
            Swap(KEPT, "positives", always("negative_only+")),
            Swap(KEPT, "negatives", always("positive_only+")),
        ),
        Mutation("no sample were dropped", Swap(KEPT, "positives", always("")), Swap(KEPT, "negatives", always(""))),
        Mutation("nothing were clipped", Swap(SURROGATES, "", always("clip_free"))),
    ),
    live=Live(
        "one-sign",
        turned={"clip": False},
        conditions=(equals("clip", True, stated=False), within("passes", low=8, stated=False), NOISY),
    ),
)
def signs(effort: Effort) -> Finding:
    """Learning from successes sharpens the policy and learning from failures flattens it if samples are reused: the
    clip then stops the successes that would raise the entropy, and the failures that would lower it."""
    tilt = ENVIRONMENTS["noisy"].right_tilt
    share, untilted = positives_raise(effort, tilt), positives_raise(effort, 0.0)
    final = {name: entropy[:, -1] for name, entropy in one_sign(effort).items()}
    reused = rising(final["positives"], final["all"], final["negatives"])
    never = above(share)
    return Finding(
        f"on-policy, positives raise H in {share.mean():.0%} of states ({untilted.mean():.0%} if right arms are not "
        "likelier); reused, final H: " + ", ".join(f"{name} {told(values)}" for name, values in final.items()),
        numbers_of(
            {"positives raise H": share, "positives raise H, right arms anywhere": untilted}
            | {f"final H, {name}": values for name, values in final.items()}
        ),
        *settle(replace(never, holds=not never.holds), "samples are reused under a ratio clip", reused),
        null="final H: "
        + ", ".join(f"{name} {told(final[name])}" for name in final if name == "all" or "no clip" in name),
    )


@picture("cor4.1-signs", caption="Entropy in NOISY with one sign of the advantage dropped: solid clipped, dashed not.")
def draw_signs(figure: Figure, effort: Effort) -> None:
    panels(figure, {"": one_sign(effort)})


@picture(
    "cor4.1-collinear",
    caption="Expected step of each logit of a state with few right samples, with and without α.",
)
def draw_collinear(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    logits, success = draw_problem(ENVIRONMENTS["noisy"], torch.arange(1), torch.float64)
    for alpha in (-0.9, 0.0, 0.9):
        base, step = (expected_step(logits, success / 2, torch.full((1,), a))[0, 0] for a in (0.0, alpha))
        axes.plot(base, step, "o-", markersize=4, linewidth=0.8, label=f"α = {alpha:g}")
    axes.set(xlabel="E[Δz], α = 0", ylabel="E[Δz] with α")
    axes.legend()


def alpha_star(p: Tensor, environment: Environment = ENVIRONMENTS["exact"]) -> Tensor:
    """Return the |α| that cancels the base drift if one right arm has probability p > τ, any shape; α is negative.

    α* = (q1−q2)/(q1(1−ρ) + (1−q1)ρ), ρ = q2 + p(q1−q2).
    """
    q1, q2 = environment.reward_right, environment.reward_wrong
    rate = q2 + p * (q1 - q2)
    return (q1 - q2) / (q1 * (1 - rate) + (1 - q1) * rate)


def resting_point(kp: float, environment: Environment = ENVIRONMENTS["exact"]) -> Tensor:
    """Return the right arm's probability in `exact` at H(p) = target − α*/Kp, by bisection; kp = inf: at the target."""
    low, high = torch.tensor([TAU, 1 - 1e-12], dtype=torch.float64)
    for _ in range(80):
        p = (low + high) / 2
        entropy = -(p * p.log() + (1 - p) * ((1 - p) / (environment.arms - 1)).log())
        low, high = (p, high) if entropy - TARGET + alpha_star(p, environment) / kp > 0 else (low, p)
    return low


def fixed_point_error(kp: float) -> float:
    """Return the closed form of |H − target| that P control leaves in `exact`: α*/Kp at its resting point."""
    return float(alpha_star(resting_point(kp)) / kp)


GAINS = {"P, Kp = 1": (1.0, 0.0), "P, Kp = 4": (4.0, 0.0), "PI": (1.0, 0.05)}


@remember
def exact_runs() -> dict[str, Array]:
    """Return the entropy in `exact` under each of GAINS, (rollouts + 1,)."""
    kp, ki = zip(*GAINS.values(), strict=True)
    gains = {"kp": kp, "ki": ki, "tau": TAU}
    config = Config(env="exact", controller="entropic", target=TARGET, controller_args=gains, rollouts=2500)
    return dict(zip(GAINS, simulate(config, [0] * len(GAINS)).entropy, strict=True))


def final_errors() -> dict[str, float]:
    """Return |H − target| at the end of a run in `exact`, for each of GAINS."""
    return {name: abs(float(entropy[-1]) - TARGET) for name, entropy in exact_runs().items()}


@picture(
    "thm4.2-p-control", caption="P and PI control in EXACT; dashed: final entropy of P control by the closed form."
)
def draw_exact(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    for i, (name, entropy) in enumerate(exact_runs().items()):
        axes.plot(entropy[:1500], label=name, color=f"C{i}")
        if name != "PI":
            axes.axhline(TARGET - fixed_point_error(GAINS[name][0]), color=f"C{i}", linestyle="--", linewidth=1)
    axes.axhline(TARGET, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="entropy (nats)")
    axes.legend()


@remember
def uncontrolled_error() -> float:
    """Return |H − target| in `exact` at the end of a run without control."""
    config = Config(env="exact", controller="ppo", rollouts=2500)
    return abs(float(simulate(config, [0]).entropy[0, -1]) - TARGET)


def error_without_drift() -> float:
    """Return P control's final error if all arms are rewarded alike and one starts likely enough for τ to act on it."""
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
    paper=PAPER,
    source="theorem 4.2",
    words="on-policy, with P control, the error of the entropy goes to 0",
    statement=r"\alpha = K_p\,(H - H^*) \ \Rightarrow\ H \to H^*",
    assumption="on-policy, P control (Ki = 0)",
    theorem=THEOREM_4_2,
    setting="any policy; the proof takes the drift of the entropy without control to be 0",
    threshold="error below 1e-5 nats after 2,500 rollouts: the limit is 0, and a smaller one is rounding",
    null="no control",
    expected=holds_if("the base drift at the target is zero"),
    mutations=(
        Mutation(
            "an integral part were added",
            Swap(GAINS, "P, Kp = 1", always((1.0, 0.05))),
            Swap(GAINS, "P, Kp = 4", always((4.0, 0.05))),
        ),
        *faults(Entropic)[:1],
    ),
    live=Live(
        "p-and-pi",
        values={"ki": 0.0, "right": 0.5},
        turned={"right": 0.6},
        conditions=(equals("ki", 0), equals("right", 0.5, stated=False)),
    ),
)
def p_control(effort: Effort) -> Finding:
    """P control needs an error to counter the drift of the entropy, and stops where the two cancel."""
    one, four, still = final_errors()["P, Kp = 1"], final_errors()["P, Kp = 4"], error_without_drift()
    return Finding(
        f"error {one:.4f} at Kp = 1, {four:.4f} at Kp = 4; {still:.0e} without drift",
        {"error Kp=1": one, "error Kp=4": four, "error without drift": still},
        judge(max(one, four) < 1e-5, "the base drift at the target is zero", still < 1e-10),
        null=f"error {uncontrolled_error():.4f}",
    )


@claim(
    "thm4.2-fixed-point",
    paper=PAPER,
    source="on theorem 4.2: ours, not found elsewhere",
    words="P control leaves α*/Kp with α* = (q1−q2)/(q1(1−ρ) + (1−q1)ρ)",
    statement=(r"|H - H^*| = \frac{\alpha^*}{K_p},", r"\alpha^* = \frac{q_1 - q_2}{q_1(1 - \rho) + (1 - q_1)\rho}"),
    assumption="exact environment, P control",
    theorem=THEOREM_4_2,
    threshold="within 1e-5 nats at Kp = 1 and 4, the distance that is left after 2,500 rollouts",
    null="an error in proportion to 1/Kp, from the one at Kp = 1",
    expected=HOLDS,
    mutations=(
        Mutation("α* were 1% larger", Swap(__name__, "alpha_star", lambda f: lambda *at: 1.01 * f(*at))),
        Mutation("ρ were that of the target, at any Kp", Swap(__name__, "resting_point", lambda f: lambda *at: f(inf))),
        *faults(Entropic),
    ),
    live=Live(
        "p-and-pi", values={"ki": 0.0, "rest": "H = H* − α*/Kp"}, turned={"ki": 0.1}, conditions=(equals("ki", 0),)
    ),
)
def fixed_point(effort: Effort) -> Finding:
    """The error that P control leaves is known beforehand: the α that cancels the drift, divided by the gain."""
    closed = {name: fixed_point_error(GAINS[name][0]) for name in ("P, Kp = 1", "P, Kp = 4")}
    gaps = {f"gap, {name}": abs(final_errors()[name] - error) for name, error in closed.items()}
    form = ", ".join(f"{name}: {error:.4f}" for name, error in closed.items())
    of_null = abs(final_errors()["P, Kp = 1"] / 4 - final_errors()["P, Kp = 4"])
    return Finding(
        f"closed form {form}; simulation within {max(gaps.values()):.0e}",
        {**gaps, "gap of the null": of_null},
        judge(max(gaps.values()) < 1e-5 < of_null),
        null=f"off by {of_null:.0e} at Kp = 4",
    )


@claim(
    "thm4.3-pi-control",
    paper=PAPER,
    source="theorem 4.3",
    words="with PI control the error of the entropy goes to 0",
    statement=(r"\alpha = K_p\, e_t + K_i \textstyle\sum_{s \le t} e_s, \quad e = H - H^*", r"\Rightarrow\ H \to H^*"),
    assumption="PI control; exact environment, base drift not zero",
    theorem=THEOREM_4_3,
    setting="off-policy without a clip; here the drift comes from the reward instead",
    threshold="error at most 1e-10 nats after 2,500 rollouts: the limit is 0",
    null="P control, Kp = 1",
    expected=HOLDS,
    mutations=(
        Mutation("the sum of errors were left out", Swap(GAINS, "PI", always((1.0, 0.0)))),
        *faults(Entropic),
    ),
    live=Live("p-and-pi", turned={"ki": 0.0}, conditions=(within("ki", low=0.01),)),
)
def pi_control(effort: Effort) -> Finding:
    """The sum of errors supplies the α that cancels the drift, so no error is left."""
    error, p = final_errors()["PI"], final_errors()["P, Kp = 1"]
    return Finding(f"error {error:.0e}", {"error": error}, judge(error <= 1e-10), null=f"error {p:.4f}")
