"""STEER, figures 10 and 11: the fall of entropy under GRPO, by model, by data and by class of states."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..config import Config
from ..simulator import simulate
from ..trajectory import Array
from ..uncertainty import band, jackknife
from .curves import size, stack, train
from .drawing import lines
from .registry import Effort, Measurement, figure

MODELS: dict[str, dict[str, Any]] = {
    "16 arms": {"arms": 16, "right_arms": 4},
    "64 arms": {"arms": 64, "right_arms": 16},
    "16 arms, sure": {"arms": 16, "right_arms": 4, "logit_std": 4.0},
}
DATA: dict[str, dict[str, Any]] = {
    "reward .6 / .3": {},
    "reward .9 / .1": {"reward_right": 0.9, "reward_wrong": 0.1},
    "one right arm": {"right_arms": 1},
}
CLASSES = ("hard", "middling", "easy")
"""Thirds of the states, by the expected reward of the initial policy."""
SNAPSHOTS = 9


def by_class(effort: Effort) -> tuple[Array, Array]:
    """Return rollouts, and the mean entropy of each class of states before them, (runs, snapshots, classes), nats."""
    run = simulate(Config(**size(effort)), range(effort.runs), keep_policies=True)
    assert run.policies is not None
    rollout = np.linspace(0, run.reward.shape[1], SNAPSHOTS).round().astype(int)
    p = run.policies[:, rollout].swapaxes(0, 1)
    entropy = -(p * np.log(np.clip(p, np.finfo(float).tiny, None))).sum(-1)
    order = (p[0] * run.success).sum(-1).argsort(-1)
    ranked = np.take_along_axis(entropy, order[None], -1)
    thirds = np.array_split(ranked, len(CLASSES), -1)
    return rollout.astype(float), np.stack([third.mean(2).T for third in thirds], -1)


def draw_properties(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 3, sharey=True)
    for axes, (name, part) in zip(panels, data.series("panel").items(), strict=True):
        lines(axes, part, "rollout", "entropy")
        axes.set(xlabel="rollout", title=name)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    panels[0].set_ylabel("entropy (nats)")


@figure(
    "steer-10",
    source="STEER, figures 10 and 11",
    shows="entropy under GRPO for other bandits, other rewards and other classes of states",
    changes_if="one of the curves rose, other than by the rebound named, or a class did not fall with the others",
    draw=draw_properties,
)
def properties(effort: Effort) -> Measurement:
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    for panel, settings in (("models", MODELS), ("data", DATA)):
        for name, changes in settings.items():
            entropy = train(effort, **changes).entropy
            steps = np.arange(entropy.shape[1])
            rows.append({"panel": panel, "series": name, "rollout": steps, **band("entropy", entropy)})
            numbers |= {f"{key}, {name}": value for key, value in jackknife(fall, entropy).items()}
    rollout, classes = by_class(effort)
    for i, name in enumerate(CLASSES):
        rows.append(
            {"panel": "classes of states", "series": name, "rollout": rollout, **band("entropy", classes[..., i])}
        )
        numbers[f"kept, {name}"] = jackknife(fall, classes[..., i])["kept"]
    numbers |= jackknife(lambda h: {"least correlation of classes": np.corrcoef(h.mean(0).T).min()}, classes)
    kept = [numbers[f"kept, {name}"] for name in (*MODELS, *DATA)]
    step = max(numbers[f"largest step, {name}"] for name in (*MODELS, *DATA))
    found = (
        "In the paper, entropy falls smoothly, for every model and data set but at its own pace, and in the same way "
        f"on all test sets. Here too: {min(kept):.0%} to {max(kept):.0%} of it is left at the end, no rollout takes "
        f"more than {step:.0%} of it, and classes of states fall together (correlation at least "
        f"{numbers['least correlation of classes']:.2f}). But it need not fall to the end: with rewards of .9 and .1 "
        f"it ends {numbers['rebound, reward .9 / .1']:.2f} nats above its minimum."
    )
    return Measurement(stack(rows), numbers, found)


def fall(entropy: Array) -> dict[str, float]:
    """Return the first mean entropy, the share kept, the end minus the minimum, and the largest step over the first."""
    mean = entropy.mean(0)
    step = np.abs(np.diff(mean)).max() / mean[0]
    return {"start": mean[0], "kept": mean[-1] / mean[0], "rebound": mean[-1] - mean.min(), "largest step": step}
