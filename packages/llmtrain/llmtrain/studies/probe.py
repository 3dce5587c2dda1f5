"""Estimates of a token's entropy change against the change that one optimizer step made (STEER, appendix C.2, table 7).

    probe        the tokens of one update: what the step did to the entropy of each, and what estimators say of it
    quality      how good an estimator is: errors, correlations, wrong signs
    quadrants    what tokens of each sign of advantage and probability did to the entropy together

Estimators are first order in the step and per unit of step size. They know what a token does to its own distribution:
neither that tokens share their weights, nor what AdamW does to a gradient. So there is no step size that turns them
into nats, and errors are given at three: 1, as the paper has it, the learning rate, and the one that fits best. What
`first_order` says beside them knows the weights, and the step is its unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrostat import Plan, Tokens, entropy_change
from entrostat.correlation import pearson, spearman
from entrostat.diagnostics import QUADRANTS

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ESTIMATORS = ("exact flow", "own logit", "STEER Ω", "OPEFO", "−Cov")
OWN, ALL = "SGD, one token alone", "SGD, one token alone, all tokens"
"""`optimizer` of probes of tokens that step one at a time: of the entropy of each, or of that of all together."""
LIKELY, UNLIKELY = 0.8, 0.2
"""The probability above which STEER calls a token likely, and below which unlikely."""
RAISES = {"exploitation": False, "exploration": True, "suppression": False, "correction": True}
"""What STEER's figure 2 says that a quadrant does to the entropy."""
NUMERALS = dict(zip(QUADRANTS, ("I", "II", "III", "IV"), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """N tokens of one mini-batch and one optimizer step on it; arrays are (N,), entropies in nats."""

    step: int
    """Rollout step."""
    optimizer: str
    lr: float
    length: float
    """Norm of the step in the weights."""
    p: Array
    entropy: Array
    """H before the step."""
    weight: Array
    """What multiplied ∇ log π of the token, in units of the advantage: A·r where nothing else touches it."""
    updated: Mask
    """Tokens that had a gradient."""
    change: Array
    """Measured: H after the step minus H before it."""
    estimates: Mapping[str, Array]
    """By ESTIMATORS, per unit of step size; and by OF_WEIGHTS of the step itself, where it was asked for."""

    def select(self, index: NDArray[np.int64], change: ArrayLike, **changed: Any) -> "Probe":
        """Some of the tokens, with other measured changes."""
        some = {name: getattr(self, name)[index] for name in ("p", "entropy", "weight", "updated")}
        estimates = {name: x[index] for name, x in self.estimates.items()}
        return replace(self, **some, change=np.asarray(change, dtype=np.float64), estimates=estimates, **changed)


def probe(tokens: Tokens, plan: Plan, entropy_after: Any, more: Mapping[str, Any] | None = None, **told: Any) -> Probe:
    """The probe of an update from its tokens (N,) as they were before it, its plan and the entropies after it.

    more: further estimates, (N,) each. told: step, optimizer, lr and length of the Probe. Raises ValueError for tokens
    without s2 and s2l.
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
        -covariance,  # large where entropy is lost
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
    """The tokens of several probes of one optimizer together; `step` is the first, `lr` and `length` are means."""
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
    """How well an estimator tells the change of the tokens it was tried on."""

    mse: float
    """At step size 1."""
    mse_lr: float
    """At the learning rate."""
    relative_mse_lr: float
    """Of the mean squared change, the error of guessing zero."""
    scale: float
    """The step size at which the error is least; below 0 the estimate points the wrong way."""
    mse_scaled: float
    """At that step size."""
    relative_mse_scaled: float
    """Between 0 and 1: 1 where the estimator is no better than guessing zero at any step size."""
    pearson: float
    spearman: float
    wrong_sign: float
    """Share of the tokens that changed whose estimate has the other sign."""


def quality(estimate: Array, change: Array, lr: float) -> Quality:
    """Of an estimate per unit of step size, (n,), against the measured change, (n,)."""
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
    """`updated` and `all` tokens: the quality of each estimator."""
    masks = {"updated": found.updated, "all": np.ones_like(found.updated)}
    return {
        where: {name: quality(x[mask], found.change[mask], found.lr) for name, x in found.estimates.items()}
        for where, mask in masks.items()
    }


def quadrants(found: Probe, cut: str = "probability") -> dict[str, dict[str, Any]]:
    """Sums of measured and estimated changes over the tokens of each of STEER's quadrants.

    cut: `probability`, above LIKELY and up to UNLIKELY as the paper has it, which leaves tokens between them out; or
    `entropy`, at e^(−H), where Ω changes sign. Estimates are at the step size that fits the updated tokens best.
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
