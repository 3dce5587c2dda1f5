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
from .curves import curves, size, stack, sweep, train
from .drawing import entropy_and_reward, line_style
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
    draw=entropy_and_reward,
)
def advantage_shaping(effort: Effort) -> Measurement:
    runs = {name: train(effort, controller=spec) for name, spec in SHAPING.items()}
    numbers = {name: float(run.entropy_held.mean()) for name, run in runs.items()}
    found = (
        "In the paper, larger advantages on uncertain tokens speed up the collapse. So they do here: "
        f"{numbers['entropy advantage']:.2f} nats over the last third, against {numbers['GRPO']:.2f} with GRPO."
    )
    return Measurement(curves(runs), numbers, found)


@figure(
    "steer-8",
    source="STEER, figure 8",
    shows="entropy with the ratio clip almost removed (ε = 0.99 and 5)",
    draw=lambda canvas, data: entropy_and_reward(canvas, data, columns=3),
)
def extreme_clip(effort: Effort) -> Measurement:
    runs = {
        name: train(effort, controller=spec, controller_args={**OPEN, **args}) for name, (spec, args) in EXTREME.items()
    }
    numbers = {}
    for name, run in runs.items():
        numbers[name] = float(run.entropy_held.mean())
        numbers[f"{name}, reward"] = float(run.reward[:, -1].mean())
        numbers[f"{name}, drift"] = float((run.entropy[:, -1] - run.entropy[:, run.reward.shape[1] // 2]).mean())
    others = ", ".join(f"{name} {numbers[name]:.2f}" for name in EXTREME)
    falling = sum(numbers[f"{name}, drift"] < 0 for name in EXTREME)
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
        axes.plot(part.table["size"], part.table["weight"], marker="o", label=name, **line_style(i))
    axes.set(xlabel="|ΔH| of a token relative to the largest of the update", ylabel="mean weight")
    axes.legend()


@figure(
    "steer-9",
    source="STEER, figure 9",
    shows="mean weight of tokens against the entropy change that they would cause",
    draw=draw_weights,
)
def weight_against_change(effort: Effort) -> Measurement:
    with at_hand(probe=probe(weights_by_change, "logp", "old_logp", "entropy", "s2", "s2l")):
        config = Config(controller="steer+probe", states=size(effort)["states"], rollouts=FIRST)
        seen = {name: values.mean() for name, values in simulate(config, range(effort.runs)).metrics.items()}
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for name, label in (("Ω", "by STEER's Ω"), ("exact", "by the exact flow")):
        count = np.array([seen[f"{name}/count/{b}"] for b in range(BINS)])
        weight = np.array([seen[f"{name}/weight/{b}"] for b in range(BINS)])
        rows.append(
            {"series": label, "size": (np.arange(BINS) + 0.5) / BINS, "weight": weight / count, "tokens": count}
        )
        numbers |= {f"smallest, {name}": float(weight[0] / count[0]), f"largest, {name}": float(weight[-1] / count[-1])}
        numbers[f"share in the smallest bin, {name}"] = float(count[0] / count.sum())
    numbers["mean weight"] = float(weight.sum() / count.sum())
    found = (
        "The paper finds weights near 1 for small changes and low weights for large changes only. This holds here by "
        f"STEER's own measure: from {numbers['smallest, Ω']:.2f} to {numbers['largest, Ω']:.2f}, with "
        f"{numbers['share in the smallest bin, Ω']:.0%} of the tokens in the smallest tenth and a mean weight of "
        f"{numbers['mean weight']:.3f}. By the exact flow, the tokens of the largest change keep a weight of "
        f"{numbers['largest, exact']:.2f}, since Ω is largest on other tokens."
    )
    return Measurement(stack(rows), numbers, found)


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
    draw=draw_mapping,
)
def mappings(effort: Effort) -> Measurement:
    advantage = torch.linspace(0, 1, TOKENS, dtype=torch.float64)
    logp = torch.full_like(advantage, 0.5).log()
    tokens = Tokens(logp=logp, old_logp=logp, advantage=advantage, entropy=torch.zeros_like(logp))
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for mapping in MAPPINGS:
        plan = make("steer", mapping=mapping).plan(tokens, LocalReduce())
        rows.append({"series": mapping, "size": advantage.numpy(), "weight": plan.weight.numpy()})
        run = train(effort, controller="steer", controller_args={"mapping": mapping})
        numbers[f"{mapping}, entropy"] = float(run.entropy_held.mean())
        numbers[f"{mapping}, reward"] = float(run.reward[:, -1].mean())
    plain = train(effort)
    numbers |= {"GRPO, entropy": float(plain.entropy_held.mean()), "GRPO, reward": float(plain.reward[:, -1].mean())}
    ends = ", ".join(f"{name} {numbers[f'{name}, entropy']:.2f}" for name in (*MAPPINGS, "GRPO"))
    rewards = [numbers[f"{name}, reward"] for name in (*MAPPINGS, "GRPO")]
    found = (
        "The paper draws the mappings, and the binary one scores lower there. Here the weights come from the "
        f"controller itself. Entropy over the last third: {ends}; the binary mapping does lose entropy, the others "
        f"match GRPO. Their final rewards are within {max(rewards) - min(rewards):.4f} of each other."
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
                table[f"{name}_se"],
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
    draw=draw_sensitivity,
)
def sensitivity(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for label, args in (("clip 0.2", {}), ("clip all but removed", OPEN)):
        runs = sweep(effort, "lambda_min", LAMBDAS, controller="ppo+steer", controller_args=args)
        for value, run in zip(LAMBDAS, runs.values(), strict=True):
            entropy, reward = run.entropy_held, run.reward[:, -1]
            error = 1 / np.sqrt(effort.runs)
            rows.append(
                {
                    "series": label,
                    "lambda_min": value,
                    "entropy": entropy.mean(),
                    "entropy_se": error * entropy.std(ddof=1),
                    "reward": reward.mean(),
                    "reward_se": error * reward.std(ddof=1),
                }
            )
            numbers[f"entropy, {value:g}, {label}"] = float(entropy.mean())
            numbers[f"reward, {value:g}, {label}"] = float(reward.mean())
    inside = [numbers[f"entropy, {value:g}, clip 0.2"] for value in LAMBDAS if 0.6 <= value <= 0.8]
    low, none = (numbers[f"entropy, {value:g}, clip 0.2"] for value in (0.1, 1.0))
    price = numbers["reward, 1, clip 0.2"] - numbers["reward, 0.1, clip 0.2"]
    found = (
        "The paper finds equal scores for λ_min in [0.6, 0.8], less control above and less learning below. Here the "
        f"entropy is {min(inside):.2f} to {max(inside):.2f} nats in that range, and {none:.2f} with GRPO (λ_min = 1): "
        f"an effect within the noise of seeds. Only λ_min = 0.1 keeps more, {low:.2f}, and costs {price:.4f} of reward."
    )
    return Measurement(stack(rows), numbers, found)
