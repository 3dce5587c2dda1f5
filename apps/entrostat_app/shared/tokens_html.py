"""Responses as HTML: tokens shaded and underlined by one of their numbers, all numbers on hover.

Text comes from models: every character is escaped, and invisible characters are made visible.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST = 4000
"""Upper limit for tokens drawn of one response."""
BLUE, ORANGE = "0, 114, 178", "213, 94, 0"
"""Colours from palette.py above and below the neutral value; colour-blind people can distinguish them."""
SHADE = 0.5
"""Opacity of the strongest shade: text stays readable on light and dark pages."""
THICKEST = 4
"""Thickness of the strongest underline, pixels."""


@dataclass(frozen=True)
class Scale:
    """Mapping from a token's number to shade and underline."""

    key: str
    """Key in samples.jsonl."""
    title: str
    unit: str
    neutral: float
    """Value that gets no shade."""
    above: str
    """Legend text for numbers above the neutral value."""
    below: str | None = None
    least: float = 0.0
    """Distance from the neutral value that gets the strongest shade, unless a larger one occurs."""


SCALES = {
    "entropy": Scale("entropy", "entropy H", "nats", 0.0, "undecided", least=0.5),
    "weight": Scale("weight", "weight", "", 1.0, "strengthened", "weakened; struck through at 0", least=0.25),
    "advantage": Scale("advantage", "advantage A", "", 0.0, "made likelier", "made less likely", least=0.25),
    "ΔH": Scale("entropy_change", "entropy change ΔH", "nats per unit step", 0.0, "raises the entropy", "lowers it"),
}
HOVER = {
    "logp": "log p",
    "entropy": "H",
    "advantage": "A",
    "weight": "weight",
    "entropy_change": "ΔH",
}
"""Labels of the numbers shown on hover, by their key in samples.jsonl."""
MARK = "✂"
"""Sign before the token where two responses part."""
SIGNS = {" ": "·", "\n": "↵\n", "\t": "⇥\t", "\r": "␍"}
"""Visible signs for whitespace; line breaks remain."""


def visible(text: str) -> str:
    """Return the text with whitespace made visible and unprintable characters written out, such as \\u202e."""
    return "".join(
        SIGNS.get(c) or (c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()) for c in text
    )


def escaped(value: Any) -> str:
    """Return any value as visible text, escaped for HTML."""
    return html.escape(visible(str(value)))


def column(sample: Mapping[str, Any], key: str) -> list[float] | None:
    """Return the numbers of the tokens, NaN for null; None if the sample does not hold one for each token."""
    values, tokens = sample.get(key), sample.get("tokens")
    if not isinstance(values, list) or not isinstance(tokens, list) or len(values) != len(tokens):
        return None
    if not all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in values):
        return None
    return [float("nan") if v is None else float(v) for v in values]


def reach(values: Sequence[float], scale: Scale) -> float:
    """Return the distance from the neutral value that gets the strongest shade."""
    away = np.nan_to_num(np.abs(np.asarray(values, dtype=np.float64) - scale.neutral), nan=0.0)
    return max(float(away.max(initial=0.0)), scale.least)


def strengths(values: Sequence[float], scale: Scale, most: float | None = None) -> list[float]:
    """Return the numbers scaled to −1 … 1 by their distance from the neutral value; 0 for NaN.

    most: the distance that becomes 1; None takes the largest.
    """
    away, most = np.asarray(values, dtype=np.float64) - scale.neutral, reach(values, scale) if most is None else most
    return np.nan_to_num(away / most, nan=0.0).tolist() if most > 0 else [0.0] * len(away)


def response(
    sample: Mapping[str, Any],
    name: str,
    *,
    label: str = "Response, token by token",
    most: float | None = None,
    mark: int | None = None,
) -> str:
    """Return the response as HTML in a scrolling region; only its text if the numbers are missing. name: of SCALES.

    label: name of the region for screen readers. most: see `strengths`. mark: index of a token to put a sign before.
    """
    scale = SCALES[name]
    tokens, values = sample.get("tokens"), column(sample, scale.key)
    if not isinstance(tokens, list) or values is None:
        return region(escaped(sample.get("response", "")), label)
    known = {label: found for key, label in HOVER.items() if (found := column(sample, key)) is not None}
    parts = []
    for i, strength in enumerate(strengths(values, scale, most)[:MOST]):
        numbers = " · ".join(f"{label} {of_all[i]:.4g}" for label, of_all in known.items())
        dropped = name == "weight" and values[i] == 0
        parts.append(f"<strong>{MARK}</strong>" if i == mark else "")
        parts.append(token(str(tokens[i]), strength, numbers, dropped=dropped))
    return region("".join(parts), label)


def region(inner: str, label: str) -> str:
    """Return escaped HTML in a box that scrolls if it is long, also by keyboard."""
    style = (
        "max-height:26rem; overflow:auto; white-space:pre-wrap; overflow-wrap:anywhere; line-height:2; "
        "font-family:'Source Code Pro',monospace; font-size:1.05rem; "
        "padding:0.25rem 0.5rem; border:1px solid rgba(128,128,128,.4); border-radius:0.5rem"
    )
    return f'<div style="{style}" tabindex="0" role="group" aria-label="{html.escape(label)}">{inner}</div>'


def token(text: str, strength: float, numbers: str, *, dropped: bool = False) -> str:
    """Return a token as HTML. Its underline is solid above the neutral value and dotted below: no colour is needed."""
    size = abs(strength)
    style = "padding:1px 0; margin-right:1px"
    if size > 0.02:
        hue, line = (BLUE, "solid") if strength > 0 else (ORANGE, "dotted")
        thick = max(round(THICKEST * size), 1)
        style += f"; background:rgba({hue}, {SHADE * size:.2f}); border-bottom:{thick}px {line} rgb({hue})"
    if dropped:
        style += "; text-decoration:line-through"
    shown = escaped(text) or "∅"
    return f'<span style="{style}" title="{html.escape(numbers)}">{shown}</span>'


def legend(sample: Mapping[str, Any], name: str) -> str:
    """Return the legend of shade and underline, as HTML."""
    scale = SCALES[name]
    values = [v for v in column(sample, scale.key) or [] if v == v]
    unit, most = f" {scale.unit}" if scale.unit else "", reach(values, scale)

    def end(distance: float, words: str) -> str:
        number = f"{scale.neutral + distance:.3g}"
        return f"{token(number, 1.0 if distance > 0 else -1.0, number)}{html.escape(f'{unit}: {words}')}"

    parts = [f"<strong>{html.escape(scale.title)}</strong>", f"{scale.neutral:g}: no shade"]
    if any(v > scale.neutral for v in values):
        parts.append(end(most, scale.above))
    if scale.below and any(v < scale.neutral for v in values):
        parts.append(end(-most, scale.below))
    return f"<div>{' &emsp; '.join(parts)}</div>"


def notice(sample: Mapping[str, Any], name: str) -> str:
    """Return a note on a response, not escaped; empty if the numbers are missing."""
    values = np.nan_to_num(np.asarray(column(sample, SCALES[name].key) or [], dtype=np.float64), nan=0.0)
    if not len(values):
        return ""
    if name == "entropy":
        order = np.argsort(-values)
        fifth = max(len(values) // 5, 1)
        share = values[order[:fifth]].sum() / max(values.sum(), 1e-12)
        where = f"token {order[0] + 1}, “{visible(str(sample['tokens'][order[0]]))}”, with {values[order[0]]:.2f} nats"
        return (
            f"The policy is most undecided at {where}; the mean is {values.mean():.2f}. The {fifth} most undecided of "
            f"{len(values)} tokens hold {100 * share:.0f}% of the entropy."
        )
    if name == "weight":
        touched, dropped = int((values != 1).sum()), int((values == 0).sum())
        return f"Controllers changed the weight of {touched} of {len(values)} tokens and dropped {dropped}."
    if name == "advantage":
        up, down = int((values > 0).sum()), int((values < 0).sum())
        return (
            f"{up} of {len(values)} tokens have an advantage above 0 and {down} below; the mean is {values.mean():.3g}."
        )
    raising, lowering = values[values > 0], values[values < 0]
    return (
        f"{len(raising)} tokens raise the entropy by {raising.sum():.3g} together, {len(lowering)} lower it by "
        f"{-lowering.sum():.3g}: {values.sum():+.3g} nats per unit step from this response."
    )
