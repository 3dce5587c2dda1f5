"""Online model of the effect of a control signal on the entropy: H⁺ = H + gain·u + drift, with noisy readings.

The signal u is known, so the model is linear in (H, gain, drift), and a Kalman filter with time-varying transition is
the recursive least-squares estimate of all three. Plain least squares of ΔĤ on u is biased under feedback: the noise of
Ĥ moves u and enters ΔĤ with the same sign. Here the entropy is a state of its own, and only its reading has noise.
With exact readings the filter is least squares of ΔH on (u, 1) with forgetting.

The trust in a reading is learnt as well. The surprises (prediction errors) of a correct filter are uncorrelated: if one
is followed by another of the same sign the filter lags behind, if by one of the other sign it follows noise. `trust` K
is adjusted until neither happens. With V the variance of the surprises, the readings have noise of variance (1 − K)·V,
and the model error of a step has variance K²·V (the steady state of a filter for a random walk). A reading far from all
that is expected counts as one at OUTLIER standard deviations: a single absurd one moves nothing, and one that repeats
widens V until it is believed.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .per_run import as_state

FALL, RISE = 0.5, 10.0
"""Limits of the factor by which one reading changes the gain: a gain that is too low makes a controller overreact."""
PRIOR_SPREAD = 1.0
"""Standard deviation of the gain, relative to it, before the first reading and after a change that hit those limits."""
LIVE_SPREAD = 0.3
"""Upper limit to which forgetting raises that standard deviation later."""
SURPRISE = 0.02
"""Standard deviation of a surprise before the first reading (nats)."""
MEMORY = 0.95
"""Forgetting factor of the surprises' variance."""
TRUST, LEAST_TRUST, MOST_TRUST = 0.5, 0.05, 1 - 1e-9
"""Initial trust, and its lower and upper limit."""
OUTLIER = 10.0
"""Largest surprise that is believed, in standard deviations of it."""
SEEN = 0.98
"""Factor by which the evidence for a model fades in a step: it is that of the last 50 readings."""
TRUST_RATE = 0.2
"""Rate at which log trust follows the correlation of surprises."""


class Plant(NamedTuple):
    """Estimate of a plant, float64, with leading run dimensions (...)."""

    entropy: Tensor
    """Filtered entropy at the last observation (...,), nats; NaN before the first one."""
    gain: Tensor
    """Change of entropy per unit of u (...,), above 0."""
    drift: Tensor
    """Change of entropy in a step that u does not explain (...,), nats."""
    covariance: Tensor
    """Covariance of (entropy, gain, drift): (..., 3, 3)."""
    trust: Tensor
    """Trust K in a reading (...,), between 0 and 1."""
    variance: Tensor
    """V, variance of a surprise (...,)."""
    surprise: Tensor
    """Last reading minus its prediction from the gain and drift updated by it (...,), nats."""
    evidence: Tensor
    """Log-likelihood of the readings under the model, (...,); older ones have faded."""

    @classmethod
    def prior(cls, gain: float | Tensor) -> "Plant":
        """Return the estimate before any reading: gain (...,) known up to a factor of about 2, and no drift."""
        mean = as_state(gain)
        zero = torch.zeros_like(mean)
        variances = torch.stack([zero, (PRIOR_SPREAD * mean) ** 2, zero + SURPRISE**2], -1)
        return cls(
            entropy=torch.full_like(mean, torch.nan),
            gain=mean,
            drift=zero,
            covariance=torch.diag_embed(variances),
            trust=zero + TRUST,
            variance=zero + SURPRISE**2,
            surprise=zero,
            evidence=zero,
        )

    def observe(
        self,
        entropy: Tensor,
        u: Tensor,
        *,
        forgetting: float | Tensor,
        drift_rate: float | Tensor,
        least: float | Tensor = 0.0,
    ) -> "Plant":
        """Return the estimate after a step with the summed signal u (...,) and then the reading `entropy` (...,), nats.

        forgetting: factor, at most 1, by which the information on the gain fades in a step. drift_rate: standard
        deviation of the drift's change in a step, relative to that of the model error; 0 keeps the drift constant.
        least: lower limit of the gain, (...,). Runs whose entropy is not finite keep their
        estimate; the first observation, and one after a signal that is not finite, set only the entropy.
        """
        entropy, u, _ = torch.broadcast_tensors(as_state(entropy).to(self.gain), as_state(u).to(self.gain), self.gain)
        known, started = entropy.isfinite(), self.entropy.isfinite() & u.isfinite()
        old = Plant(*(x.expand(entropy.shape + x.shape[x.dim() - n :]) for x, n in zip(self, _TRAILING, strict=True)))
        later = old._filtered(entropy, u, as_state(forgetting), as_state(drift_rate), as_state(least))
        first = old._replace(entropy=entropy)
        return Plant(*(_choose(known, _choose(started, a, b), c) for a, b, c in zip(later, first, old, strict=True)))

    def _filtered(self, reading: Tensor, u: Tensor, forgetting: Tensor, drift_rate: Tensor, least: Tensor) -> "Plant":
        noise, missed = (1 - self.trust) * self.variance, self.trust**2 * self.variance
        moved = self._moved(u, forgetting)
        moved = moved + torch.diag_embed(torch.stack([missed, torch.zeros_like(u), drift_rate**2 * missed], -1))
        expected = moved[..., 0, 0] + noise
        weight = moved[..., :, 0] / expected.unsqueeze(-1)
        predicted = self.entropy + self.gain * u + self.drift
        believed = OUTLIER * expected.sqrt()
        surprise = (reading - predicted).clamp(min=-believed, max=believed)
        by_entropy, by_gain, by_drift = (weight * surprise.unsqueeze(-1)).unbind(-1)
        gain = (self.gain + by_gain).clamp(min=FALL * self.gain, max=RISE * self.gain).clamp(min=least)

        keep = torch.eye(3).to(moved) - torch.nn.functional.pad(weight.unsqueeze(-1), (0, 2))
        outer = weight.unsqueeze(-1) * weight.unsqueeze(-2)
        covariance = keep @ moved @ keep.mT + noise[..., None, None] * outer
        spread = torch.where(gain == self.gain + by_gain, 0.0, (PRIOR_SPREAD * gain) ** 2)
        covariance = _stretched(covariance, (spread / covariance[..., 1, 1]).clamp(min=1))

        # Computed with the updated gain and drift: the part of a surprise that changed them is not noise.
        rest = surprise - (gain - self.gain) * u - by_drift
        variance = MEMORY * self.variance + (1 - MEMORY) * (surprise * rest).clamp(min=0)
        correlation = (surprise * self.surprise / (variance + rest**2)).clamp(-1, 1)
        return Plant(
            entropy=predicted + by_entropy,
            gain=gain,
            drift=self.drift + by_drift,
            covariance=covariance,
            trust=(self.trust * (TRUST_RATE * correlation).exp()).clamp(LEAST_TRUST, MOST_TRUST),
            variance=variance.clamp(min=torch.finfo(variance.dtype).tiny),
            surprise=rest,
            evidence=SEEN * self.evidence - (surprise**2 / expected + expected.log()) / 2,
        )

    def _moved(self, u: Tensor, forgetting: Tensor) -> Tensor:
        """Return the covariance one step later; information on the gain has faded."""
        room = (LIVE_SPREAD * self.gain) ** 2 / self.covariance[..., 1, 1]
        covariance = _stretched(self.covariance, (1 / forgetting).clamp(max=room).clamp(min=1.0))
        move = torch.eye(3).to(covariance).expand(covariance.shape).clone()
        move[..., 0, 1], move[..., 0, 2] = u, 1.0
        return move @ covariance @ move.mT


_TRAILING = tuple(2 if name == "covariance" else 0 for name in Plant._fields)
"""Number of dimensions of each field after the run dimensions."""


def _stretched(covariance: Tensor, factor: Tensor) -> Tensor:
    """Return the covariance with the gain's variance multiplied by `factor` (...,) and its correlations kept."""
    one = torch.ones_like(factor)
    scale = torch.stack([one, factor.sqrt(), one], -1)
    return covariance * scale.unsqueeze(-1) * scale.unsqueeze(-2)


def _choose(mask: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(mask.reshape(mask.shape + (1,) * (a.dim() - mask.dim())), a, b)
