"""Estimates of a token's entropy change compared with the change by one optimizer step (STEER, appendix C.2, table 7).

    probe        tokens of one update with their measured and estimated entropy changes
    quality      quality of an estimator: errors, correlations, wrong signs
    quadrants    total entropy changes by sign of the advantage and by probability

Estimators are first order in the step and per unit of step size. They model a token's effect on its own distribution,
not shared weights or AdamW. So no step size converts them to nats, and errors are given at three step sizes: 1 as in
the paper, the learning rate, and the best fit. Estimates of `first_order` include shared weights, and are per step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrostat import Plan, Tokens, entropy_change
from entrostat.diagnostics import QUADRANTS
from entrostat.numbers.correlation import pearson, spearman

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ESTIMATORS = ("exact flow", "own logit", "STEER Ω", "OPEFO", "−Cov")
OWN, ALL = "SGD, one token alone", "SGD, one token alone, all tokens"
"""`optimizer` of probes that update one token at a time: change of the token's own entropy, or of all tokens' sum."""
LIKELY, UNLIKELY = 0.8, 0.2
"""Probabilities above which STEER calls a token likely, and up to which unlikely."""
RAISES = {"exploitation": False, "exploration": True, "suppression": False, "correction": True}
"""True for quadrants that raise the entropy according to STEER's figure 2."""
NUMERALS = dict(zip(QUADRANTS, ("I", "II", "III", "IV"), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """N tokens of one mini-batch, with one optimizer step on it; arrays are (N,), entropies in nats."""

    step: int
    """Rollout step."""
    optimizer: str
    lr: float
    length: float
    """Norm of the step in weight space."""
    p: Array
    entropy: Array
    """Entropy H before the step."""
    weight: Array
    """Factor of the token's ∇ log π in units of the advantage; A·r unless a controller changes it."""
    updated: Mask
    """Tokens that had a gradient."""
    change: Array
    """Measured change: H after the step minus H before it."""
    estimates: Mapping[str, Array]
    """Estimates by ESTIMATORS, per unit of step size; optionally by OF_WEIGHTS, for the step itself."""

    def select(self, index: NDArray[np.int64], change: ArrayLike, **changed: Any) -> "Probe":
        """Return a probe of selected tokens with other measured changes."""
        some = {name: getattr(self, name)[index] for name in ("p", "entropy", "weight", "updated")}
        estimates = {name: x[index] for name, x in self.estimates.items()}
        return replace(self, **some, change=np.asarray(change, dtype=np.float64), estimates=estimates, **changed)


def probe(tokens: Tokens, plan: Plan, entropy_after: Any, more: Mapping[str, Any] | None = None, **told: Any) -> Probe:
    """Return the probe of an update from its tokens (N,) before the step, its plan and the entropies after it.

    more: additional estimates, (N,) each. told: step, optimizer, lr and length of the Probe. Raises ValueError if
    tokens lack s2 or s2l.
    """
    logp, entropy = tokens.get("logp"), tokens.get("entropy")
    weight = -plan.coefficients(logp, entropy)[0] * tokens.size
    s2, s2l = tokens.get("s2"), tokens.get("s2l")
    covariance = entropy_change.covariance(logp, weight, logp.mean(), weight.mean())
    found = (
        entropy_change.exact(logp, entropy, s2, s2l, weight),
        entropy_change.own_logit(logp, entropy, weight),
        entropy_change.steer(logp, entropy, weight),
        entropy_change.opefo(logp, entropy, weight),
        -covariance,  # a positive covariance lowers entropy
    )

    def array(x: Any) -> Array:
        return x.detach().cpu().double().numpy()

    return Probe(
        p=array(logp.exp()),
        entropy=array(entropy),
        weight=array(weight),
        updated=plan.active().expand(weight.shape).cpu().numpy(),
        change=array(entropy_after) - array(entropy),
        estimates={name: array(x) for name, x in [*zip(ESTIMATORS, found, strict=True), *(more or {}).items()]},
        **told,
    )


def pool(probes: list[Probe]) -> Probe:
    """Return one probe with the tokens of several probes of one optimizer.

    `step` is the first probe's, `lr` and `length` are means.
    """
    first = probes[0]
    assert {one.optimizer for one in probes} == {first.optimizer}

    def joined(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in probes])

    return Probe(
        step=first.step,
        optimizer=first.optimizer,
        lr=float(np.mean([one.lr for one in probes])),
        length=float(np.mean([one.length for one in probes])),
        estimates={name: np.concatenate([one.estimates[name] for one in probes]) for name in first.estimates},
        **{name: joined(name) for name in ("p", "entropy", "weight", "updated", "change")},
    )


class Quality(NamedTuple):
    """Quality of an estimator on some tokens; errors in nats²."""

    mse: float
    """Mean squared error at step size 1."""
    mse_lr: float
    """Mean squared error at the learning rate."""
    relative_mse_lr: float
    """`mse_lr` as a share of the mean squared change, which is the error of guessing zero."""
    scale: float
    """Step size with the smallest error; below 0 the estimate has the wrong direction."""
    mse_scaled: float
    """Mean squared error at step size `scale`."""
    relative_mse_scaled: float
    """`mse_scaled` as a share of the mean squared change, 0 to 1; at 1 no step size is better than guessing zero."""
    pearson: float
    spearman: float
    wrong_sign: float
    """Share of the changed tokens whose estimate has the opposite sign."""


def quality(estimate: Array, change: Array, lr: float) -> Quality:
    """Return the quality of an estimate per unit of step size, (n,), against the measured change, (n,)."""
    power, square = float(estimate @ estimate), float((change**2).mean())
    scale = float(estimate @ change / power) if power > 0 else 0.0
    mse, mse_lr, mse_scaled = (float(((size * estimate - change) ** 2).mean()) for size in (1.0, lr, scale))
    changed = int((change != 0).sum())
    return Quality(
        mse=mse,
        mse_lr=mse_lr,
        relative_mse_lr=_ratio(mse_lr, square),
        scale=scale,
        mse_scaled=mse_scaled,
        relative_mse_scaled=_ratio(mse_scaled, square),
        pearson=pearson(estimate, change),
        spearman=spearman(estimate, change),
        wrong_sign=_ratio(float((estimate * change < 0).sum()), changed),
    )


def table(found: Probe) -> dict[str, dict[str, Quality]]:
    """Return the quality of each estimator on `updated` and on `all` tokens."""
    masks = {"updated": found.updated, "all": np.ones_like(found.updated)}
    return {
        where: {name: quality(x[mask], found.change[mask], found.lr) for name, x in found.estimates.items()}
        for where, mask in masks.items()
    }


def quadrants(found: Probe, cut: str = "probability") -> dict[str, dict[str, Any]]:
    """Return the sums of measured and estimated changes over the tokens in each of STEER's quadrants.

    cut: `probability`, above LIKELY and up to UNLIKELY as in the paper, which excludes tokens in between; or
    `entropy`, at e^(−H), where Ω changes sign. Estimates use the step size that fits the updated tokens best.
    """
    if cut == "probability":
        likely, unlikely = found.p > LIKELY, found.p <= UNLIKELY
    else:
        likely = np.log(found.p) + found.entropy > 0
        unlikely = ~likely
    up, down = found.weight > 0, found.weight < 0
    inside = dict(zip(QUADRANTS, (up & likely, up & unlikely, down & unlikely, down & likely), strict=True))
    scales = {name: one.scale for name, one in table(found)["updated"].items()}
    return {
        name: {
            "tokens": int(mask.sum()),
            "measured": float(found.change[mask].sum()),
            "as_claimed": _ratio(float(((found.change[mask] > 0) == RAISES[name]).sum()), int(mask.sum())),
            "estimated": {key: scales[key] * float(x[mask].sum()) for key, x in found.estimates.items()},
        }
        for name, mask in inside.items()
    }


def _ratio(x: float, of: float) -> float:
    return x / of if of > 0 else float("nan")
