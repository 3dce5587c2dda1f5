"""STEER, figures 5, 8, 9, 18 and 19: its weights, and their effect on a training run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import LocalReduce, Tokens, entropy_change, make
from entrostat.controller import Context
from entrostat.plan import Plan, importance_ratio

from ..config import Config
from ..instruments import at_hand, binned, probe
from ..simulator import simulate
from ..trajectory import Array, Trajectory
from ..uncertainty import FACTOR, Measured, band, jackknife, mean
from .curves import curves, size, stack, sweep, train
from .drawing import entropy_and_reward, line_style, whiskers
from .registry import Effort, Measurement, figure, out_of_reach

OPEN: Mapping[str, Any] = {"ppo.eps_high": 5.0, "ppo.eps_low": 0.99}
"""Ratio clip so wide that it almost never acts."""
EXTREME: dict[str, tuple[str, Mapping[str, Any]]] = {
    "GRPO": ("ppo", {}),
    "entropy advantage": ("ppo+entropy_advantage", {}),
    "entropy bonus": ("ppo+entropy_bonus", {}),
    "Clip-Cov": ("ppo+clip_cov", {}),
    "STEER": ("ppo+steer", {}),
}
SHAPING = {"GRPO": "grpo", "entropy advantage": "entropy_advantage"}
"""Controllers of figure 5. GTPO, which divides a bonus among a response's tokens, equals GRPO if responses have one."""
LAMBDAS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BINS = 10
FIRST = 10
"""Rollouts of figure 9."""
MAPPINGS = ("exponential", "linear", "binary")
TOKENS = 201

out_of_reach("steer-6", "accuracy on mathematics benchmarks; the rewards of training runs are in steer-8 and steer-19")
out_of_reach("steer-table-3", "scores on mathematics benchmarks; tables 4, 10, 11 and 12 likewise")
out_of_reach("steer-table-5", "scores on code editing and generation")


@figure(
    "steer-5",
    source="STEER, figure 5",
    shows="entropy when the advantage is larger on uncertain tokens",
    changes_if="the entropy advantage kept as much entropy as GRPO, within two standard errors",
    draw=entropy_and_reward,
)
def advantage_shaping(effort: Effort) -> Measurement:
    runs = {name: train(effort, controller=spec) for name, spec in SHAPING.items()}
    numbers = {name: mean(run.entropy_held) for name, run in runs.items()}
    found = (
        "In the paper, larger advantages on uncertain tokens speed up the collapse. So they do here: "
        f"{numbers['entropy advantage']:.2f} nats over the last third, against {numbers['GRPO']:.2f} with GRPO."
    )
    return Measurement(curves(runs), numbers, found)


@figure(
    "steer-8",
    source="STEER, figure 8",
    shows="entropy with the ratio clip almost removed (ε = 0.99 and 5)",
    changes_if="STEER stayed level, or kept more entropy than GRPO by two standard errors",
    draw=lambda canvas, data: entropy_and_reward(canvas, data, columns=3),
)
def extreme_clip(effort: Effort) -> Measurement:
    runs = {
        name: train(effort, controller=spec, controller_args={**OPEN, **args}) for name, (spec, args) in EXTREME.items()
    }
    numbers = {}
    for name, run in runs.items():
        numbers[name] = mean(run.entropy_held)
        numbers[f"{name}, reward"] = mean(run.reward[:, -1])
        numbers[f"{name}, drift"] = mean(run.entropy[:, -1] - run.entropy[:, run.reward.shape[1] // 2])
    others = ", ".join(f"{name} {numbers[name]:.2f}" for name in EXTREME)
    falling = sum(numbers[f"{name}, drift"] < -FACTOR * numbers[f"{name}, drift"].error for name in EXTREME)
    found = (
        "In the paper, GRPO and the entropy advantage collapse, the bonus explodes, and STEER alone stays level. Here "
        f"STEER behaves like GRPO, {falling} of {len(EXTREME)} still fall in the second half, and none explodes (nats "
        f"over the last third: {others}; the bonus has its default coefficient)."
    )
    return Measurement(curves(runs), numbers, found)


def weights_by_change(plan: Plan, context: Context) -> Mapping[str, Tensor]:
    """Return the sum of weights and the number of tokens in bins of |ΔH|, exact and by Ω, relative to the largest."""
    tokens = context.tokens
    logp, entropy = tokens.get("logp"), tokens.get("entropy")
    weight = (tokens.advantage * importance_ratio(logp, tokens.get("old_logp"))).masked_fill(plan.clipped(logp), 0.0)
    sizes = {
        "exact": entropy_change.exact(logp, entropy, tokens.get("s2"), tokens.get("s2l"), weight).abs(),
        "Ω": entropy_change.steer(logp, entropy, weight).abs(),
    }
    found: dict[str, Tensor] = {}
    for name, change in sizes.items():
        bins = (BINS * change / change.amax(-1, keepdim=True)).long().clamp(max=BINS - 1)
        for quantity, values in (("weight", plan.weight.expand(logp.shape)), ("count", torch.ones_like(logp))):
            sums = binned(values, bins, BINS).unbind(-1)
            found |= {f"{name}/{quantity}/{b}": total for b, total in enumerate(sums)}
    return found


def draw_weights(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        error = whiskers(part.table, "weight")
        axes.errorbar(part.table["size"], part.table["weight"], error, marker="o", label=name, **line_style(i))
    axes.set(xlabel="|ΔH| of a token relative to the largest of the update", ylabel="mean weight")
    axes.legend()


@figure(
    "steer-9",
    source="STEER, figure 9",
    shows="mean weight of tokens against the entropy change that they would cause",
    changes_if="tokens of the largest exact change had as low a weight as those of the largest Ω",
    draw=draw_weights,
)
def weight_against_change(effort: Effort) -> Measurement:
    with at_hand(probe=probe(weights_by_change, "logp", "old_logp", "entropy", "s2", "s2l")):
        config = Config(controller="steer+probe", states=size(effort)["states"], rollouts=FIRST)
        seen = {name: values.mean(1) for name, values in simulate(config, range(effort.runs)).metrics.items()}
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, Measured] = {}
    for name, label in (("Ω", "by STEER's Ω"), ("exact", "by the exact flow")):
        weight, count = (
            np.stack([seen[f"{name}/{quantity}/{b}"] for b in range(BINS)], -1) for quantity in ("weight", "count")
        )
        averages = jackknife(weights_in_bins, weight, count)
        means = [averages[str(b)] for b in range(BINS)]
        low, high = ([value + end * FACTOR * value.error for value in means] for end in (-1, 1))
        row = {"weight": means, "weight_low": low, "weight_high": high}
        rows.append({"series": label, "size": (np.arange(BINS) + 0.5) / BINS, **row, "tokens": count.mean(0)})
        numbers |= {f"smallest, {name}": means[0], f"largest, {name}": means[-1]}
        numbers[f"share in the smallest bin, {name}"] = averages["share"]
    numbers["mean weight"] = averages["mean"]
    found = (
        "The paper finds weights near 1 for small changes and low weights for large changes only. This holds here by "
        f"STEER's own measure: from {numbers['smallest, Ω']:.2f} to {numbers['largest, Ω']:.2f}, with "
        f"{numbers['share in the smallest bin, Ω']:.0%} of the tokens in the smallest tenth and a mean weight of "
        f"{numbers['mean weight']:.3f}. By the exact flow, the tokens of the largest change keep a weight of "
        f"{numbers['largest, exact']:.2f}, since Ω is largest on other tokens."
    )
    return Measurement(stack(rows), numbers, found)


def weights_in_bins(weight: Array, count: Array) -> dict[str, float]:
    """Return the mean weight in each bin and in all, and the first bin's share of the tokens; both are (runs, bins)."""
    totals, tokens = weight.sum(0), count.sum(0)
    each = {str(b): value for b, value in enumerate(totals / tokens)}
    return {**each, "share": tokens[0] / tokens.sum(), "mean": totals.sum() / tokens.sum()}


def draw_mapping(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        axes.plot(part.table["size"], part.table["weight"], label=name, **line_style(i))
    axes.set(xlabel="Ω of a token relative to the largest", ylabel="weight")
    axes.legend()


@figure(
    "steer-18",
    source="STEER, figure 18 and table 12",
    shows="the three mappings from Ω to a weight, and their effect on a training run",
    changes_if="the binary mapping matched GRPO's entropy within two standard errors, or another did not",
    draw=draw_mapping,
)
def mappings(effort: Effort) -> Measurement:
    advantage = torch.linspace(0, 1, TOKENS, dtype=torch.float64)
    logp = torch.full_like(advantage, 0.5).log()
    tokens = Tokens(logp=logp, old_logp=logp, advantage=advantage, entropy=torch.zeros_like(logp))
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, Measured] = {}
    runs: dict[str, Trajectory] = {}
    for mapping in MAPPINGS:
        plan = make("steer", mapping=mapping).plan(tokens, LocalReduce())
        rows.append({"series": mapping, "size": advantage.numpy(), "weight": plan.weight.numpy()})
        run = train(effort, controller="steer", controller_args={"mapping": mapping})
        runs[mapping] = run
    runs["GRPO"] = train(effort)
    for name, run in runs.items():
        numbers |= {f"{name}, entropy": mean(run.entropy_held), f"{name}, reward": mean(run.reward[:, -1])}
        numbers[f"{name}, change"] = mean(run.entropy_held - runs["GRPO"].entropy_held)
    ends = ", ".join(f"{name} {numbers[f'{name}, entropy']:.2f}" for name in (*MAPPINGS, "GRPO"))
    changes = {name: numbers[f"{name}, change"] for name in MAPPINGS}
    moved = [name for name, change in changes.items() if abs(change) > FACTOR * change.error]
    rewards = [numbers[f"{name}, reward"] for name in (*MAPPINGS, "GRPO")]
    found = (
        "The paper draws the mappings, and the binary one scores lower there. Here the weights come from the "
        f"controller itself. Entropy over the last third: {ends}; against GRPO on the same seeds "
        f"{', '.join(f'{name} {change:+.3f}' for name, change in changes.items())}, more than two standard errors for "
        f"{' and '.join(moved) or 'none'}. Their final rewards are within {max(rewards) - min(rewards):.4f} of each "
        f"other (standard errors {min(r.error for r in rewards):.4f} to {max(r.error for r in rewards):.4f})."
    )
    return Measurement(stack(rows), numbers, found)


def draw_sensitivity(canvas: Figure, data: Measurement) -> None:
    left, right = canvas.subplots(1, 2)
    for axes, name, label in ((left, "entropy", "entropy (nats)"), (right, "reward", "expected reward")):
        for i, (series, part) in enumerate(data.series("series").items()):
            table = {key: values.astype(float) for key, values in part.table.items() if key != "series"}
            axes.errorbar(
                table["lambda_min"],
                table[name],
                whiskers(table, name),
                marker="o",
                capsize=2,
                label=series,
                **line_style(i),
            )
        axes.set(xlabel="λ_min", ylabel=label)
    left.set_ylim(bottom=0)
    canvas.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)


@figure(
    "steer-19",
    source="STEER, figures 7 and 19",
    shows="entropy and reward of STEER against λ_min",
    changes_if="a λ_min in [0.6, 0.8] moved the entropy by two standard errors",
    draw=draw_sensitivity,
)
def sensitivity(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    ends: dict[tuple[float, str], Trajectory] = {}
    for label, args in (("clip 0.2", {}), ("clip all but removed", OPEN)):
        runs = sweep(effort, "lambda_min", LAMBDAS, controller="ppo+steer", controller_args=args)
        for value, run in zip(LAMBDAS, runs.values(), strict=True):
            entropy, reward = run.entropy_held, run.reward[:, -1]
            rows.append({"series": label, "lambda_min": value, **band("entropy", entropy), **band("reward", reward)})
            numbers[f"entropy, {value:g}, {label}"] = mean(entropy)
            numbers[f"reward, {value:g}, {label}"] = mean(reward)
            ends[value, label] = run
    inside = [numbers[f"entropy, {value:g}, clip 0.2"] for value in LAMBDAS if 0.6 <= value <= 0.8]
    low, middle, none = (ends[value, "clip 0.2"] for value in (0.1, 0.7, 1.0))
    effect = mean(middle.entropy_held - none.entropy_held)
    kept, price = mean(low.entropy_held - none.entropy_held), mean((none.reward - low.reward)[:, -1])
    numbers |= {"λ_min 0.7 against 1": effect, "λ_min 0.1 against 1": kept, "price of λ_min 0.1": price}
    found = (
        "The paper finds equal scores for λ_min in [0.6, 0.8], less control above and less learning below. Here the "
        f"entropy is {min(inside):.2f} to {max(inside):.2f} nats in that range, and "
        f"{numbers['entropy, 1, clip 0.2']:.2f} with GRPO (λ_min = 1); on the same seeds λ_min = 0.7 moves it by "
        f"{effect:+.3f}. λ_min = 0.1 keeps more, {kept:+.3f}, and costs {price:.4f} of reward."
    )
    return Measurement(stack(rows), numbers, found)
