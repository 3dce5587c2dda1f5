"""Trade-off of reward against entropy: each contender's path over time, and the frontier that no policy can exceed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from toybandit.frontier import best_reward, frontier_curve

from ...shared import charts
from ...shared.charts import INSIDE, MARGIN, Picture
from ...shared.palette import styles
from .comparison import Outcome, short_names

SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
)  # fmt: skip
"""Marks of the contenders."""
HEIGHT = 440
"""Height with title and axis, pixels."""
PLOT = 360
"""Approximate height of the plot alone, pixels."""
NARROW = 320
"""Width of the plot on a phone, pixels; labels must fit into it."""
ROW, LETTER = 16, 5.6
"""Height of a label and width of a letter, pixels."""
LIMIT = 220
"""Width of the longest label, pixels."""
POINTS = 100
"""Points of a frontier."""
GREY = "#7b7b7b"
"""Grey that is readable on light and dark backgrounds."""
FONT = 12


def picture(outcomes: Sequence[Outcome], target: float | None) -> Picture:
    """Return the picture: mean paths over seeds, a dot at each quarter, ends with the range over seeds, and frontiers.

    target: entropy to mark, nats, if given. Columns of the frame: kind (frontier, path, quarter, end, target, and title
    and corner, which place text and edges), series, rollout, entropy, reward; for ends also the lowest and highest
    seed, and the positions of their labels.
    """
    short = short_names(outcomes)
    paths = [found.path.assign(kind="path", series=short[found.name]) for found in outcomes]
    ends = pd.DataFrame([end(found) for found in outcomes]).replace({"series": short})
    frames = [*paths, *(quarters(frame) for frame in paths)]
    lines = frontiers(outcomes)
    right, bottom, top = edges(pd.concat(paths), ends, lines)
    lines = [frame[frame["entropy"] <= right] for frame in lines]
    corners = {"kind": "corner", "entropy": [-MARGIN * right, right], "reward": [bottom, top]}
    ends = placed(ends, right, bottom, top)
    frames += [*lines, *titles(lines, top - bottom), ends, pd.DataFrame(corners)]
    if target is not None:
        frames.append(pd.DataFrame({"kind": "target", "series": f"target {target:g}", "entropy": [target]}))
    frame = pd.concat(frames, ignore_index=True)
    names = tuple(short.values())
    kinds = frozenset({*frame["kind"], *ends["side"]})
    return Picture(
        _spec(names, kinds), frame, f"Reward against entropy: the paths of {', '.join(names)}, and the frontier."
    )


def quarters(path: pd.DataFrame) -> pd.DataFrame:
    """Return the points of a path at its start and after each quarter of its rollouts except the last."""
    return path.iloc[sorted({(len(path) - 1) * k // 4 for k in range(4)})].assign(kind="quarter")


def end(found: Outcome) -> dict[str, Any]:
    """Return the end of a path with the lowest and highest seed."""
    last = found.path.iloc[-1]
    entropy, reward = found.final_entropy, found.final_reward
    seeds = {"entropy_min": entropy.min(), "entropy_max": entropy.max()}
    return {
        **last,
        **seeds,
        "reward_min": reward.min(),
        "reward_max": reward.max(),
        "kind": "end",
        "series": found.name,
    }


def frontiers(outcomes: Sequence[Outcome]) -> list[pd.DataFrame]:
    """Return the frontier of each distinct bandit, over all seeds; none for episodes, nor if prompts change.

    Below the entropy of a uniform policy over tied best arms, it is level down to entropy 0.
    """
    bandits: dict[bytes, tuple[str, np.ndarray]] = {}
    for found in outcomes:
        environment = found.contender.config.environment()
        if not found.is_episodic and environment.prompts == environment.states:
            success = found.trajectory.success
            bandits.setdefault(success.tobytes(), (found.contender.config.env, success))
    frames = []
    for number, (env, success) in enumerate(bandits.values()):
        entropy, reward = frontier_curve(success, POINTS)
        states = success.reshape(-1, success.shape[-1])
        entropy, reward = np.append(entropy, 0.0), np.append(reward, best_reward(states, 0.0))
        title = "frontier" if len(bandits) == 1 else f"frontier {number + 1} ({env})"
        line = {"kind": "frontier", "series": title, "rollout": np.arange(len(entropy)), "entropy": entropy}
        frames.append(pd.DataFrame(line | {"reward": reward}))
    return frames


def edges(paths: pd.DataFrame, ends: pd.DataFrame, lines: Sequence[pd.DataFrame]) -> tuple[float, float, float]:
    """Return right, bottom and top of the picture, with room for a frontier's title and for labels below the ends."""
    right = 1.06 * max(float(paths["entropy"].max()), float(ends["entropy_max"].max()), 0.05)
    highest = max(float(frame["reward"].max()) for frame in (paths, *lines))
    lowest, below = float(ends["reward_min"].min()), float(paths["reward"].min())
    span = max(highest - min(below, lowest), 0.02)
    top = highest + 1.5 * ROW / PLOT * span
    share = (len(ends) + 1.5) * ROW / PLOT
    bottom = min(below - 0.05 * span, (lowest - share * top) / (1 - share))
    return right, bottom, top


def placed(ends: pd.DataFrame, right: float, bottom: float, top: float) -> pd.DataFrame:
    """Return the ends with `label`, the reward that is the label's height below all ends, and `side`, its direction.

    A thin line leads from a mark down to its label. Labels extend to the left, where paths that lose entropy have not
    been; the further left the mark, the higher its label, so that no line crosses a label. Labels that do not fit there
    extend to the right, below the others.
    """
    place = NARROW * (MARGIN + ends["entropy"] / right) / (1 + MARGIN)
    width = LETTER * ends["series"].str.len().clip(upper=LIMIT / LETTER)
    left = place > width
    row = np.argsort(np.argsort(np.where(left, ends["entropy"], 2 * right - ends["entropy"]), kind="stable"))
    label = ends["reward_min"].min() - (row + 1.2) * ROW / PLOT * (top - bottom)
    return ends.assign(side=np.where(left, "left", "right"), label=label)


def titles(lines: Sequence[pd.DataFrame], span: float) -> list[pd.DataFrame]:
    """Return the positions of the frontiers' names: their left ends, unless another name is at the same height."""
    found: dict[float, pd.DataFrame] = {}
    for frame in lines:
        last = frame.iloc[[-1]]
        height = float(last["reward"].iloc[0])
        if all(abs(height - other) > ROW / PLOT * span for other in found):
            found[height] = last.assign(kind="title")
    return list(found.values())


@lru_cache(maxsize=64)
def _spec(names: tuple[str, ...], kinds: frozenset[str]) -> dict[str, Any]:
    """Return the specification. kinds: those in the frame and sides of labels; Vega warns of layers without a row."""
    axis = alt.Axis(ticks=False, grid=False, tickCount=6, labelExpr="datum.value < 0 ? '' : datum.label")
    x = alt.X("entropy:Q", title="entropy H (nats)", axis=axis, scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("reward:Q", axis=INSIDE, scale=alt.Scale(nice=False, zero=False))
    domain = list(names)
    looks = styles(names)
    color = alt.Color("series:N", scale=alt.Scale(domain=domain, range=[look.colour for look in looks]), legend=None)
    dashes = [list(look.dash) for look in looks]
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=domain, range=dashes), legend=None)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=domain, range=list(SHAPES[: len(names)])), legend=None)
    tips = [
        alt.Tooltip("series:N", title="contender"),
        alt.Tooltip("rollout:Q"),
        alt.Tooltip("entropy:Q", format=".3f"),
        alt.Tooltip("reward:Q", format=".4f"),
    ]

    def of(kind: str) -> alt.Chart:
        return alt.Chart(description=kind).transform_filter(alt.datum.kind == kind)

    def label(side: str) -> alt.Chart:
        text = alt.Chart(description=side).transform_filter(alt.datum.side == side)
        mark = text.mark_text(
            align="left" if side == "right" else "right",
            dx=4 if side == "right" else -4,
            limit=LIMIT,
            color=GREY,
            fontSize=FONT,
        )
        return mark.encode(x=x, y=alt.Y("label:Q"), text="series:N")

    order = alt.Order("rollout:Q")
    layers = [
        of("corner").mark_point(opacity=0).encode(x=x, y=y),
        of("target").mark_rule(strokeDash=[2, 3], color=GREY, strokeWidth=1).encode(x=x, tooltip="series:N"),
        of("target").mark_text(align="left", dx=4, color=GREY).encode(x=x, y=alt.value(8), text="series:N"),
        of("frontier").mark_line(color=GREY, strokeWidth=2.5).encode(x=x, y=y, order=order, detail="series:N"),
        of("title").mark_text(align="left", baseline="bottom", dy=-3, color=GREY).encode(x=x, y=y, text="series:N"),
        of("end").mark_rule(opacity=0.5, color=GREY, strokeWidth=1).encode(x=x, y=y, y2="label:Q"),
        of("path").mark_line(strokeWidth=1.5).encode(x=x, y=y, order=order, color=color, strokeDash=dash),
        of("quarter").mark_point(filled=True, size=22, opacity=1).encode(x=x, y=y, color=color, tooltip=tips),
        of("end").mark_rule().encode(x=alt.X("entropy_min:Q"), x2="entropy_max:Q", y=y, color=color),
        of("end").mark_rule().encode(x=x, y=alt.Y("reward_min:Q"), y2="reward_max:Q", color=color),
        of("end").mark_point(filled=True, size=110, opacity=1).encode(x=x, y=y, color=color, shape=shape, tooltip=tips),
        label("right"),
        label("left"),
    ]
    drawn = alt.layer(*(layer for layer in layers if layer.description in kinds))
    title = alt.Title("Expected reward", anchor="start", fontSize=13, offset=4)
    return charts.specification(drawn.properties(title=title, height=HEIGHT).configure_view(strokeWidth=0))
