"""Branches of two answers: where they part, and how many answers take each branch at each step.

prefix ──┬── token of A ──  branch A
         └── token of B ──  branch B
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from ...shared import charts
from ...shared.charts import Picture
from .answers import Step

END = "(end)"
"""Token of a branch that ends where the other goes on."""
CHOSEN = "chosen step"
"""Series of the rule, which has no line."""
HEIGHT, PLOT = 300, 200
"""Height of the picture with title and axis, and of its plot alone, pixels."""


@dataclass(frozen=True)
class Branch:
    """Beginning of an answer up to and including the token where it parts from another."""

    side: str
    """A or B: the answer that it belongs to."""
    prefix: tuple[str, ...]
    token: str

    def takes(self, tokens: Sequence[str]) -> bool:
        """Return True if an answer begins with this branch."""
        at = len(self.prefix)
        return tuple(tokens[:at]) == self.prefix and (tokens[at] if at < len(tokens) else END) == self.token


def parting(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the index of the first token in which two answers differ; None if they are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
    return None if same == len(one) == len(other) else same


def branches(one: Sequence[str], other: Sequence[str], at: int) -> tuple[Branch, Branch]:
    """Return the branches of answers A and B that part at token `at`."""
    sides = {"A": one, "B": other}
    found = [Branch(side, tuple(x[:at]), x[at] if at < len(x) else END) for side, x in sides.items()]
    return found[0], found[1]


def shares(steps: Mapping[int, Step], probe: int, branch: Branch) -> dict[int, tuple[int, int]]:
    """Return the number of a run's answers to a probe that take the branch, and of all, by step."""
    found = {}
    for step, answers in steps.items():
        mine = [branch.takes(answer.tokens) for name, answer in answers.items() if name.probe == probe]
        found[step] = sum(mine), len(mine)
    return found


def fate(counts: Mapping[int, tuple[int, int]], step: int) -> str:
    """Return what became of a branch up to a step, in words."""
    taken = [at for at, (count, _) in counts.items() if count]
    before = [at for at in taken if at <= step]
    now = counts.get(step, (0, 0))
    if now[0]:
        return f"taken by {now[0]} of {now[1]} answers at step {step}"
    later = [at for at in taken if at > step]
    back = f", and comes back at step {later[0]}" if later else ""
    if before:
        return f"died: last taken at step {before[-1]}{back}"
    return f"not taken until step {later[0]}" if later else "never taken"


def picture(lines: Mapping[str, Mapping[int, tuple[int, int]]], step: int) -> Picture:
    """Return the share of answers that take each branch over steps; a rule marks the chosen step."""
    parts = [
        pd.DataFrame({
            "x": list(counts),
            "series": name,
            "value": [count / total if total else np.nan for count, total in counts.values()],
        })
        for name, counts in lines.items()
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)
    panel = charts.Panel(title="share of the answers in a branch", frame=frame, limits=(0.0, 1.0))
    frame["label"] = charts.ends(panel, PLOT)
    chosen = pd.DataFrame({"x": [step], "series": [CHOSEN], "value": [np.nan], "label": [np.nan]})
    frame = pd.concat([frame, chosen], ignore_index=True)
    low, high = float(frame["x"].min()), float(frame["x"].max())
    return Picture(_spec(tuple(lines), low, high), frame, charts.lines_alt([panel.title], "rollout step"))


@lru_cache(maxsize=64)
def _spec(names: tuple[str, ...], low: float, high: float) -> dict[str, Any]:
    style = charts.styles(names, legend=False)
    span = max(high - low, 1.0)
    right = low + span * (1 + charts.LETTER * max(map(len, names)))
    scale = alt.Scale(domain=[low - charts.MARGIN * span, right], nice=False)
    axis = alt.Axis(values=charts.round_ticks(low, low + span), ticks=False, labelFlush=True)
    x = alt.X("x:Q", title="rollout step", axis=axis, scale=scale)
    y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1]), axis=charts.INSIDE)
    base = alt.Chart().transform_filter(alt.datum.series != CHOSEN)
    tips = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("x:Q", title="rollout step"),
        alt.Tooltip("value:Q", title="share of the answers", format=".2f"),
    ]
    rule = alt.Chart().transform_filter(alt.datum.series == CHOSEN).mark_rule(color="#888888").encode(x=x)
    title = alt.Title("Share of the answers that take the branch", anchor="start", fontSize=13, offset=4)
    layers = [
        rule,
        base.mark_line(strokeWidth=2).encode(x=x, y=y, **style),
        base.mark_point(size=45, filled=True).encode(x=x, y=y, color=style["color"], tooltip=tips),
        base.transform_filter("isValid(datum.label)")
        .mark_text(align="left", dx=6)
        .encode(x=x, y=alt.Y("label:Q", axis=charts.INSIDE), text="series:N", color=style["color"]),
    ]
    drawn = alt.layer(*layers).properties(title=title, height=HEIGHT).configure_view(strokeWidth=0)
    return charts.specification(drawn)
