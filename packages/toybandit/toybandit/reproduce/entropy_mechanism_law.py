"""Figures of The Entropy Mechanism on the law between reward and entropy: R = −a·e^H + b.

Bandits with several numbers of arms, spreads of the initial logits and qualities of the initial policy replace the
families of language models. The policy's expected reward, which the simulator knows, replaces validation accuracy.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from entrostat import laws

from ..environments import ENVIRONMENTS
from ..trajectory import Array
from .curves import stack, train
from .drawing import colour, line_style, lines, point_style
from .polynomials import polynomial, r_squared
from .registry import Effort, Measurement, figure

SIZES = (4, 8, 16, 32, 64)
"""Numbers of arms; a quarter of the arms are right."""
FAMILY: Mapping[str, Mapping[str, Any]] = {
    **{f"{arms} arms": {"arms": arms, "right_arms": arms // 4} for arms in SIZES},
    "logits std 1": {"logit_std": 1.0},
    "logits std 3": {"logit_std": 3.0},
    "prior ignorant": {"right_tilt": 0.0},
    "prior calibrated": {"right_tilt": 1.0},
    "prior good": {"right_logit": 1.0},
    "on-policy": {"passes": 1, "lr": 2.0},
}
"""Changes to an environment that make eleven bandits."""


@cache
def family(effort: Effort, env: str) -> dict[str, tuple[Array, Array]]:
    """Return, for every bandit of FAMILY, mean entropy and expected reward over runs before each rollout."""
    return {name: mean_curve(effort, env=env, **changes) for name, changes in FAMILY.items()}


def mean_curve(effort: Effort, **changes: Any) -> tuple[Array, Array]:
    """Return the means over long runs of entropy and expected reward before each rollout."""
    trajectory = train(effort, rollouts=effort.of(300, 120), **changes)
    return trajectory.entropy[:, :-1].mean(0), trajectory.reward.mean(0)


def draw_collapse(canvas: Figure, data: Measurement) -> None:
    left, right = canvas.subplots(1, 2)
    table = data.table
    left.plot(table["rollout"], table["entropy"], label="entropy (nats)", **line_style(0))
    left.plot(table["rollout"], table["reward"], label="expected reward", **line_style(1))
    left.set(xlabel="rollout", ylim=(0, None))
    left.legend()
    right.plot(table["entropy"], table["reward"], label="measured", markersize=3, **point_style(0))
    for i, (column, label) in enumerate((("law", "−a·exp(H) + b"), ("linear", "linear")), start=1):
        right.plot(table["entropy"], table[column], label=label, **line_style(i))
    right.set(xlabel="entropy (nats)", ylabel="expected reward")
    right.legend()


@figure(
    "entropy-mechanism-1",
    source="Entropy Mechanism, figure 1",
    shows="entropy collapses while reward saturates; reward against entropy with the exponential fit",
    draw=draw_collapse,
)
def collapse(effort: Effort) -> Measurement:
    entropy, reward = mean_curve(effort)
    law = laws.fit(entropy, reward)
    shapes = {
        "law": law(entropy),
        "linear": polynomial(entropy, reward, 1),
        "quadratic": polynomial(entropy, reward, 2),
    }
    score = {f"r2_{name}": r_squared(reward, fitted) for name, fitted in shapes.items()}
    return Measurement(
        {"rollout": np.arange(len(entropy)), "entropy": entropy, "reward": reward, **shapes},
        {"a": law.a, "b": law.b, "ceiling": law.ceiling, "last_reward": float(reward[-1]), **score},
        f"The paper trades entropy for reward along R = −a·exp(H) + b. Here R² is {score['r2_law']:.3f}, against "
        f"{score['r2_linear']:.3f} for a line and {score['r2_quadratic']:.3f} for a parabola, which has one more "
        f"coefficient. The law's ceiling at H = 0 is {law.ceiling:.3f}; the best arms pay "
        f"{ENVIRONMENTS['noisy'].reward_right:g}.",
    )


def draw_consumption(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    lines(axes, data, "training", "share")
    axes.set(xlabel="training (%)", ylabel="of what the whole run brings (%)", ylim=(0, 105))
    axes.legend()


@figure(
    "entropy-mechanism-2",
    source="Entropy Mechanism, figure 2",
    shows="entropy consumed and reward gained over training, mean of eleven bandits",
    draw=draw_consumption,
)
def consumption(effort: Effort) -> Measurement:
    curves = family(effort, "noisy").values()
    shares = {
        "entropy consumed": np.stack([progress(entropy) for entropy, _ in curves]),
        "reward gained": np.stack([progress(reward) for _, reward in curves]),
    }
    training = np.linspace(0, 100, shares["reward gained"].shape[1])
    rows = [
        {"series": name, "training": training, "share": s.mean(0), "share_low": s.min(0), "share_high": s.max(0)}
        for name, s in shares.items()
    ]
    at = {"twelfth": len(training) // 12, "third": len(training) // 3}
    numbers = {
        f"{name.split()[0]}_at_a_{part}": float(s[:, i].mean()) for name, s in shares.items() for part, i in at.items()
    }
    return Measurement(
        stack(rows),
        numbers,
        "In the paper, a twelfth of training uses 73% of the entropy and brings 76% of the reward, a third 94% and "
        f"93%. Here a twelfth uses {numbers['entropy_at_a_twelfth']:.0f}% and brings "
        f"{numbers['reward_at_a_twelfth']:.0f}%, a third {numbers['entropy_at_a_third']:.0f}% and "
        f"{numbers['reward_at_a_third']:.0f}%. Bands: lowest to highest bandit.",
    )


def progress(curve: Array) -> Array:
    """Return the percentage of the way from the first to the last value."""
    return 100 * (curve - curve[0]) / (curve[-1] - curve[0])


def spaced(entropy: Array, count: int) -> NDArray[np.intp]:
    """Return the indices of about `count` points that are evenly spaced in entropy."""
    return np.unique([np.abs(entropy - h).argmin() for h in np.linspace(entropy.min(), entropy.max(), count)])


def beside(axes: Axes, title: str) -> None:
    """Put the legend to the right of the axes."""
    axes.legend(title=title, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


def draw_fits(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        entropy, reward = part.table["entropy"], part.table["reward"]
        shown = spaced(entropy, 12)
        axes.plot(entropy[shown], reward[shown], label=name, **point_style(i))
        axes.plot(entropy, part.table["law"], color=colour(i), linewidth=1)
    axes.set(xlabel="entropy (nats)", ylabel="expected reward")
    beside(axes, "measured; line: fit")


def fitted(curves: Mapping[str, tuple[Array, Array]]) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the table of curves with their laws, and a, b, ceiling, R² and a line's R², each as NAME/number."""
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for name, (entropy, reward) in curves.items():
        law = laws.fit(entropy, reward)
        rows.append({"series": name, "entropy": entropy, "reward": reward, "law": law(entropy)})
        linear = r_squared(reward, polynomial(entropy, reward, 1))
        found = {"a": law.a, "b": law.b, "ceiling": law.ceiling, "r2": law.r2}
        numbers |= {f"{name}/{key}": value for key, value in {**found, "r2_linear": linear}.items()}
    return stack(rows), numbers


def every(numbers: Mapping[str, float], key: str) -> Array:
    """Return the number `key` of every series."""
    return np.array([value for name, value in numbers.items() if name.endswith(f"/{key}")])


def family_fits(effort: Effort, env: str) -> Measurement:
    best = ENVIRONMENTS[env].reward_right
    table, numbers = fitted(family(effort, env))
    r2, linear, ceiling = every(numbers, "r2"), every(numbers, "r2_linear"), every(numbers, "ceiling")
    return Measurement(
        table,
        numbers,
        f"The paper's law fits every model. Here R² is between {r2.min():.3f} and {r2.max():.3f}, higher than a line's "
        f"in {(r2 > linear).sum()} of {len(r2)} bandits. Its ceiling at H = 0 is between {ceiling.min():.3f} and "
        f"{ceiling.max():.3f}, in {(ceiling > best).sum()} of them above the {best:g} that the best arms pay.",
    )


@figure(
    "entropy-mechanism-3",
    source="Entropy Mechanism, figure 3",
    shows="reward against entropy of eleven bandits with uncertain rewards, with their fits",
    draw=draw_fits,
)
def fits(effort: Effort) -> Measurement:
    return family_fits(effort, "noisy")


@figure(
    "entropy-mechanism-7",
    source="Entropy Mechanism, figure 7",
    shows="the same on another task, with certain rewards of 0 and 1",
    draw=draw_fits,
)
def fits_of_another_task(effort: Effort) -> Measurement:
    return family_fits(effort, "det")


ADVANTAGES = ("grpo", "dr_grpo", "rloo", "reinforce_pp")


@figure(
    "entropy-mechanism-8",
    source="Entropy Mechanism, figure 8b",
    shows="reward against entropy under four advantage estimators",
    draw=draw_fits,
)
def fits_of_algorithms(effort: Effort) -> Measurement:
    table, numbers = fitted({name: mean_curve(effort, advantage=name) for name in ADVANTAGES})
    spread = {f"{key}_spread": float(np.ptp(every(numbers, key)) / every(numbers, key).mean()) for key in ("a", "b")}
    return Measurement(
        table,
        numbers | spread,
        "In the paper, the coefficients do not depend on the algorithm. Here a differs by "
        f"{100 * spread['a_spread']:.0f}% and b by {100 * spread['b_spread']:.1f}% between the lowest and the highest.",
    )


def draw_prediction(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        entropy, reward, seen = part.table["entropy"], part.table["reward"], part.table["seen"] == 1
        shown = spaced(entropy, 16)
        axes.plot(entropy[shown], reward[shown], **(point_style(i) | {"markerfacecolor": "white"}))
        axes.plot(entropy[shown][seen[shown]], reward[shown][seen[shown]], label=name, **point_style(i))
        axes.plot(entropy, part.table["predicted"], color=colour(i), linewidth=1)
    axes.set(xlabel="entropy (nats)", ylabel="expected reward")
    axes.invert_xaxis()
    beside(axes, "full: fitted\nhollow: to predict\nline: fit")


SEEN = 0.15
"""Share of training that the law is fitted to."""
SLOW = 0.1
"""Learning rate with which that share brings about four fifths of the reward, as in the paper's figure 2."""


@figure(
    "entropy-mechanism-10",
    source="Entropy Mechanism, figure 10",
    shows="the rest of training predicted from its first 15%, given the entropy",
    draw=draw_prediction,
)
def prediction(effort: Effort) -> Measurement:
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for arms in SIZES:
        name = f"{arms} arms"
        entropy, reward = mean_curve(effort, env="noisy", lr=SLOW, **FAMILY[name])
        found = laws.predict_end(entropy, reward, SEEN)
        n = found.law.n
        seen = (np.arange(len(entropy)) < n).astype(int)
        predicted = found.law(entropy)
        rows.append({"series": name, "entropy": entropy, "reward": reward, "predicted": predicted, "seen": seen})
        line = np.polyval(np.polyfit(entropy[:n], reward[:n], 1), entropy[n:])
        for null, value in {"last_value": reward[n - 1], "line": line}.items():
            numbers[f"{name}/rmse_{null}"] = float(np.sqrt(((value - reward[n:]) ** 2).mean()))
        numbers[f"{name}/rmse"] = found.rmse
        numbers[f"{name}/last_error"] = found.end_error
    errors, last = every(numbers, "rmse"), np.abs(every(numbers, "last_error"))
    constant, straight = every(numbers, "rmse_last_value"), every(numbers, "rmse_line")
    better = int((errors < np.minimum(constant, straight)).sum())
    return Measurement(
        stack(rows),
        numbers | {"mean_rmse": float(errors.mean()), "mean_last_error": float(last.mean()), "better": float(better)},
        "From the first 15% of training the paper predicts the rest to 0.9 points (RMSE, math) and the end to 0.5. "
        f"Here the mean RMSE is {100 * errors.mean():.1f} points, the worst {100 * errors.max():.1f}, and the mean "
        f"error at the end {100 * last.mean():.1f}. That the reward stays at its last value has an RMSE of "
        f"{100 * constant.mean():.1f}, a line in H {100 * straight.mean():.1f}: the law is better than both in "
        f"{better} of {len(errors)} bandits. The learning rate is {SLOW:g}: with .5, the reward has nearly saturated "
        "by then, and there is little to predict.",
    )


def draw_coefficients(canvas: Figure, data: Measurement) -> None:
    for i, (axes, key) in enumerate(zip(canvas.subplots(1, 2), ("a", "b"), strict=True)):
        axes.semilogx(data.table["arms"], data.table[key], **point_style(i))
        axes.semilogx(data.table["arms"], data.table[f"{key}_log_linear"], label="log-linear", color="black")
        if key == "a":
            axes.semilogx(data.table["arms"], data.table["a_power"], label="power", color=colour(i), linestyle="--")
        axes.set_xticks(data.table["arms"], [str(arms) for arms in data.table["arms"]], minor=False)
        axes.minorticks_off()
        axes.set(xlabel="arms", ylabel=key)
        axes.legend()


@figure(
    "entropy-mechanism-11",
    source="Entropy Mechanism, figure 11",
    shows="the coefficients a and b against the size of the bandit",
    draw=draw_coefficients,
)
def coefficients(effort: Effort) -> Measurement:
    curves = family(effort, "noisy")
    fits = [laws.fit(*curves[f"{arms} arms"]) for arms in SIZES]
    size, a, b = np.log(SIZES), np.array([law.a for law in fits]), np.array([law.b for law in fits])
    shapes = {
        "a_log_linear": polynomial(size, a, 1),
        "b_log_linear": polynomial(size, b, 1),
        "a_power": np.exp(polynomial(size, np.log(a), 1)),
    }
    power = float(np.polyfit(size, np.log(a), 1)[0])
    r2 = {f"r2_{name}": r_squared(a if name[0] == "a" else b, fitted) for name, fitted in shapes.items()}
    return Measurement(
        {"arms": np.array(SIZES), "a": a, "b": b, **shapes},
        {**r2, "power": power},
        "In the paper, a and b are log-linear in the model's size. Here a line in log K explains "
        f"{r2['r2_a_log_linear']:.0%} of the variance of a and {r2['r2_b_log_linear']:.0%} of the variance of b. "
        f"Instead, a is a power of the number of arms, K to the {power:.2f} ({r2['r2_a_power']:.1%}): exp(H) grows "
        "with K, but the reward that it buys does not.",
    )
