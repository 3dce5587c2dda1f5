"""R = −a·e^H + b: Entropy Mechanism, equation 6, over the runs of a bandit."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from entrostat import laws

from ..trajectory import Array, Trajectory
from .checks import Check, Values, above, below, between, every, numbers_of, settle, told
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim
from .runs import trajectory

PAPER = "Entropy Mechanism"
ADVANTAGES = ("grpo", "rloo", "dr_grpo", "reinforce_pp")


def points(run: Trajectory, rollouts: int | None = None) -> list[tuple[Array, Array]]:
    """Return entropy and expected reward of each run before each of its first `rollouts`."""
    return list(zip(run.entropy[:, :-1][:, :rollouts], run.reward[:, :rollouts], strict=True))


@cache
def large(effort: Effort, env: str) -> Trajectory:
    """Simulate runs of 256 states, whose means over states have little noise."""
    return trajectory(effort.times(0.75), env=env, states=256)


def fits(run: Trajectory, rollouts: int) -> tuple[Values, Values]:
    """Return R² of the law and of a line in H, (runs,) each."""
    found = [laws.alternatives(entropy, reward) for entropy, reward in points(run, rollouts)]
    return np.array([each["exponential"].r2 for each in found]), np.array([each["linear"].r2 for each in found])


@claim(
    "law-fit",
    paper=PAPER,
    source="equation 6",
    assumption="GRPO, det and noisy, 256 states, while the reward rises: 150 rollouts",
    predicted="R = −a·e^H + b: R² ≥ .95, and higher than a line's in H",
    expected=HOLDS,
)
def law_fit(effort: Effort) -> Finding:
    """Reward costs entropy at a rate that hardly changes. The fit gets worse the longer the reward has been at its
    ceiling."""
    check, lines = Check(True), []
    numbers: dict[str, Values] = {}
    for env in ("det", "noisy"):
        law, straight = fits(large(effort, env), 150)
        early, longer = (fits(large(effort, env), rollouts)[0] for rollouts in (50, effort.rollouts))
        check &= above(law, 0.95) & above(law - straight)
        lines.append(
            f"{env} {told(law, 4)} (a line in H {straight.mean():.3f}; the law over 50 rollouts {early.mean():.3f}, "
            f"over {effort.rollouts} {longer.mean():.3f})"
        )
        numbers |= {f"R², {env}": law, f"R², line in H, {env}": straight, f"R², {env}, whole run": longer}
    return Finding("R²: " + ", ".join(lines), numbers_of(numbers), *settle(check))


@cache
def coefficients(effort: Effort) -> dict[str, Array]:
    """Return a and b for each of ADVANTAGES, (2, runs)."""
    found = {}
    for advantage in ADVANTAGES:
        run = trajectory(effort, env="det", advantage=advantage, rollouts=150)
        fitted = [laws.fit(entropy, reward) for entropy, reward in points(run)]
        found[advantage] = np.array([(law.a, law.b) for law in fitted]).T
    return found


@claim(
    "law-algorithms",
    paper=PAPER,
    source="appendix B.4, figure 8b",
    assumption="det, GRPO's clipping",
    predicted="a and b do not depend on the advantage estimator: within 10% of GRPO's",
    expected=HOLDS,
)
def law_algorithms(effort: Effort) -> Finding:
    """The exchange rate of entropy and reward is a property of the problem and the initial policy."""
    found = coefficients(effort)
    ratios = {name: values / found["grpo"] for name, values in found.items() if name != "grpo"}
    check = every(between(each, 0.9, 1.1) for pair in ratios.values() for each in pair)
    return Finding(
        "relative to GRPO: " + ", ".join(f"{name} a {told(a)}, b {told(b)}" for name, (a, b) in ratios.items()),
        numbers_of({f"{part}, {name}": x for name, pair in ratios.items() for part, x in zip("ab", pair, strict=True)}),
        *settle(check),
    )


@claim(
    "law-prediction",
    paper=PAPER,
    source="appendix B.3, figure 10",
    assumption="GRPO, det and noisy, 256 states",
    predicted="the first 15% of a run predict the rest: RMSE of the reward ≤ .05",
    expected=HOLDS,
)
def law_prediction(effort: Effort) -> Finding:
    """The reward that the remaining entropy will bring can be predicted early, but the prediction is too high: the last
    of the entropy earns less than the law says."""
    errors, ends = {}, {}
    for env in ("det", "noisy"):
        found = [laws.predict_end(entropy, reward) for entropy, reward in points(large(effort, env))]
        errors[env] = np.array([prediction.rmse for prediction in found])
        ends[env] = np.array([prediction.end_error for prediction in found])
    measured = ", ".join(f"{env} {told(errors[env], 4)} (at the end {ends[env].mean():+.3f})" for env in errors)
    return Finding(
        f"RMSE: {measured}",
        numbers_of(
            {f"RMSE, {env}": values for env, values in errors.items()}
            | {f"error at the end, {env}": values for env, values in ends.items()}
        ),
        *settle(every(below(values, 0.05) for values in errors.values())),
    )


@picture("law-fit", caption="Expected reward against entropy of one run, and the law fitted to its first 15%.")
def draw_law(figure: Figure, effort: Effort) -> None:
    for axes, env in zip(figure.subplots(1, 2), ("det", "noisy"), strict=True):
        entropy, reward = points(large(effort, env))[0]
        law = laws.predict_end(entropy, reward).law
        axes.plot(entropy, reward, ".", markersize=3)
        axes.plot(entropy, law(entropy), color="black", linewidth=1)
        axes.axvline(entropy[law.n], color="grey", linestyle=":")
        axes.set(title=env, xlabel="mean entropy (nats)", ylabel="expected reward")
