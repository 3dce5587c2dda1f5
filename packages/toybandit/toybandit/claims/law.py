"""R = −a·e^H + b: Entropy Mechanism, equation 6, over the runs of a bandit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from entrostat.logs import laws

from ..trajectory import Array, Trajectory
from .checks import Check, Values, above, between, every, numbers_of, rising, settle, told
from .live_case import Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, holds_if
from .runs import trajectory
from .theorems import Theorem

PAPER = "Entropy Mechanism"
ROLLOUTS = 300
"""Length of a run, at any effort: claims on the beginning of a run depend on it."""
SEEN = 0.15
"""Share of a run to which the law is fitted, to predict the rest."""
SLOW = {"det": 0.03, "noisy": 0.1}
"""Learning rates with which that share brings four fifths of the reward, as in the paper."""


def points(run: Trajectory, rollouts: int | None = None) -> list[tuple[Array, Array]]:
    """Return entropy and expected reward of each run before each of its first `rollouts`."""
    return list(zip(run.entropy[:, :-1][:, :rollouts], run.reward[:, :rollouts], strict=True))


@remember
def large(effort: Effort, env: str, **changes: Any) -> Trajectory:
    """Simulate runs of 256 states, whose means over states have little noise."""
    return trajectory(effort.times(0.75), **{"env": env, "states": 256, "rollouts": ROLLOUTS, **changes})


def fits(run: Trajectory, rollouts: int) -> tuple[Values, Values]:
    """Return R² of the law and of a line in H, (runs,) each."""
    found = [laws.alternatives(entropy, reward) for entropy, reward in points(run, rollouts)]
    return np.array([each["exponential"].r2 for each in found]), np.array([each["linear"].r2 for each in found])


SIGNAL = (within("right", low=0.6), within("wrong", high=0.3), within("rollouts", high=150))
"""Assumptions of the live cases: rewards differ between arms, and a run has the law's length."""
EQUATION_6 = Theorem(
    name="Entropy Mechanism, equation 6",
    test="test_entropy_mechanism_equation_6.py",
    derivation=(
        "From R = −a·e^H + b, dR/dH = −a·e^H; at H = 0 the ceiling is R = b − a.",
        "Two arms that pay 1 and 0 have dR/dH = −1/ln(p/(1−p)), which goes to 0 as p goes to 1.",
        "So the law is too high at the end: the last of the entropy earns less than a.",
    ),
)


@claim(
    "law-fit",
    paper=PAPER,
    source="section 2.4, equation 6, figure 3",
    words="R = −a·exp(H) + b describes reward over entropy precisely, for all sizes, families and tasks, with two "
    "coefficients for over 200 points",
    statement=r"R = -a\, e^{H} + b",
    assumption="GRPO, det and noisy, 256 states, while the reward rises: 150 rollouts",
    theorem=EQUATION_6,
    setting="accuracy of 11 language models on validation problems, no bonus and no KL term",
    threshold="R² ≥ .95, so that a twentieth of the variance is left, and above the null's in paired runs",
    null="a line in H, which has as many coefficients",
    expected=HOLDS,
    mutations=(
        Mutation(
            "e^H were e^(−H)",
            Swap(laws, "alternatives", lambda f: lambda entropy, reward: f(-entropy, reward)),
        ),
        Mutation(
            "e^H were H",
            Swap(laws, "alternatives", lambda f: lambda *at: f(*at) | {"exponential": f(*at)["linear"]}),
        ),
    ),
    live=Live(
        "law",
        turned={"right": 0.34, "wrong": 0.3},
        conditions=(*SIGNAL, equals("window", 1)),
    ),
)
def law_fit(effort: Effort) -> Finding:
    """Reward costs entropy at a rate that hardly changes. The fit gets worse the longer the reward has been at its
    ceiling."""
    check, lines, nulls = Check(True), [], []
    numbers: dict[str, Values] = {}
    for env in ("det", "noisy"):
        law, straight = fits(large(effort, env), 150)
        early, longer = (fits(large(effort, env), rollouts)[0] for rollouts in (50, ROLLOUTS))
        check &= above(law, 0.95) & above(law - straight)
        lines.append(f"{env} {told(law, 4)} (over 50 rollouts {early.mean():.3f}, over {ROLLOUTS} {longer.mean():.3f})")
        nulls.append(f"{env} {told(straight, 4)}")
        numbers |= {f"R², {env}": law, f"R², line in H, {env}": straight, f"R², {env}, whole run": longer}
    return Finding("R²: " + ", ".join(lines), numbers_of(numbers), *settle(check), null="R² " + ", ".join(nulls))


WITHIN, OVER = "rloo", "reinforce_pp"
"""Estimators without a scale over the batch, and with one."""
ESTIMATORS: dict[str, dict[str, Any]] = {WITHIN: {"advantage": "rloo"}, OVER: {"advantage": "reinforce_pp"}}
"""Estimators of the paper's list to compare with GRPO's. Dr. GRPO is RLOO times 15/16 here, and not another one."""
OTHERS: dict[str, dict[str, Any]] = {
    "positives alone": {"controller": "positive_only+ppo"},
    "negatives alone": {"controller": "negative_only+ppo"},
    "initial logits of std 1": {"logit_std": 1.0},
}
"""Changes of what is learnt or where it starts, which must not count as equal."""
EQUAL = 0.02
"""Largest relative difference of a and of b that counts as none."""
UNSCALED = "advantages are not scaled over the batch"


@remember
def coefficients(effort: Effort) -> dict[str, Array]:
    """Return a and b relative to GRPO's for ESTIMATORS and OTHERS, (2, runs)."""

    def fitted(changes: Mapping[str, Any]) -> Array:
        run = large(effort, "det", **{"rollouts": 150, **changes})
        return np.array([(law.a, law.b) for law in (laws.fit(*at) for at in points(run))]).T

    grpo = fitted({})
    return {name: fitted(changes) / grpo for name, changes in {**ESTIMATORS, **OTHERS}.items()}


def told_coefficients(found: Mapping[str, Array]) -> str:
    return ", ".join(f"{name} a {told(a)}, b {told(b)}" for name, (a, b) in found.items())


@claim(
    "law-algorithms",
    paper=PAPER,
    source="appendix B.4 and figure 8b; the algorithms of section 2.2",
    words="the coefficients a and b do not depend on the algorithm: distinct estimators of the advantage give one "
    "curve",
    statement=r"\frac{a}{a_{\mathrm{GRPO}}},\ \frac{b}{b_{\mathrm{GRPO}}} \in [0.98,\ 1.02]",
    assumption="det, GRPO's clipping, 256 states, 150 rollouts; RLOO, and REINFORCE++ with the baseline of a group",
    theorem=EQUATION_6,
    setting="one language model and data set, a plot without numbers. Figure 8b has GRPO, RLOO and PRIME, section 2.2 "
    "GRPO, REINFORCE++ and PRIME; PRIME's rewards come from a second model that is trained along, which the simulator "
    "does not have",
    threshold=f"a and b within {EQUAL:.0%} of GRPO's in paired runs, and each null outside: with 64 states, a differs "
    "by 1.2% from run to run (standard deviation), and learning from one sign of A moves it by 3% to 5%",
    null="learning from one sign of A, another initial policy",
    expected=holds_if(UNSCALED),
    mutations=(
        Mutation("RLOO learnt from failures alone", Swap(ESTIMATORS, WITHIN, always(OTHERS["negatives alone"]))),
        Mutation("RLOO learnt from successes alone", Swap(ESTIMATORS, WITHIN, always(OTHERS["positives alone"]))),
        Mutation("REINFORCE++ did not scale over the batch", Swap(ESTIMATORS, OVER, always({"advantage": "dr_grpo"}))),
    ),
    live=Live(
        "law-algorithms",
        turned={"advantage": "reinforce_pp"},
        conditions=(equals("advantage", "rloo", "dr_grpo", stated=False), equals("std", 2), *SIGNAL),
    ),
)
def law_algorithms(effort: Effort) -> Finding:
    """The exchange rate of entropy and reward is a property of the problem and of the initial policy, to within a few
    percent. RLOO, which is Dr. GRPO with a step longer by a fifteenth, keeps GRPO's coefficients. REINFORCE++ divides
    by the spread of the whole batch, so it weighs prompts otherwise, and differs by as much as learning from successes
    alone does, which is little in a plot. Another initial policy changes a by tens of percent."""
    found = coefficients(effort)
    equal = {name: found[name] for name in ESTIMATORS}
    other = {name: found[name] for name in OTHERS}
    apart = every(above(np.abs(pair.mean(-1) - 1).max() + 0 * pair[0], EQUAL) for pair in other.values())
    alike = {name: every(between(each, 1 - EQUAL, 1 + EQUAL) for each in pair) & apart for name, pair in equal.items()}
    return Finding(
        "relative to GRPO: " + told_coefficients(equal),
        numbers_of({f"{part}, {name}": x for name, pair in found.items() for part, x in zip("ab", pair, strict=True)}),
        *settle(every(alike.values()), UNSCALED, alike[WITHIN]),
        null=told_coefficients(other),
    )


def forecasts(entropy: Array, reward: Array) -> dict[str, Array]:
    """Return the errors of the rewards after the share SEEN of a run, predicted by law, last value and line in H."""
    found = laws.predict_end(entropy, reward, SEEN)
    n = found.law.n
    line = np.polyfit(entropy[:n], reward[:n], 1)
    predicted = {"law": found.predicted, "last value": reward[n - 1], "line in H": np.polyval(line, entropy[n:])}
    return {name: value - reward[n:] for name, value in predicted.items()}


def prediction_errors(run: Trajectory) -> dict[str, Values]:
    """Return the root mean squared error of each forecast, (runs,)."""
    found = [forecasts(*at) for at in points(run)]
    return {name: np.array([np.sqrt((each[name] ** 2).mean()) for each in found]) for name in found[0]}


def gain_seen(run: Trajectory) -> Values:
    """Return the share of the run's gain in reward that the share SEEN of it brings, (runs,)."""
    reward = run.reward
    return (reward[:, int(SEEN * reward.shape[1])] - reward[:, 0]) / (reward[:, -1] - reward[:, 0])


BEFORE = "the fit ends before the reward saturates"


@claim(
    "law-prediction",
    paper=PAPER,
    source="appendix B.3, figure 10",
    words="fitted to the first 36 of 236 steps (15%), the law predicts the accuracy of the others with an RMSE of .9 "
    "points in mathematics and 1.2 in code, and the end to .5 and 1.9",
    statement=(
        r"\hat R(H) = -\hat a\, e^{H} + \hat b \ \text{ from the first 15\%},",
        r"\mathrm{RMSE}(\hat R, R) \le 0.05",
    ),
    assumption="GRPO, det and noisy, 256 states, 300 rollouts",
    theorem=EQUATION_6,
    setting="at that step about four fifths of the gain are made (figure 2: 76% after a twelfth, 93% after a third); "
    "our slow runs have that too, by a learning rate of .03 in det and .1 in noisy",
    threshold="a smaller RMSE than both nulls in paired runs: a small error alone says nothing, since it is small for "
    "every prediction once the reward has saturated",
    null="the reward stays at its last value; a line in H, fitted to the same points",
    expected=holds_if(BEFORE),
    mutations=(
        Mutation("e^H were e^(−H)", Swap(laws, "predict_end", lambda f: lambda h, *rest: f(-h, *rest))),
        Mutation(
            "the law were a constant, its mean so far",
            Swap(
                laws, "predict_end", lambda f: lambda h, r, share: f(h, r, share)._replace(predicted=mean_of(r, share))
            ),
        ),
    ),
    live=Live(
        "law",
        values={"window": 0.15, "rollouts": 100, "lr": 0.3},
        turned={"lr": 1.0},
        conditions=(*SIGNAL, within("window", low=0.15, high=0.95), within("lr", high=0.5, stated=False)),
    ),
)
def law_prediction(effort: Effort) -> Finding:
    """The law says early what reward the remaining entropy will bring, better than a constant or a line, and too high:
    the last of the entropy earns less. At the learning rates of the environments, 93% to 98% of the gain is made by
    then: in det, that the reward stays as it is predicts better."""
    numbers: dict[str, Values] = {}
    checks, lines, nulls = {}, [], []
    for name, rates in (("as they are", dict.fromkeys(SLOW)), ("slow", SLOW)):
        beaten = []
        for env, lr in rates.items():
            run = large(effort, env, **({} if lr is None else {"lr": lr}))
            errors, seen = prediction_errors(run), gain_seen(run)
            law, *others = errors.values()
            beaten += [rising(law, other) for other in others]
            lines.append(f"{env}, {name} {told(law, 4)} ({seen.mean():.0%} of the gain made)")
            nulls += [f"{env}, {name}: " + ", ".join(f"{x} {told(errors[x], 4)}" for x in errors if x != "law")]
            numbers |= {f"RMSE, {env}, {name}, {x}": values for x, values in errors.items()}
            numbers[f"gain made, {env}, {name}"] = seen
        checks[name] = every(beaten)
    return Finding(
        f"RMSE: {', '.join(lines)}",
        numbers_of(numbers),
        *settle(checks["as they are"], BEFORE, checks["slow"]),
        null="RMSE " + "; ".join(nulls),
    )


def mean_of(reward: Array, share: float) -> Array:
    """Return the mean of the first `share` of the rewards, for each of the others."""
    first = int(share * len(reward))
    return np.full(len(reward) - first, reward[:first].mean())


@picture("law-fit", caption="Expected reward against entropy of one run, and the law fitted to its first 15%.")
def draw_law(figure: Figure, effort: Effort) -> None:
    for axes, env in zip(figure.subplots(1, 2), SLOW, strict=True):
        entropy, reward = points(large(effort, env, lr=SLOW[env]))[0]
        law = laws.predict_end(entropy, reward, SEEN).law
        axes.plot(entropy, reward, ".", markersize=3)
        axes.plot(entropy, law(entropy), color="black", linewidth=1)
        axes.axvline(entropy[law.n], color="grey", linestyle=":")
        axes.set(title=env, xlabel="mean entropy (nats)", ylabel="expected reward")
