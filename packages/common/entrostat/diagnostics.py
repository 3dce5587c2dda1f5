"""What happened to the entropy, and why: one set of metrics for simulator, trainer and drop-ins.

    metrics = trace.observe(entropy)                    after a rollout: the entropy, and whether it was foretold
    updates.append(diagnose(tokens, plan, logp))        once an update
    metrics |= merge(updates)                           one number for all of them
    trace.expect(metrics["flow/total"])

Names, units and formulas: docs/metrics.md. A metric whose inputs are absent is left out. Entropies are in nats.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from . import entropy_change
from .controller import Context, as_reading, as_state
from .controllers.covariance import share_of_tokens, token_covariance
from .plan import Plan, importance_ratio
from .quadrants import QUADRANTS as STEER_QUADRANTS
from .quadrants import quadrant_masks
from .reduce import LocalReduce
from .tokens import Tokens

DIAGNOSED = frozenset({"logp", "old_logp", "entropy", "s2", "s2l", "s2ll"})
"""Fields of Tokens that all metrics together ask for."""
SHARES = {"0.02": 0.0002, "0.2": 0.002, "2": 0.02, "20": 0.2}
"""Percentages of the tokens of highest covariance (Entropy Mechanism, table 1), by the names they have in metrics."""
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Edges of the histogram of weights; 0 and 1 are bins of their own, as most weights are one of them."""
QUADRANTS = tuple(quadrant.name for quadrant in STEER_QUADRANTS.values())
"""Names of the quadrants I to IV, as metrics have them."""
SUMMED = ("flow/", "quadrant_flow/")


def diagnose(
    tokens: Tokens, plan: Plan, logp: Tensor | None = None, *, reduce: LocalReduce | None = None
) -> dict[str, Tensor]:
    """Metrics of one update, (...,) each: one number for each leading run, over the mini-batch and all ranks.

    tokens, plan: of the mini-batch, (..., N). logp: log π (..., N) at which the update was made, that of the tokens
    when None. The state of the controller is not here but in `Chain.metrics`.
    """
    reduce = reduce or LocalReduce()
    now = tokens.logp if logp is None else logp
    with torch.no_grad():
        means = _entropies(tokens, plan) | _touched(tokens, plan)
        found: dict[str, Tensor] = {}
        if now is not None:
            means |= _steer_quadrants(tokens, now)
            if tokens.old_logp is not None:
                means |= _clipping(tokens.old_logp, plan, now)
                ratio = importance_ratio(now, tokens.old_logp)
                found |= {"ratio/min": reduce.min(ratio), "ratio/max": reduce.max(ratio)}
            found |= _flows(tokens, plan, now, reduce)
        found = _means(means, tokens.advantage.shape, reduce) | found
        if "entropy/kept" in found:
            kept = found.pop("entropy/kept") / reduce.mean(plan.keep.expand(tokens.advantage.shape))
            found |= {} if bool(kept.isnan().all()) else {"entropy/kept": kept}  # of no tokens there is no mean
        return found | _weights(tokens, plan, reduce) | _covariances(tokens, reduce)


def _means(values: dict[str, Tensor], shape: torch.Size, reduce: LocalReduce) -> dict[str, Tensor]:
    """The mean over the mini-batch of every entry, (..., N) to (...,)."""
    local = torch.stack([value.expand(shape).sum(-1, dtype=torch.float64) for value in values.values()], -1)
    size = torch.full_like(local[..., :1], shape[-1])
    total = reduce.sum(torch.cat([local, size], -1).unsqueeze(-1))  # one exchange between ranks for all of them
    return dict(zip(values, (total[..., :-1] / total[..., -1:]).unbind(-1), strict=True))


def _entropies(tokens: Tokens, plan: Plan) -> dict[str, Tensor]:
    entropy = tokens.entropy if tokens.old_entropy is None else tokens.old_entropy
    return {} if entropy is None else {"entropy": entropy, "entropy/kept": torch.where(plan.keep, entropy, 0.0)}


def _touched(tokens: Tokens, plan: Plan) -> dict[str, Tensor]:
    touched = (plan.weight != 1) | ~plan.keep | (plan.advantage != tokens.advantage)
    for coef in (plan.entropy_coef, plan.kl_coef, plan.ref_coef, plan.truncated_coef):
        touched = touched if coef is None else touched | (coef != 0)
    return {"touched": touched, "dropped": ~plan.keep, "weight/mean": plan.weight}


def _clipping(old_logp: Tensor, plan: Plan, logp: Tensor) -> dict[str, Tensor]:
    ratio = importance_ratio(logp, old_logp)
    stopped = plan.clipped(logp)
    direction = torch.where(plan.weight < 0, -plan.advantage, plan.advantage)
    dual = stopped & (direction < 0) & (ratio > (torch.inf if plan.dual_clip is None else plan.dual_clip))
    return {
        "clip_fraction": stopped,
        "clip/high": stopped & (direction > 0),
        "clip/low": stopped & (direction < 0) & ~dual,
        "clip/dual": dual,
        "ratio/mean": ratio,
        "kl_to_rollout": old_logp - logp,
    }


def _steer_quadrants(tokens: Tokens, logp: Tensor) -> dict[str, Tensor]:
    if tokens.entropy is None:
        return {}
    parts = quadrant_masks(tokens.advantage, logp + tokens.entropy > 0)
    return {f"quadrant_steer/{name}": mask for name, mask in parts.items()}


def _flows(tokens: Tokens, plan: Plan, logp: Tensor, reduce: LocalReduce) -> dict[str, Tensor]:
    """Quadrants at the exact boundary, and the exact first-order entropy change per unit of step size."""
    t = tokens
    if t.entropy is None or t.s2 is None or t.s2l is None:
        return {}
    shape = t.advantage.shape
    logp, entropy = logp.expand(shape), t.entropy.expand(shape)
    parts = quadrant_masks(t.advantage, entropy_change.exact(logp, entropy, t.s2, t.s2l, torch.ones_like(logp)) < 0)
    known = plan.entropy_coef is None or t.s2ll is not None
    _, policy, bonus = entropy_change.planned(t, plan if known else plan.changed(entropy_coef=None), logp)
    found = _means({f"quadrant/{name}": mask for name, mask in parts.items()}, shape, reduce)
    found |= {f"quadrant_flow/{name}": reduce.sum(torch.where(mask, policy, 0.0)) for name, mask in parts.items()}
    found["flow/policy"] = total = reduce.sum(policy)
    if bonus is not None:
        found["flow/bonus"] = reduce.sum(bonus)
        total = total + found["flow/bonus"]
    if known and plan.truncated_coef is None:
        found["flow/total"] = total
    return found


def _weights(tokens: Tokens, plan: Plan, reduce: LocalReduce) -> dict[str, Tensor]:
    """Shares of the tokens by their weight: a histogram from counts below each edge."""
    weight = plan.weight.expand(tokens.advantage.shape)
    below = {"weight/negative": weight < 0, "weight/0": weight <= 0}
    for low, high in pairwise(EDGES):
        if high == 1:
            below |= {f"weight/{low:g}_to_1": weight < 1, "weight/1": weight <= 1}
        else:
            below[f"weight/{low:g}_to_{high:g}"] = weight <= high
    below[f"weight/above_{EDGES[-1]:g}"] = torch.ones_like(weight, dtype=torch.bool)
    counts = reduce.count(torch.stack(list(below.values()))).double()
    shares = counts.diff(dim=0, prepend=torch.zeros_like(counts[:1])) / counts[-1]
    return dict(zip(below, shares, strict=True))


def _covariances(tokens: Tokens, reduce: LocalReduce) -> dict[str, Tensor]:
    if tokens.logp is None or tokens.logp.shape != tokens.advantage.shape:
        return {}
    context = Context(tokens, reduce, seed=0, step=0)
    covariance = token_covariance(context)
    found = {"covariance/mean": reduce.mean(covariance)}
    for name, share in SHARES.items():
        k = share_of_tokens(share, context.size).to(covariance.device).expand(covariance.shape[:-1])
        least = reduce.kth_largest(covariance, k).double()
        above = covariance > least.unsqueeze(-1)
        rest = (k - reduce.count(above)) * least
        found[f"covariance/top_{name}%"] = (reduce.sum(torch.where(above, covariance, 0.0)) + rest) / k
    return found


def to_floats(metrics: Mapping[str, float | Tensor]) -> dict[str, float]:
    """Python numbers, means over leading runs. Tensors lie on one device and leave it in one copy."""
    means = {name: value.double().mean() for name, value in metrics.items() if isinstance(value, Tensor)}
    values = torch.stack(list(means.values())).tolist() if means else []
    return {**metrics, **dict(zip(means, values, strict=True))}


def merge(updates: Sequence[Mapping[str, float | Tensor]]) -> dict[str, Tensor]:
    """One number for a rollout step out of those of its updates: extremes of extremes, sums of flows, else means.

    A metric that some updates lack is merged from the others.
    """
    merged = {}
    for name in dict.fromkeys(name for update in updates for name in update):
        values = torch.stack([as_state(update[name]) for update in updates if name in update])
        if name == "ratio/min":
            merged[name] = values.amin(0)
        elif name == "ratio/max":
            merged[name] = values.amax(0)
        else:
            merged[name] = values.sum(0) if name.startswith(SUMMED) else values.mean(0)
    return merged


class EntropyTrace:
    """The entropy from rollout to rollout: smoothed, and its change against the one that the flow foretold.

    smoothing: weight of the past in the moving average (Revisiting Entropy, appendix D.3: 0.6).
    The step size κ that turns flow into nats is fitted to past changes by least squares with `forgetting`, so that a
    prediction never sees the change it predicts; `step_size` gives it instead, where it is known.
    """

    state = ("ema", "last", "flow", "squares", "products")

    def __init__(
        self, smoothing: float = 0.6, forgetting: float = 0.95, step_size: float | Tensor | None = None
    ) -> None:
        self.smoothing = smoothing
        self.forgetting = forgetting
        self.step_size = step_size
        self.ema = self.last = self.flow = as_state(torch.nan)
        self.squares = self.products = as_state(0.0)

    def expect(self, flow: float | Tensor | None) -> None:
        """Take `flow/total` (...,) of all updates since the last rollout; None when it is not known."""
        self.flow = as_reading(torch.nan if flow is None else flow)

    def observe(self, entropy: float | Tensor) -> dict[str, Tensor]:
        """Take the mean entropy of a rollout, (...,).

        Gives entropy and entropy/ema, and from the second rollout on entropy_change/measured, since the one before,
        and what was predicted for it. What is not finite moves nothing, and no change is measured from it.
        """
        seen, entropy = as_state(entropy), as_reading(entropy)
        change = entropy - self.last
        smoothed = torch.where(self.ema.isnan(), entropy, self.smoothing * self.ema + (1 - self.smoothing) * entropy)
        self.ema = torch.where(entropy.isnan(), self.ema, smoothed)
        fitted = torch.where(self.squares > 0, self.products / self.squares, torch.nan)
        kappa = fitted if self.step_size is None else as_state(self.step_size)
        usable = ~(change * self.flow).isnan()
        kept = torch.where(usable, as_state(self.forgetting), 1.0)
        self.squares = kept * self.squares + torch.where(usable, self.flow**2, 0.0)
        self.products = kept * self.products + torch.where(usable, self.flow * change, 0.0)
        found = {
            "entropy/ema": self.ema,
            "entropy_change/measured": change,
            "entropy_change/predicted": kappa * self.flow,
        }
        self.last, self.flow = entropy, as_state(torch.nan)
        return {"entropy": seen} | {name: value for name, value in found.items() if not bool(value.isnan().all())}

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).clone() for name in self.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore exactly what `state_dict` gave."""
        for name in self.state:
            setattr(self, name, as_state(state[name]).clone())
