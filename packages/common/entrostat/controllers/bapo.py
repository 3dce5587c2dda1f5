"""Clip bounds that move until tokens with A > 0 have their share of the loss."""

from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller
from ..numbers.per_run import as_state, column
from ..plan import Plan, importance_ratio
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive


@register("bapo")
@dataclass(kw_only=True)
class Bapo(Controller):
    """Widen [clip_low, clip_high] from [low, high] to [low_max, high_max] until tokens with A > 0 make up the share ρ.

    ρ is a share of the loss Σ π_old·|min(r·A, clip(r)·A)| over the mini-batch. The upper bound rises first, by
    step_high, then the lower one, by step_low; if the share is never reached, both stay at their upper limits. Raising
    the lower bound cannot raise the share, because clipped tokens count with their bound, but it does stop unlikely
    tokens with A < 0.
    """

    share: Annotated[Number, "[0, 1]"] = 0.4
    """Target share ρ of the tokens with A > 0."""
    low: NotNegative = 0.6
    """Initial lower bound of the ratio."""
    low_max: NotNegative = 0.9
    """Upper limit of the lower bound."""
    high: Positive = 1.2
    """Initial upper bound of the ratio."""
    high_max: Positive = 3.0
    """Upper limit of the upper bound."""
    step_low: Positive = 0.02
    """Step of the lower bound."""
    step_high: Positive = 0.05
    """Step of the upper bound."""
    lower_first: bool = False
    """Raise the lower bound before the upper one."""
    by_probability: bool = True
    """Weight tokens by π_old."""
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "released": {
            "share": 0.5,
            "low_max": 0.8,
            "high_max": 2.0,
            "step_low": 0.05,
            "lower_first": True,
            "by_probability": False,
        },
    }
    source: ClassVar = "Xi et al. 2026 (BAPO), algorithm 1"
    quadrants: ClassVar = ("II", "III")
    idle_on_policy: ClassVar = True
    last: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.low <= self.low_max), "low must not exceed low_max")
        self._require(torch.as_tensor(self.high <= self.high_max), "high must not exceed high_max")
        self._require(torch.as_tensor(self.low_max <= self.high), "low_max must not exceed high")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "old_logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens = context.tokens
        old_logp = tokens.get("old_logp")
        advantage = plan.weight * plan.advantage
        ratio = importance_ratio(tokens.get("logp"), old_logp).expand(advantage.shape)
        size = advantage.abs() * (old_logp.exp() if self.by_probability else 1.0)
        lows = _bounds(self.low, self.low_max, self.step_low, ratio.device)
        highs = _bounds(self.high, self.high_max, self.step_high, ratio.device)
        up, down = size * (advantage > 0), size * (advantage < 0)
        counts = torch.cat([_histogram(up, ratio, highs), _histogram(down, ratio, lows)], -1)
        successes, failures = context.reduce.sum(counts.unsqueeze(-1)).split(
            [highs.shape[-1] + 1, lows.shape[-1] + 1], -1
        )
        total, weighted = failures.sum(-1, keepdim=True).unbind(-2)
        positive = _at_most(successes, highs)
        negative = weighted + lows * total - _at_most(failures, lows)  # as max(r, b) = r + b − min(r, b)
        tried = _order(lows.shape[-1], highs.shape[-1], self.lower_first)
        low_at, high_at = (torch.tensor(places, device=ratio.device) for places in zip(*tried, strict=True))
        loss = positive[..., high_at] + negative[..., low_at]
        found = positive[..., high_at] / loss.where(loss > 0, 1.0)
        enough = found >= column(self.share, found)
        enough[..., -1] = True
        chosen = enough.byte().argmax(-1, keepdim=True)  # the first
        low, high = (
            bounds.expand(*chosen.shape[:-1], -1).gather(-1, at[chosen])
            for bounds, at in ((lows, low_at), (highs, high_at))
        )
        info = {"clip_low": low, "clip_high": high, "share": found.gather(-1, chosen)}
        return plan.changed(
            clip_low=low.to(ratio),
            clip_high=high.to(ratio),
            info={**plan.info, **{f"bapo/{name}": x.squeeze(-1) for name, x in info.items()}},
        )


def _bounds(first: Number, last: Number, step: Number, device: torch.device) -> Tensor:
    """Return first, first + step, … up to last: (C,), or (runs…, C)."""
    first, last, step = (as_state(x).to(device).unsqueeze(-1) for x in (first, last, step))
    steps = ceil(float(((last - first) / step).max()) - 1e-9)
    return torch.minimum(first + step * torch.arange(steps + 1, device=device), last)


def _histogram(size: Tensor, ratio: Tensor, bounds: Tensor) -> Tensor:
    """Return the sums of size and of size·ratio, (..., N) each, over the tokens between bounds: (..., 2, C + 1).

    The last column holds the tokens above all bounds. The bounds are evenly spaced except for the last one, so no
    search is needed.
    """
    edges = bounds.to(ratio)
    step = (edges[..., 1:2] - edges[..., :1]).clamp(min=torch.finfo(ratio.dtype).tiny) if edges.shape[-1] > 1 else 1.0
    count = edges.shape[-1]
    place = ((ratio - edges[..., :1]) / step).ceil_().nan_to_num_(0.0).clamp_(0, count - 1)  # NaN stays in the sums
    place = place.masked_fill(ratio > edges[..., -1:], count).long()
    table = torch.zeros(*place.shape[:-1], count + 1, dtype=torch.float64, device=ratio.device)
    return torch.stack([table.scatter_add(-1, place, x.double().expand(place.shape)) for x in (size, size * ratio)], -2)


def _at_most(counts: Tensor, bounds: Tensor) -> Tensor:
    """Return the sum of size·min(ratio, bound) over all tokens, (..., C), from the histogram (..., 2, C + 1)."""
    total, weighted = counts.cumsum(-1).unbind(-2)
    return weighted[..., :-1] + bounds * (total[..., -1:] - total[..., :-1])


def _order(lows: int, highs: int, lower_first: bool) -> list[tuple[int, int]]:
    """Return the order in which bounds are tried, as pairs of the index of the lower and of the upper bound."""
    if lower_first:
        return [(i, 0) for i in range(lows)] + [(lows - 1, j) for j in range(1, highs)]
    return [(0, j) for j in range(highs)] + [(i, highs - 1) for i in range(1, lows)]
