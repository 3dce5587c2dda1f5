"""Picture of a GPU's memory: bars of training and rollout by part, with what stays free."""

from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

from llmtrain.plan.cost import RunPlan
from llmtrain.plan.gpu import GIB
from llmtrain.plan.headroom import headroom

from ...shared import charts
from ...shared.charts import Picture
from ...shared.palette import COLOURS

FREE = "free"
HEIGHT = 330
PARTS = (
    "weights", "gradients", "optimizer", "activations", "output layer", "engine weights", "KV cache", "everything else"
)  # fmt: skip
"""Parts with a colour of their own, in the order of the palette; the last one holds all others."""
ALT = "Bars of a GPU's memory in training and in rollout, by part, with the memory that stays free."


def picture(plan: RunPlan) -> Picture:
    """Return the picture of a plan's memory."""
    free, rows = headroom(plan), []
    for phase, parts in (("training", plan.memory.training), ("rollout", plan.memory.rollout)):
        known = {part: size for part, size in parts.items() if part in PARTS}
        known[PARTS[-1]] = sum(parts.values()) - sum(known.values())
        rows += [(phase, part, known.get(part, 0.0) / GIB, i) for i, part in enumerate(PARTS)]
        rows.append((phase, FREE, free[phase] / GIB, len(PARTS)))
    frame = pd.DataFrame(rows, columns=["phase", "part", "GiB", "place"])
    return Picture(_spec(plan.layout.gpu.memory / GIB), frame, ALT)


@lru_cache(maxsize=16)
def _spec(whole: float) -> dict[str, Any]:
    colours = alt.Scale(domain=[*PARTS, FREE], range=[*COLOURS, "#dddddd"])
    legend = alt.Legend(title=None, orient="top", columns=3, labelLimit=170)
    chart = (
        alt.Chart()
        .mark_bar(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("GiB:Q", title="GiB of a GPU", scale=alt.Scale(domain=[0, whole], nice=False)),
            y=alt.Y("phase:N", title=None, sort=["training", "rollout"]),
            color=alt.Color("part:N", scale=colours, legend=legend),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("phase:N", title="phase"),
                alt.Tooltip("part:N", title="part"),
                alt.Tooltip("GiB:Q", title="GiB", format=".1f"),
            ],
        )
        .properties(height=HEIGHT)
        .configure_view(strokeWidth=0)
    )
    return charts.specification(chart)
