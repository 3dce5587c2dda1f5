"""The law R = −a·e^H + b between entropy and reward (The Entropy Mechanism, equation 6), fitted to one run.

    entropy, reward = laws.read("runs/countdown")
    law = laws.fit(entropy, reward)             law.a, law.a_interval, law.r2, law.ceiling
    laws.band(entropy, reward, grid)            interval of the law at other entropies
    laws.alternatives(entropy, reward)          compared with a line and a parabola in H
    laws.predict_end(entropy, reward)           fitted to the first 15%, tested on the rest

Entropies (nats) and rewards have one value per step of the run. All functions raise a one-line ValueError on fewer than
4 points, on numbers that are not finite, and on an entropy that does not vary.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numbers.draws import generator_seed
from .runlog import read_metrics

Array = NDArray[np.float64]

LEAST = 4
"""Lower limit for the number of points: one more than the parabola has coefficients."""
MOST = 300.0
"""Upper limit for the entropy (nats), so that sums of (e^H)² are finite."""
RESAMPLES = 2000
"""Number of bootstrap samples."""


class Law(NamedTuple):
    """R = −a·e^H + b by least squares."""

    a: float
    """Rate at which entropy is traded for reward: dR/dH = −a·e^H."""
    b: float
    a_interval: tuple[float, float]
    b_interval: tuple[float, float]
    ceiling_interval: tuple[float, float]
    r2: float
    """Share of the variance of R that the law explains; NaN if R does not vary."""
    rmse: float
    """Root of the mean squared residual."""
    n: int
    """Number of points."""

    @property
    def ceiling(self) -> float:
        """R at H = 0, b − a: the most that the policy can earn once its entropy is spent."""
        return self.b - self.a

    def __call__(self, entropy: ArrayLike) -> Array:
        """Return R at these entropies, in their shape."""
        return self.b - self.a * np.exp(np.asarray(entropy, dtype=np.float64))


class Score(NamedTuple):
    """Goodness of fit of a curve."""

    r2: float
    adjusted_r2: float
    """1 − (1 − R²)·(n − 1) / (n − coefficients)."""
    aic: float
    """n·log(mean squared residual) + 2·(coefficients + 1). Assumes independent points; the points of a run are not,
    which makes differences larger than they should be."""


class Prediction(NamedTuple):
    """Prediction of the rest of a run from its beginning."""

    law: Law
    """Law fitted to the first `law.n` points."""
    predicted: Array
    """Rewards that the law gives at the entropies of the remaining points, (n − law.n,)."""
    rmse: float
    """Root of the mean squared error of the predicted rewards."""
    end_error: float
    """Predicted minus measured reward at the last point."""
    constant: float
    """Null, which needs no entropy: the mean reward of the last third of the first points."""
    constant_rmse: float
    """Root of the mean squared error of that constant."""
    least: float
    """Lowest and highest reward of all points."""
    most: float

    @property
    def beats_constant(self) -> bool:
        """True if the law predicts the rest better than the constant."""
        return self.rmse < self.constant_rmse

    @property
    def within(self) -> bool:
        """True if the predicted end is a reward that the run had, up to a tenth of their range."""
        room = 0.1 * (self.most - self.least)
        return self.least - room <= self.predicted[-1] <= self.most + room


def read(run: str | Path) -> tuple[Array, Array]:
    """Return entropy and reward of the steps of a run log that have both, (steps,) each."""
    lines = [(line.get("entropy"), line.get("reward")) for line in read_metrics(run)]
    pairs = [pair for pair in lines if None not in pair]
    if not pairs:
        raise ValueError(f"{run}: no step of metrics.jsonl has both entropy and reward")
    entropy, reward = np.array(pairs, dtype=np.float64).T
    return entropy, reward


def fit(entropy: ArrayLike, reward: ArrayLike, *, confidence: float = 0.95) -> Law:
    """Return the law of the points (n,), with intervals that hold a, b and the ceiling with probability `confidence`.

    Neighbouring points of a run have correlated errors. The intervals come from a bootstrap with a fixed seed:
    residuals are modelled as r⁺ = ρ·r + u, moving blocks of u are drawn, and the spread of the coefficients fitted to
    them gives the interval. They assume that the law is true, H exact and the errors stationary: if the points bend
    away from the law, as a better R² of the parabola shows, the true ceiling may be outside. They are somewhat narrow
    if errors persist for a good part of the run.
    """
    h, r = _points(entropy, reward)
    x = np.exp(h)
    for_a, for_b = _least_squares(x)
    weights = np.stack([for_a, for_b, for_b - for_a], -1)
    a, b, _ = (r @ weights).tolist()
    lows, highs = _interval(x, r, weights, confidence)
    of_a, of_b, of_ceiling = ((float(low), float(high)) for low, high in zip(lows, highs, strict=True))
    residual = r - (b - a * x)
    rmse = float(np.sqrt((residual**2).mean()))
    return Law(a, b, of_a, of_b, of_ceiling, r2=_r_squared(r, residual), rmse=rmse, n=len(r))


def band(entropy: ArrayLike, reward: ArrayLike, at: ArrayLike, *, confidence: float = 0.95) -> tuple[Array, Array]:
    """Return intervals of the law of the points (n,) at the entropies `at` (m,): lower and upper ends, (m,) each.

    Each contains the law there with probability `confidence`, by the bootstrap of `fit`; at H = 0 it is the interval
    of the ceiling.
    """
    h, r = _points(entropy, reward)
    x = np.exp(h)
    for_a, for_b = _least_squares(x)
    return _interval(x, r, for_b[:, None] - for_a[:, None] * np.exp(np.asarray(at, dtype=np.float64)), confidence)


def alternatives(entropy: ArrayLike, reward: ArrayLike) -> dict[str, Score]:
    """Return the scores of the exponential, a line and a parabola in H, by least squares."""
    h, r = _points(entropy, reward)
    designs = {"exponential": [np.exp(h)], "linear": [h], "quadratic": [h, h**2]}
    return {name: _score(np.stack([*columns, np.ones_like(h)], -1), r) for name, columns in designs.items()}


def predict_end(entropy: ArrayLike, reward: ArrayLike, share: float = 0.15) -> Prediction:
    """Fit the law to the first `share` of the points (n,); predict the rewards of the rest from their entropies."""
    h, r = _points(entropy, reward)
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, not {share:g}")
    first = int(share * len(h))
    if first < LEAST:
        raise ValueError(f"share {share:g} of {len(h)} points is {first}: a fit needs at least {LEAST}")
    law = fit(h[:first], r[:first])
    predicted, rest = law(h[first:]), r[first:]
    constant = float(r[first - first // 3 : first].mean())
    rmse, constant_rmse = (float(np.sqrt(((one - rest) ** 2).mean())) for one in (predicted, constant))
    return Prediction(law, predicted, rmse, float(predicted[-1] - rest[-1]), constant, constant_rmse, r.min(), r.max())


def persistence(residual: Array) -> float:
    """Return ρ of autoregressive residuals (n,), r⁺ = ρ·r + u, between 0 and .99.

    Least squares underestimates ρ by about (2 + 4ρ)/n, because two coefficients were fitted before; that is added back.
    """
    n, power = len(residual), residual @ residual
    if power == 0:
        return 0.0
    rho = float(residual[1:] @ residual[:-1] / power)
    return float(np.clip(rho + (2 + 4 * rho) / n, 0, 0.99))


def _least_squares(x: Array) -> tuple[Array, Array]:
    """Return the factors (n,) of the rewards (n,) in a and in b, which are linear in the rewards; x = e^H."""
    centred = x - x.mean()
    for_a = -centred / (centred @ centred)
    return for_a, 1 / len(x) + for_a * x.mean()


def _interval(x: Array, r: Array, weights: Array, confidence: float) -> tuple[Array, Array]:
    """Return lower and upper ends, (c,) each, of r @ weights, (n, c), under the bootstrap."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence:g}")
    for_a, for_b = _least_squares(x)
    errors = _redrawn_errors(r - (r @ for_b - r @ for_a * x), weights)
    low, high = r @ weights - np.quantile(errors, [(1 + confidence) / 2, (1 - confidence) / 2], axis=0)
    return low, high


def _redrawn_errors(residual: Array, weights: Array) -> Array:
    """Return the errors of the coefficients r @ weights, (n, c), under redrawn residuals: (RESAMPLES, c).

    The factors of the residuals are accumulated into factors of their innovations u, so that only u is drawn.
    """
    n, rho = weights.shape[0], persistence(residual)
    u = residual - rho * np.concatenate([[0.0], residual[:-1]])
    first = np.sqrt(1 - rho**2)  # the first residual has the spread of a residual, not of u
    u[0] *= first
    of_u = weights.copy()
    for step in range(n - 2, -1, -1):
        of_u[step] += rho * of_u[step + 1]
    of_u[0] /= first
    length = round(n ** (1 / 3))
    rng = np.random.default_rng(generator_seed("laws", n))
    start = rng.integers(n - length + 1, size=(RESAMPLES, -(-n // length), 1))
    place = (start + np.arange(length)).reshape(RESAMPLES, -1)[:, :n]
    return np.sqrt(n / (n - 2)) * (u - u.mean())[place] @ of_u


def _score(design: Array, r: Array) -> Score:
    n, coefficients = design.shape
    residual = r - design @ np.linalg.lstsq(design, r, rcond=None)[0]
    r2 = _r_squared(r, residual)
    with np.errstate(divide="ignore"):
        aic = n * np.log((residual**2).mean()) + 2 * (coefficients + 1)
    return Score(r2, 1 - (1 - r2) * (n - 1) / (n - coefficients), float(aic))


def _r_squared(r: Array, residual: Array) -> float:
    total = ((r - r.mean()) ** 2).sum()
    return float(1 - (residual**2).sum() / total) if _varies(r) and total > 0 else float("nan")


def _varies(x: Array) -> bool:
    """Return True if x varies by more than the rounding of its numbers."""
    return bool(np.ptp(x) > len(x) * np.finfo(float).eps * np.abs(x).max())


def _points(entropy: ArrayLike, reward: ArrayLike) -> tuple[Array, Array]:
    h, r = (np.asarray(x, dtype=np.float64) for x in (entropy, reward))
    if h.ndim != 1 or h.shape != r.shape:
        raise ValueError(f"entropy and reward must be lists of equal length, not of shapes {h.shape} and {r.shape}")
    if len(h) < LEAST:
        raise ValueError(f"{len(h)} points are too few for a law: give at least {LEAST}")
    for name, values in (("entropy", h), ("reward", r)):
        if not np.isfinite(values).all():
            raise ValueError(
                f"{name} is not finite at step {int(np.argmin(np.isfinite(values)))}: leave such steps out"
            )
    if h.max() > MOST:
        raise ValueError(f"entropy is {h.max():g} at step {int(h.argmax())}, too large for the squares of e^H")
    if not _varies(np.exp(h)):
        raise ValueError(f"entropy does not vary from {h[0]:g}: no law can be fitted to it")
    return h, r
