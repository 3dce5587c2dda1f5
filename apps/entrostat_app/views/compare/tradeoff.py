"""The trade-off of reward against entropy: each contender a path in time, and the frontier that none can pass."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from toybandit.frontier import best_reward, frontier_curve

from ...shared import charts
from ...shared.charts import INSIDE, MARGIN, Picture
from ...shared.palette import COLOURS, DASHES
from .comparison import Outcome

SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
)  # fmt: skip
"""A mark for each colour of the palette."""
HEIGHT = 440
"""Pixels, with the title and the axis."""
PLOT = 360
"""About what of it is left for the plot."""
NARROW = 320
"""Width of the plot on a telephone, pixels: where labels must fit."""
ROW, LETTER = 16, 5.6
"""Height of a label and width of a letter, pixels."""
LIMIT = 220
"""Width of the longest label, pixels."""
POINTS = 100
"""Of a frontier."""
GREY = "#7b7b7b"
"""Readable on light and on dark."""
FONT = 12


def picture(outcomes: Sequence[Outcome], target: float | None) -> Picture:
    """Paths of the means over seeds with a dot at each quarter, their ends with the range over seeds, and frontiers.

    target: marked where it is given, nats. The columns of the frame: kind (frontier, path, quarter, end, target, and
    title and corner, which place text and edges), series, rollout, entropy, reward; for ends also the least and
    greatest seed, and where their labels stand.
    """
    paths = [found.path.assign(kind="path", series=found.name) for found in outcomes]
    ends = pd.DataFrame([end(found) for found in outcomes])
    frames = [*paths, *(quarters(frame) for frame in paths)]
    lines = frontiers(outcomes)
    right, bottom, top = edges(pd.concat(paths), ends, lines)
    lines = [frame[frame["entropy"] <= right] for frame in lines]
    corners = {"kind": "corner", "entropy": [-MARGIN * right, right], "reward": [bottom, top]}
    frames += [*lines, *titles(lines, top - bottom), placed(ends, right, bottom, top), pd.DataFrame(corners)]
    if target is not None:
        frames.append(pd.DataFrame({"kind": "target", "series": f"target {target:g}", "entropy": [target]}))
    frame = pd.concat(frames, ignore_index=True)
    names = tuple(found.name for found in outcomes)
    return Picture(_spec(names), frame, f"Reward against entropy: the paths of {', '.join(names)}, and the frontier.")


def quarters(path: pd.DataFrame) -> pd.DataFrame:
    """The points of a path after each quarter of its rollouts but the last."""
    return path.iloc[sorted({(len(path) - 1) * k // 4 for k in range(4)})].assign(kind="quarter")


def end(found: Outcome) -> dict[str, Any]:
    """The end of a path with the least and greatest seed."""
    last = found.path.iloc[-1]
    entropy, reward = found.trajectory.entropy[:, int(last["rollout"])], found.final_reward
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
    """The frontier of each bandit that there is, of all seeds together; none of episodes.

    Below the entropy of the ties it is level, to entropy 0.
    """
    bandits: dict[bytes, tuple[str, np.ndarray]] = {}
    for found in outcomes:
        if not found.is_episodic:
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
    """Right, bottom and top of the picture, with room for a title over a frontier and for labels below the ends."""
    right = 1.06 * max(float(paths["entropy"].max()), float(ends["entropy_max"].max()), 0.05)
    highest = max(float(frame["reward"].max()) for frame in (paths, *lines))
    lowest, below = float(ends["reward_min"].min()), float(paths["reward"].min())
    span = max(highest - min(below, lowest), 0.02)
    top = highest + 1.5 * ROW / PLOT * span
    share = (len(ends) + 1.5) * ROW / PLOT
    bottom = min(below - 0.05 * span, (lowest - share * top) / (1 - share))
    return right, bottom, top


def placed(ends: pd.DataFrame, right: float, bottom: float, top: float) -> pd.DataFrame:
    """The ends with `label`, the reward at whose height a label stands, below them all, and the `side` it goes to.

    A thin line leads down from a mark to its label. Labels go to the left, where paths that lose entropy have not been,
    and the more left, the higher, so that no line crosses a label; those that do not fit there go to the right, below.
    """
    place = NARROW * (MARGIN + ends["entropy"] / right) / (1 + MARGIN)
    width = LETTER * ends["series"].str.len().clip(upper=LIMIT / LETTER)
    left = place > width
    row = np.argsort(np.argsort(np.where(left, ends["entropy"], 2 * right - ends["entropy"]), kind="stable"))
    label = ends["reward_min"].min() - (row + 1.2) * ROW / PLOT * (top - bottom)
    return ends.assign(side=np.where(left, "left", "right"), label=label)


def titles(lines: Sequence[pd.DataFrame], span: float) -> list[pd.DataFrame]:
    """Where the names of the frontiers stand: at their left end, unless that of another is as high."""
    found: dict[float, pd.DataFrame] = {}
    for frame in lines:
        last = frame.iloc[[-1]]
        height = float(last["reward"].iloc[0])
        if all(abs(height - other) > ROW / PLOT * span for other in found):
            found[height] = last.assign(kind="title")
    return list(found.values())


@lru_cache(maxsize=64)
def _spec(names: tuple[str, ...]) -> dict[str, Any]:
    axis = alt.Axis(ticks=False, grid=False, tickCount=6, labelExpr="datum.value < 0 ? '' : datum.label")
    x = alt.X("entropy:Q", title="entropy H (nats)", axis=axis, scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("reward:Q", axis=INSIDE, scale=alt.Scale(nice=False, zero=False))
    domain = list(names)
    color = alt.Color("series:N", scale=alt.Scale(domain=domain, range=list(COLOURS[: len(names)])), legend=None)
    dashes = [list(dash) for dash in DASHES[: len(names)]]
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=domain, range=dashes), legend=None)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=domain, range=list(SHAPES[: len(names)])), legend=None)
    tips = [
        alt.Tooltip("series:N", title="contender"),
        alt.Tooltip("rollout:Q"),
        alt.Tooltip("entropy:Q", format=".3f"),
        alt.Tooltip("reward:Q", format=".4f"),
    ]

    def of(kind: str) -> alt.Chart:
        return alt.Chart().transform_filter(alt.datum.kind == kind)

    def label(side: str) -> alt.Chart:
        text = of("end").transform_filter(alt.datum.side == side)
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
    title = alt.Title("Expected reward", anchor="start", fontSize=13, offset=4)
    return charts.specification(alt.layer(*layers).properties(title=title, height=HEIGHT).configure_view(strokeWidth=0))
