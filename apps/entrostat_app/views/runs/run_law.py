"""Law R = −a·e^H + b of one run: its fit and its forecast, as pictures, tables and words."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from entrostat.logs import laws
from entrostat.logs.laws import Law, Prediction, Score

from ...shared import charts
from ...shared.charts import Picture
from ...shared.palette import COLOURS, DASHES
from .run_log import Array, Log

MOST = 1500
"""Upper limit for fitted points; a longer run is thinned evenly to this number."""
FIRST, REST = "fitted for the forecast", "the rest of the run"
ALL, FORECAST = "law of all points", "forecast"


@dataclass(frozen=True)
class Fit:
    """Law of one run, its rival curves and its forecast."""

    entropy: Array
    """Entropy in nats, (n,)."""
    reward: Array
    """Reward, (n,)."""
    law: Law
    scores: Mapping[str, Score]
    prediction: Prediction | None
    """Forecast; None if the first share of the run has too few points."""


def points(log: Log) -> tuple[Array, Array]:
    """Return entropy and reward of the steps that have both, (n,) each, means over seeds.

    Raises ValueError if the run has not logged both.
    """
    entropy, reward = log.metrics.get("entropy"), log.metrics.get("reward")
    if entropy is None or reward is None:
        raise ValueError(f"{log.name} has not logged both entropy and reward yet: the law needs both")
    r = dict(zip(reward.step.tolist(), reward.values.mean(0).tolist(), strict=True))
    pairs = [(h, r[s]) for s, h in zip(entropy.step.tolist(), entropy.values.mean(0).tolist(), strict=True) if s in r]
    h, y = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    at = np.unique(np.linspace(0, len(h) - 1, min(MOST, len(h))).round().astype(int))
    return h[at], y[at]


def fit(entropy: Array, reward: Array, share: float) -> Fit:
    """Return the law of the points (n,) and the forecast from the first `share` of them.

    Raises ValueError in one line if the law cannot be fitted.
    """
    law, scores = laws.fit(entropy, reward), laws.alternatives(entropy, reward)
    try:
        prediction = laws.predict_end(entropy, reward, share)
    except ValueError:  # too few points, or an entropy that has not moved yet
        prediction = None
    return Fit(entropy, reward, law, scores, prediction)


def summary(found: Fit) -> str:
    """Return a description of the picture."""
    law, low, high = found.law, *found.law.ceiling_interval
    parts = [
        f"Over {law.n} points R = −{law.a:.3g}·e^H + {law.b:.3g}"
        if law.a >= 0
        else f"R = {-law.a:.3g}·e^H + {law.b:.3g}",
        f"explains {percent(law.r2)} of the variance of the reward. At zero entropy it predicts {law.ceiling:.3f} "
        f"[{low:.3f}, {high:.3f}]; the last reward is {found.reward[-1]:.3f}.",
    ]
    if found.prediction is not None:
        error = found.prediction.end_error
        parts.append(
            f"From its first {found.prediction.law.n} points only, the law predicts a final reward that is "
            f"{abs(error):.3f} too {'high' if error > 0 else 'low'}; its RMSE over the rest is "
            f"{found.prediction.rmse:.3f}, that of a constant, {found.prediction.constant:.3f}, "
            f"{found.prediction.constant_rmse:.3f}."
        )
    return " ".join(parts)


def percent(share: float) -> str:
    """Return a share of variance as text."""
    return "nothing" if not share > 0 else f"{100 * share:.0f}%"


def coefficients(found: Fit) -> pd.DataFrame:
    """Return a, b and the ceiling with their intervals as text, for all points and for those before the forecast."""
    laws_by_name = {"all points": found.law}
    if found.prediction is not None:
        laws_by_name[f"first {found.prediction.law.n}"] = found.prediction.law
    columns = {
        name: [
            f"{value:.3f} [{low:.3f}, {high:.3f}]"
            for value, (low, high) in (
                (law.a, law.a_interval),
                (law.b, law.b_interval),
                (law.ceiling, law.ceiling_interval),
            )
        ]
        for name, law in laws_by_name.items()
    }
    return pd.DataFrame({"number": ["a", "b", "ceiling b − a"], **columns})


def contest(found: Fit) -> pd.DataFrame:
    """Return the scores of the law, a line and a parabola."""
    names = {"exponential": "−a·e^H + b", "linear": "line in H", "quadratic": "parabola in H"}
    rows = [
        {"curve": names[key], "R²": s.r2, "adjusted R²": s.adjusted_r2, "AIC": s.aic} for key, s in found.scores.items()
    ]
    return pd.DataFrame(rows)


def picture(found: Fit, height: int = 340) -> Picture:
    """Return reward against entropy: points, the law of all points, the forecast, and the ceiling with its interval."""
    h, r, law = found.entropy, found.reward, found.law
    count = found.prediction.law.n if found.prediction else 0
    frames = [pd.DataFrame({"x": h, "y": r, "points": np.where(np.arange(len(h)) < count, FIRST, REST)})]
    grid = np.linspace(0, h.max(), 80)
    frames.append(pd.DataFrame({"x": grid, "curve": ALL, "value": law(grid)}))
    if found.prediction is not None:
        frames.append(pd.DataFrame({"x": grid, "curve": FORECAST, "value": found.prediction.law(grid)}))
    low, high = law.ceiling_interval
    frames.append(pd.DataFrame({"x": [0.0], "ceiling": [law.ceiling], "low": [low], "high": [high]}))
    pad = 0.1 * max(np.ptp(r), 1e-6)
    bottom, top = min(r.min(), law.ceiling) - pad, max(r.max(), law.ceiling) + pad
    y_range = (float(f"{bottom:.3g}"), float(f"{top:.3g}"))
    spec = _spec(*y_range, float(h.max()), found.prediction is not None, height)
    return Picture(
        spec, pd.concat(frames), "Reward against entropy: the points of a run, the law fitted to them, and its ceiling."
    )


@lru_cache(maxsize=64)
def _spec(bottom: float, top: float, right: float, has_forecast: bool, height: int) -> dict[str, Any]:
    base = alt.Chart()
    x = alt.X("x:Q", title="entropy H (nats)", scale=alt.Scale(domain=[-0.05 * right, 1.03 * right], nice=False))
    x = x.axis(values=charts.round_ticks(0.0, right), format="~g", labelFlush=True)

    def y(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", title="reward R", scale=alt.Scale(domain=[bottom, top], nice=False))

    def legend(**more: Any) -> alt.Legend:
        return alt.Legend(title=None, orient="top", columns=1, offset=2, labelLimit=180, symbolStrokeWidth=2, **more)

    parts = [FIRST, REST] if has_forecast else [REST]
    looks: dict[str, Any] = {"domain": parts, "range": [COLOURS[4], COLOURS[0]][-len(parts) :]}
    shapes: dict[str, Any] = {"domain": parts, "range": ["triangle-up", "circle"][-len(parts) :]}
    dots = base.transform_filter("isValid(datum.y)").mark_point(filled=True, opacity=0.6, size=36, clip=True)
    dots = dots.encode(
        x=x,
        y=y("y"),
        color=alt.Color("points:N", scale=alt.Scale(**looks), legend=legend()),
        shape=alt.Shape("points:N", scale=alt.Scale(**shapes), legend=legend()),
        tooltip=[alt.Tooltip("x:Q", title="H (nats)", format=".4g"), alt.Tooltip("y:Q", title="R", format=".4g")],
    )
    names = [ALL, FORECAST] if has_forecast else [ALL]
    colours: dict[str, Any] = {"domain": names, "range": [COLOURS[1], COLOURS[2]][: len(names)]}
    dashes: dict[str, Any] = {"domain": names, "range": [list(dash) for dash in DASHES[: len(names)]]}
    lines = base.transform_filter("isValid(datum.value)").mark_line(strokeWidth=2, clip=True)
    lines = lines.encode(
        x=x,
        y=y("value"),
        stroke=alt.Stroke("curve:N", scale=alt.Scale(**colours), legend=legend(symbolSize=400)),
        strokeDash=alt.StrokeDash("curve:N", scale=alt.Scale(**dashes), legend=legend(symbolSize=400)),
    )
    end = base.transform_filter("isValid(datum.ceiling)")
    bar = end.mark_rule(strokeWidth=2, color=COLOURS[1], clip=True).encode(x=x, y=y("low"), y2="high:Q")
    mark = end.mark_point(shape="diamond", filled=True, size=110, color=COLOURS[1]).encode(
        x=x,
        y=y("ceiling"),
        tooltip=[
            alt.Tooltip("ceiling:Q", title="ceiling", format=".4g"),
            alt.Tooltip("low:Q", title="95% from", format=".4g"),
            alt.Tooltip("high:Q", title="95% to", format=".4g"),
        ],
    )
    chart = alt.layer(dots, lines, bar, mark).properties(height=height).configure_view(strokeWidth=0)
    return charts.specification(chart.resolve_scale(color="independent", shape="independent"))
