"""Metrics of the entropy and of the causes of its changes, the same for simulator, trainer and integrations.

    metrics = trace.observe(entropy)                    after a rollout: entropy, its change measured and predicted
    updates.append(diagnose(tokens, plan, logp))        once per update
    metrics |= merge(updates)                           one number per metric for all updates
    trace.expect(metrics["flow/total"])

Names, units and formulas: docs/metrics.md. A metric whose inputs are absent is left out. Entropies are in nats.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from . import entropy_change
from .controller import Context
from .controllers.covariance import share_of_tokens, token_covariance
from .numbers.per_run import as_state, reading
from .numbers.quadrants import QUADRANTS as STEER_QUADRANTS
from .numbers.quadrants import quadrant_masks
from .numbers.reduce import LocalReduce
from .plan import Plan, importance_ratio
from .tokens import Tokens

DIAGNOSED = frozenset({"logp", "old_logp", "entropy", "s2", "s2l", "s2ll"})
"""Fields of Tokens that the full set of metrics needs."""
SHARES = {"0.02": 0.0002, "0.2": 0.002, "2": 0.02, "20": 0.2}
"""Shares of the tokens of highest covariance (Entropy Mechanism, table 1), by their percentage in metric names."""
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Edges of the histogram of weights; 0 and 1 are bins of their own because most weights are 0 or 1."""
QUADRANTS = tuple(quadrant.name for quadrant in STEER_QUADRANTS.values())
"""Names of the quadrants I to IV in metric names."""
SUMMED = ("flow/", "quadrant_flow/")


def diagnose(
    tokens: Tokens, plan: Plan, logp: Tensor | None = None, *, reduce: LocalReduce | None = None
) -> dict[str, Tensor]:
    """Return the metrics of one update, (...,) each: one number per leading run, over the mini-batch and all ranks.

    tokens, plan: tokens and plan of the mini-batch, (..., N). logp: log π (..., N) at which the update was made; None
    for `tokens.logp`. `Chain.metrics` returns the state of the controller.
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
            found |= {} if bool(kept.isnan().all()) else {"entropy/kept": kept}  # no mean if no token is kept
        return found | _weights(tokens, plan, reduce) | _covariances(tokens, reduce)


def _means(values: dict[str, Tensor], shape: torch.Size, reduce: LocalReduce) -> dict[str, Tensor]:
    """Return the mean of every entry over the mini-batch, (..., N) to (...,)."""
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
    """Return quadrants at the exact boundary, and the exact first-order entropy change per unit of step size."""
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
    """Return the shares of the tokens by their weight: a histogram from counts below each edge."""
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
    """Return metrics as Python numbers, means over leading runs. All tensors are on one device and copied at once."""
    means = {name: value.double().mean() for name, value in metrics.items() if isinstance(value, Tensor)}
    values = torch.stack(list(means.values())).tolist() if means else []
    return {**metrics, **dict(zip(means, values, strict=True))}


def merge(updates: Sequence[Mapping[str, float | Tensor]]) -> dict[str, Tensor]:
    """Return the metrics of a rollout step from those of its updates: minima, maxima, sums of flows, otherwise means.

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
    """Entropy over the rollouts: its moving average, and its change as measured and as predicted from the flow.

    smoothing: weight of the past in the moving average (Revisiting Entropy, appendix D.3: 0.6).
    The step size κ that converts flow into nats is `step_size` if given. Otherwise it is fitted to past changes by
    least squares with `forgetting`; a prediction never uses the change that it predicts.
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
        """Set `flow/total` (...,) of all updates since the last rollout; None if it is unknown."""
        self.flow = reading(torch.nan if flow is None else flow)

    def observe(self, entropy: float | Tensor) -> dict[str, Tensor]:
        """Add the mean entropy of a rollout, (...,), nats, and return metrics.

        They are entropy, entropy/ema and, from the second rollout on, entropy_change/measured since the previous
        rollout and entropy_change/predicted. An entropy that is not finite changes nothing, and no change is measured
        to or from it.
        """
        seen, entropy = as_state(entropy), reading(entropy)
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
        """Restore exactly what `state_dict` returned."""
        for name in self.state:
            setattr(self, name, as_state(state[name]).clone())
