"""STEER, figures 3 and 17: tokens that the ratio clip stops, and the effect of its bounds on the entropy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat.controller import Context
from entrostat.plan import Plan

from ..config import Config
from ..instruments import at_hand, binned, probe
from ..simulator import simulate
from ..trajectory import Array, Trajectory
from ..uncertainty import FACTOR, band, jackknife, mean
from .curves import curves, size, stack, sweep, train
from .drawing import entropy_and_reward, line_style, lines, whiskers
from .registry import Effort, Measurement, figure

BINS = 10
"""Number of bins of π_old, equally wide."""
FIRST = 10
"""Rollouts of figure 3a."""
BOUNDS = (0.1, 0.2, 0.5, 0.8)
KINDS = {"high": "upper bound, A > 0", "low": "lower bound, A < 0"}


def clipped_by_probability(plan: Plan, context: Context) -> Mapping[str, Tensor]:
    """Count tokens with A > 0 and with A < 0, and the clipped tokens of each sign, in bins of π_old."""
    logp, old = context.tokens.get("logp"), context.tokens.get("old_logp")
    p, stopped = old.exp(), plan.clipped(logp)
    bins = (p * BINS).long().clamp(max=BINS - 1)
    found: dict[str, Tensor] = {}
    advantage = context.tokens.advantage
    for kind, side in (("high", advantage > 0), ("low", advantage < 0)):
        for name, mask in ((f"{kind}/all", side), (f"{kind}/clipped", side & stopped)):
            found |= {f"{name}/{b}": count for b, count in enumerate(binned(mask, bins, BINS).unbind(-1))}
            found[f"{name}/p"] = torch.where(mask, p, 0.0).sum(-1)
            found[f"{name}/count"] = mask.sum(-1).double()
    return found


def draw_clipped(canvas: Figure, data: Measurement) -> None:
    left, right = canvas.subplots(1, 2)
    for i, (name, part) in enumerate(data.series("series").items()):
        table = {key: values.astype(float) for key, values in part.table.items() if key != "series"}
        where = table["p"] + (i - 0.5) * 0.04
        left.bar(
            where, table["clipped"], 0.04, yerr=whiskers(table, "clipped"), color=line_style(i)["color"], label=name
        )
        right.errorbar(
            table["p"], 100 * table["share"], 100 * whiskers(table, "share"), marker="o", label=name, **line_style(i)
        )
    left.set(xlabel="rollout probability", ylabel="clipped tokens in an update")
    right.set(xlabel="rollout probability", ylabel="clipped, % of such tokens")
    canvas.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)


@figure(
    "steer-3a",
    source="STEER, figure 3a",
    shows="tokens that the ratio clip stops in the first 10 rollouts, by their probability",
    changes_if="stopped tokens were as likely as all tokens of their sign, within two standard errors",
    draw=draw_clipped,
)
def clipping_statistics(effort: Effort) -> Measurement:
    with at_hand(probe=probe(clipped_by_probability, "logp", "old_logp")):
        config = Config(controller="grpo+probe", states=size(effort)["states"], rollouts=FIRST)
        seen = {name: values.mean(1) for name, values in simulate(config, range(effort.runs)).metrics.items()}
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    centres = (np.arange(BINS) + 0.5) / BINS
    for kind, label in KINDS.items():
        every, clipped = (
            np.stack([seen[f"{kind}/{mask}/{b}"] for b in range(BINS)], -1) for mask in ("all", "clipped")
        )
        shares = jackknife(shares_clipped, clipped, every)
        each = [shares.pop(str(b)) for b in range(BINS)]
        low, high = ([value + end * FACTOR * value.error for value in each] for end in (-1, 1))
        columns = {**band("clipped", clipped), "share": each, "share_low": low, "share_high": high}
        rows.append({"series": label, "p": centres, **columns})
        for mask in ("all", "clipped"):
            totals = seen[f"{kind}/{mask}/p"], seen[f"{kind}/{mask}/count"]
            numbers |= jackknife(lambda p, n, key=f"mean p, {kind}, {mask}": {key: p.sum() / n.sum()}, *totals)
        numbers[f"share, {kind}"] = shares["all"]
    found = (
        "In the paper, mostly unlikely tokens are clipped. Here too: tokens stopped at the upper bound had a "
        f"mean probability of {numbers['mean p, high, clipped']:.2f} (all with A > 0: "
        f"{numbers['mean p, high, all']:.2f}), at the lower bound {numbers['mean p, low, clipped']:.2f} (A < 0: "
        f"{numbers['mean p, low, all']:.2f})."
    )
    return Measurement(stack(rows), numbers, found)


def shares_clipped(clipped: Array, every: Array) -> dict[str, float]:
    """Return the share of clipped tokens in each bin, 0 in an empty one, and in all; both are (runs, bins)."""
    stopped, tokens = clipped.sum(0), every.sum(0)
    share = np.divide(stopped, tokens, out=np.zeros(BINS), where=tokens > 0)
    return {**{str(b): value for b, value in enumerate(share)}, "all": stopped.sum() / tokens.sum()}


def draw_bounds(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 2, sharey=True)
    for axes, (name, part) in zip(panels, data.series("panel").items(), strict=True):
        lines(axes, part, "rollout", "entropy")
        axes.set(xlabel="rollout", title=name)
        axes.set_ylim(bottom=0)
        axes.legend()
    panels[0].set_ylabel("entropy (nats)")


@figure(
    "steer-3bc",
    source="STEER, figures 3b, 3c and 17",
    shows="entropy under four upper and four lower bounds of the ratio",
    changes_if="the order of a neighbouring pair of bounds were reversed",
    draw=draw_bounds,
)
def clipping_bounds(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for key, title in (("eps_high", "upper bound 1 + ε, lower 0.8"), ("eps_low", "lower bound 1 − ε, upper 1.2")):
        swept = sweep(effort, key, BOUNDS, controller="ppo").values()
        runs = {f"ε = {bound:g}": run for bound, run in zip(BOUNDS, swept, strict=True)}
        rows.append({"panel": title, **curves(runs)})
        for bound, run in zip(BOUNDS, swept, strict=True):
            numbers[f"{key} = {bound:g}"] = mean(run.entropy_held)
            rebound = f"{key} = {bound:g}, rebound"
            numbers |= jackknife(lambda h, rebound=rebound: {rebound: h.mean(0)[-1] - h.mean(0).min()}, run.entropy)
    highs, lows = (
        ", ".join(f"{numbers[f'{key} = {bound:g}']:.2f}" for bound in BOUNDS) for key in ("eps_high", "eps_low")
    )
    found = (
        "In the paper, a wider upper bound keeps the entropy high and later makes it grow again, and a wider lower "
        f"bound collapses it. Here the order is the same: {highs} nats for an upper ε of .1, .2, .5, .8, and {lows} "
        f"for a lower ε. But it hardly grows again: the rebound is {numbers['eps_high = 0.8, rebound']:.3f} nats at an "
        f"upper ε of .8, and a lower ε of .1 slows the fall without reversing it."
    )
    return Measurement(stack(rows), numbers, found)


@figure(
    "steer-3d",
    source="STEER, figure 3d",
    shows="training on positives or on negatives only",
    changes_if="the three differed on-policy by more than the smaller steps explain, or negatives alone kept "
    "no more than GRPO with reused samples",
    draw=entropy_and_reward,
)
def one_sign(effort: Effort) -> Measurement:
    specs = {"GRPO": "grpo", "positives only": "positive_only", "negatives only": "negative_only"}
    runs: dict[str, Trajectory] = {}
    numbers = {}
    for env in ("noisy", "on"):
        for name, spec in specs.items():
            trajectory = train(effort, env=env, controller=spec)
            numbers[f"{name}, {env}"] = mean(trajectory.entropy_held)
            if env == "noisy":
                runs[name] = trajectory
    reused, fresh = (
        ", ".join(f"{name} {numbers[f'{name}, {env}']:.2f}" for name in ("positives only", "GRPO", "negatives only"))
        for env in ("noisy", "on")
    )
    found = (
        f"In the paper, positives alone collapse the entropy and negatives alone keep it. So they do here with reused "
        f"samples ({reused} nats), where the ratio clip treats the two differently; strictly on-policy, both equal "
        f"GRPO with smaller steps ({fresh})."
    )
    return Measurement(curves(runs), numbers, found)
