"""Figures of The Entropy Mechanism on the law between reward and entropy: R = −a·e^H + b.

Bandits with several numbers of arms, spreads of the initial logits and qualities of the initial policy replace the
families of language models. The policy's expected reward, which the simulator knows, replaces validation accuracy.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from entrostat.logs import laws

from ..environments import ENVIRONMENTS
from ..trajectory import Array
from ..uncertainty import FACTOR, Measured, band, jackknife
from .curves import stack, train
from .drawing import colour, line_style, lines, point_style, whiskers
from .registry import Effort, Measurement, figure


def polynomial(x: Array, y: Array, degree: int) -> Array:
    """Return the values at x of the least-squares polynomial through (x, y)."""
    return np.asarray(np.polyval(np.polyfit(x, y, degree), x), dtype=np.float64)


def r_squared(y: Array, fitted: Array) -> float:
    """Return the share of the variance of y that the fit explains."""
    return float(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum())


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
    """Return `long_runs` of every bandit of FAMILY."""
    return {name: long_runs(effort, env=env, **changes) for name, changes in FAMILY.items()}


def long_runs(effort: Effort, **changes: Any) -> tuple[Array, Array]:
    """Return entropy and expected reward before each rollout, (runs, rollouts) each. Laws are fitted to their means."""
    trajectory = train(effort, rollouts=effort.of(300, 120), **changes)
    return trajectory.entropy[:, :-1], trajectory.reward


def points(
    axes: Axes, table: Mapping[str, Any], shown: NDArray[np.intp], label: str | None = None, **style: Any
) -> None:
    """Draw rows of a table as reward against entropy, with whiskers."""
    x, y = (whiskers(table, name)[:, shown] for name in ("entropy", "reward"))
    axes.errorbar(table["entropy"][shown], table["reward"][shown], y, x, label=label, elinewidth=0.7, **style)


def draw_collapse(canvas: Figure, data: Measurement) -> None:
    left, right = canvas.subplots(1, 2)
    table = data.table
    for i, (column, label) in enumerate((("entropy", "entropy (nats)"), ("reward", "expected reward"))):
        left.plot(table["rollout"], table[column], label=label, **line_style(i))
        left.fill_between(
            table["rollout"], table[f"{column}_low"], table[f"{column}_high"], color=colour(i), alpha=0.15, linewidth=0
        )
    left.set(xlabel="rollout", ylim=(0, None))
    left.legend()
    points(right, table, spaced(np.asarray(table["entropy"], dtype=float), 20), "measured", **point_style(0))
    for i, (column, label) in enumerate((("law", "−a·exp(H) + b"), ("linear", "linear")), start=1):
        right.plot(table["entropy"], table[column], label=label, **line_style(i))
    right.set(xlabel="entropy (nats)", ylabel="expected reward")
    right.legend()


@figure(
    "entropy-mechanism-1",
    source="Entropy Mechanism, figure 1",
    shows="entropy collapses while reward saturates; reward against entropy with the exponential fit",
    changes_if="a line explained as much of the reward as the law, or the law as much as the parabola",
    draw=draw_collapse,
)
def collapse(effort: Effort) -> Measurement:
    entropy, reward = long_runs(effort)

    def shapes(h: Array, r: Array) -> dict[str, Array]:
        return {"law": laws.fit(h, r)(h), "linear": polynomial(h, r, 1), "quadratic": polynomial(h, r, 2)}

    def quality(entropy: Array, reward: Array) -> dict[str, float]:
        h, r = entropy.mean(0), reward.mean(0)
        law = laws.fit(h, r)
        score = {f"r2_{name}": r_squared(r, fitted) for name, fitted in shapes(h, r).items()}
        return {"a": law.a, "b": law.b, "ceiling": law.ceiling, "last_reward": float(r[-1]), **score}

    numbers = jackknife(quality, entropy, reward)
    rollout = np.arange(reward.shape[1])
    fitted = shapes(entropy.mean(0), reward.mean(0))
    return Measurement(
        {"rollout": rollout, **band("entropy", entropy), **band("reward", reward), **fitted},
        numbers,
        f"The paper trades entropy for reward along R = −a·exp(H) + b. Here R² is {numbers['r2_law']:.3f}, against "
        f"{numbers['r2_linear']:.3f} for a line and {numbers['r2_quadratic']:.4f} for a parabola, which has one more "
        f"coefficient. The law's ceiling at H = 0 is {numbers['ceiling']:.3f}; the best arms pay "
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
    changes_if="less than half of either were over after a third of training",
    draw=draw_consumption,
)
def consumption(effort: Effort) -> Measurement:
    curves = list(family(effort, "noisy").values())
    kinds = ("entropy consumed", "reward gained")
    shares = {kind: np.stack([progress(curve[i].mean(0)) for curve in curves]) for i, kind in enumerate(kinds)}
    training = np.linspace(0, 100, shares["reward gained"].shape[1])
    rows = [
        {"series": name, "training": training, "share": s.mean(0), "share_low": s.min(0), "share_high": s.max(0)}
        for name, s in shares.items()
    ]
    at = {"twelfth": len(training) // 12, "third": len(training) // 3}

    def spent(*curves: Array) -> dict[str, float]:
        return {
            f"{kind.split()[0]}_at_a_{part}": float(np.mean([progress(c.mean(0))[i] for c in curves[k::2]]))
            for k, kind in enumerate(kinds)
            for part, i in at.items()
        }

    numbers = jackknife(spent, *chain(*curves))
    return Measurement(
        stack(rows),
        numbers,
        "In the paper, a twelfth of training uses 73% of the entropy and brings 76% of the reward, a third 94% and "
        f"93%. Here a twelfth uses {numbers['entropy_at_a_twelfth']:.0f}% of the entropy and brings "
        f"{numbers['reward_at_a_twelfth']:.0f}% of the reward, a third {numbers['entropy_at_a_third']:.0f}% and "
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
        entropy = part.table["entropy"]
        shown = spaced(entropy, 12)
        points(axes, part.table, shown, name, **point_style(i))
        axes.plot(entropy, part.table["law"], color=colour(i), linewidth=1)
    axes.set(xlabel="entropy (nats)", ylabel="expected reward")
    beside(axes, "measured; line: fit")


def fitted(curves: Mapping[str, tuple[Array, Array]]) -> tuple[dict[str, Array], dict[str, Measured]]:
    """Return the table of runs (entropy, reward) with the laws of their means, and the `coefficients`."""
    rows: list[dict[str, Any]] = []
    for name, (entropy, reward) in curves.items():
        law = laws.fit(entropy.mean(0), reward.mean(0))
        measured = band("entropy", entropy) | band("reward", reward)
        rows.append({"series": name, **measured, "law": law(entropy.mean(0))})
    return stack(rows), jackknife(partial(coefficients_of, tuple(curves)), *chain(*curves.values()))


def coefficients_of(names: Sequence[str], *curves: Array) -> dict[str, float]:
    """Return a, b, ceiling, R² and its excess over a line's as NAME/number, and their extremes and spread over names.

    curves: entropy and reward of each name in turn, (runs, rollouts).
    """
    numbers: dict[str, float] = {}
    for name, *pair in zip(names, curves[::2], curves[1::2], strict=True):
        entropy, reward = (runs.mean(0) for runs in pair)
        law = laws.fit(entropy, reward)
        excess = law.r2 - r_squared(reward, polynomial(entropy, reward, 1))
        found = {"a": law.a, "b": law.b, "ceiling": law.ceiling, "r2": law.r2, "r2_over_line": excess}
        numbers |= {f"{name}/{key}": value for key, value in found.items()}
    for key in ("r2", "ceiling"):
        numbers |= {f"least_{key}": min(every(numbers, key)), f"largest_{key}": max(every(numbers, key))}
    return numbers | {f"{key}_spread": np.ptp(every(numbers, key)) / every(numbers, key).mean() for key in ("a", "b")}


def beyond(numbers: Mapping[str, Measured], key: str, bound: float) -> int:
    """Return how many series have a number `key` that is more than two standard errors above the bound."""
    return sum(value > bound + FACTOR * value.error for name, value in numbers.items() if name.endswith(f"/{key}"))


def every(numbers: Mapping[str, float], key: str) -> Array:
    """Return the number `key` of every series."""
    return np.array([value for name, value in numbers.items() if name.endswith(f"/{key}")])


def family_fits(effort: Effort, env: str) -> Measurement:
    best = ENVIRONMENTS[env].reward_right
    table, numbers = fitted(family(effort, env))
    return Measurement(
        table,
        numbers,
        f"The paper's law fits every model. Here R² is between {numbers['least_r2']:.3f} and "
        f"{numbers['largest_r2']:.4f}, higher than a line's in {beyond(numbers, 'r2_over_line', 0)} of {len(FAMILY)} "
        f"bandits. Its ceiling at H = 0 is between {numbers['least_ceiling']:.3f} and "
        f"{numbers['largest_ceiling']:.3f}, in {beyond(numbers, 'ceiling', best)} of them above the {best:g} that the "
        "best arms pay (both by more than two standard errors).",
    )


@figure(
    "entropy-mechanism-3",
    source="Entropy Mechanism, figure 3",
    shows="reward against entropy of eleven bandits with uncertain rewards, with their fits",
    changes_if="a line fitted some bandits as well, or no ceiling exceeded what the best arms pay",
    draw=draw_fits,
)
def fits(effort: Effort) -> Measurement:
    return family_fits(effort, "noisy")


@figure(
    "entropy-mechanism-7",
    source="Entropy Mechanism, figure 7",
    shows="the same on another task, with certain rewards of 0 and 1",
    changes_if="a line fitted some bandits as well, or no ceiling exceeded what the best arms pay",
    draw=draw_fits,
)
def fits_of_another_task(effort: Effort) -> Measurement:
    return family_fits(effort, "det")


ADVANTAGES = ("grpo", "dr_grpo", "rloo", "reinforce_pp")


@figure(
    "entropy-mechanism-8",
    source="Entropy Mechanism, figure 8b",
    shows="reward against entropy under four advantage estimators",
    changes_if="a or b differed by more than a tenth between estimators",
    draw=draw_fits,
)
def fits_of_algorithms(effort: Effort) -> Measurement:
    table, numbers = fitted({name: long_runs(effort, advantage=name) for name in ADVANTAGES})
    return Measurement(
        table,
        numbers,
        "In the paper, the coefficients do not depend on the algorithm. Here a differs by "
        f"{numbers['a_spread']:.1%} and b by {numbers['b_spread']:.2%} between the lowest and the highest.",
    )


def draw_prediction(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        entropy, seen = part.table["entropy"], part.table["seen"] == 1
        shown = spaced(entropy, 16)
        points(axes, part.table, shown, **(point_style(i) | {"markerfacecolor": "white"}))
        points(axes, part.table, shown[seen[shown]], name, **point_style(i))
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
    changes_if="the last reward seen, or a line in H, predicted the rest as well in some bandit",
    draw=draw_prediction,
)
def prediction(effort: Effort) -> Measurement:
    names = [f"{arms} arms" for arms in SIZES]
    curves = [long_runs(effort, env="noisy", lr=SLOW, **FAMILY[name]) for name in names]
    rows: list[dict[str, Any]] = []
    for name, (entropy, reward) in zip(names, curves, strict=True):
        law = laws.predict_end(entropy.mean(0), reward.mean(0), SEEN).law
        seen = (np.arange(reward.shape[1]) < law.n).astype(int)
        measured = band("entropy", entropy) | band("reward", reward)
        rows.append({"series": name, **measured, "predicted": law(entropy.mean(0)), "seen": seen})

    def predicted(*curves: Array) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for name, *pair in zip(names, curves[::2], curves[1::2], strict=True):
            numbers |= {f"{name}/{key}": value for key, value in prediction_errors(*pair).items()}
        for key in ("rmse", "rmse_last_value", "rmse_line"):
            numbers[f"mean_{key}"] = every(numbers, key).mean()
        numbers["mean_last_error"] = np.abs(every(numbers, "last_error")).mean()
        return numbers | {"worst_rmse": max(every(numbers, "rmse"))}

    numbers = jackknife(predicted, *chain(*curves))
    better = beyond(numbers, "advantage", 0)
    return Measurement(
        stack(rows),
        numbers | {"better": better},
        "From the first 15% of training the paper predicts the rest to 0.9 points (RMSE, math) and the end to 0.5. "
        f"Here the mean RMSE is {numbers['mean_rmse']:.2%}, the worst {numbers['worst_rmse']:.2%}, and the mean "
        f"error at the end {numbers['mean_last_error']:.2%} (points of reward). That the reward stays at its last "
        f"value has an RMSE of {numbers['mean_rmse_last_value']:.2%}, a line in H {numbers['mean_rmse_line']:.2%}: the "
        f"law is better than both, by more than two standard errors, in {better} of {len(SIZES)} bandits. The learning "
        f"rate is {SLOW:g}: with .5, the reward has nearly saturated by then, and there is little to predict.",
    )


def prediction_errors(entropy: Array, reward: Array) -> dict[str, float]:
    """Return the RMSE of the law, of the last reward seen and of a line, the law's error at the end, and its advantage.

    The advantage is the smaller of the two other RMSEs minus the law's.
    """
    h, r = entropy.mean(0), reward.mean(0)
    found = laws.predict_end(h, r, SEEN)
    n = found.law.n
    others = {"last_value": r[n - 1], "line": np.polyval(np.polyfit(h[:n], r[:n], 1), h[n:])}
    rmse = {f"rmse_{name}": float(np.sqrt(((value - r[n:]) ** 2).mean())) for name, value in others.items()}
    return {"rmse": found.rmse, "last_error": found.end_error, **rmse, "advantage": min(rmse.values()) - found.rmse}


def draw_coefficients(canvas: Figure, data: Measurement) -> None:
    for i, (axes, key) in enumerate(zip(canvas.subplots(1, 2), ("a", "b"), strict=True)):
        axes.set_xscale("log")
        axes.errorbar(data.table["arms"], data.table[key], whiskers(data.table, key), capsize=2, **point_style(i))
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
    changes_if="a line in log K explained a as well as a power of K",
    draw=draw_coefficients,
)
def coefficients(effort: Effort) -> Measurement:
    size = np.log(SIZES)
    names = [f"{arms} arms" for arms in SIZES]
    curves = [family(effort, "noisy")[name] for name in names]

    def shapes(a: Array, b: Array) -> dict[str, Array]:
        return {
            "a_log_linear": polynomial(size, a, 1),
            "b_log_linear": polynomial(size, b, 1),
            "a_power": np.exp(polynomial(size, np.log(a), 1)),
        }

    def scaling(*curves: Array) -> dict[str, float]:
        numbers = coefficients_of(names, *curves)
        a, b = every(numbers, "a"), every(numbers, "b")
        r2 = {f"r2_{name}": r_squared(a if name[0] == "a" else b, fit) for name, fit in shapes(a, b).items()}
        return {**numbers, **r2, "power": float(np.polyfit(size, np.log(a), 1)[0])}

    r2 = jackknife(scaling, *chain(*curves))
    columns: dict[str, Array] = {}
    for key in ("a", "b"):
        values = [r2[f"{name}/{key}"] for name in names]
        error = FACTOR * np.array([value.error for value in values])
        columns |= {key: np.array(values), f"{key}_low": values - error, f"{key}_high": values + error}
    return Measurement(
        {"arms": np.array(SIZES), **columns, **shapes(columns["a"], columns["b"])},
        r2,
        "In the paper, a and b are log-linear in the model's size. Here a line in log K explains "
        f"{r2['r2_a_log_linear']:.0%} of the variance of a and {r2['r2_b_log_linear']:.0%} of the variance of b. "
        f"Instead, a is a power of the number of arms, K to the {r2['power']:.2f} ({r2['r2_a_power']:.2%}): exp(H) "
        "grows with K, but the reward that it buys does not.",
    )
