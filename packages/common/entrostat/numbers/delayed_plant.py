"""Plant whose readings are some rollouts old: a `Plant` for each delay, and the delay that explains the readings best.

    flows planned, newest first   u₀ u₁ … u₁₆
    plant of delay D              H(t − D) = H(t − D − 1) + gain·u_D + drift       one reading late for each D
    entropy now                   H(t − D) + gain·(u₀ + … + u_{D−1}) + D·drift

A delay that is known is used; otherwise that of the plant with the highest evidence, which has to be MARGIN above that
of the plant in use.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .per_run import as_state
from .plant import Plant

LONGEST = 16
"""Longest delay, in observations."""
MARGIN = 3.0
"""Log odds of another delay at which it is used: 20 to 1."""


class DelayedPlant(NamedTuple):
    """Estimate of a plant and of the delay of its readings, float64, with leading run dimensions (...)."""

    plants: Plant
    """Plant of each delay: fields (..., LONGEST + 1), covariance (..., LONGEST + 1, 3, 3)."""
    flows: Tensor
    """Signals between the last observations, newest first, (..., LONGEST + 1)."""
    delay: Tensor
    """Delay in use, (...,), in observations."""

    @classmethod
    def prior(cls, gain: float | Tensor) -> "DelayedPlant":
        """Return the estimate before any reading, see `Plant.prior`; no delay."""
        first = as_state(gain)
        wide = first.unsqueeze(-1).expand(*first.shape, LONGEST + 1)
        return cls(Plant.prior(wide), torch.zeros_like(wide), torch.zeros_like(first))

    @classmethod
    def of(cls, plant: Plant) -> "DelayedPlant":
        """Return the estimate in which this is the plant of every delay; no delay."""
        prior = cls.prior(plant.gain)
        wide = (x.unsqueeze(-3 if name == "covariance" else -1) for name, x in plant._asdict().items())
        return prior._replace(plants=Plant(*(x.expand(y.shape) for x, y in zip(wide, prior.plants, strict=True))))

    def observe(
        self,
        entropy: Tensor,
        u: Tensor,
        *,
        delay: float | Tensor,
        forgetting: float | Tensor,
        drift_rate: float | Tensor,
        least: float | Tensor = 0.0,
    ) -> "DelayedPlant":
        """Return the estimate after a step with the signal u (...,) and the reading `entropy` (...,), nats.

        delay: how old the reading is, in observations, (...,); below 0 if that is not known. forgetting, drift_rate,
        least: see `Plant.observe`. Runs whose entropy is not finite keep their estimate.
        """
        given = (entropy, u, delay, forgetting, drift_rate, least, self.delay)
        shape = torch.broadcast_shapes(*(as_state(x).shape for x in given))
        entropy, u = as_state(entropy).expand(shape), as_state(u).expand(shape)
        known = entropy.isfinite()
        flows = _pushed(u, self.flows.expand(*shape, -1))
        wide = entropy.unsqueeze(-1).expand(flows.shape)
        plants = self.plants.observe(
            wide,
            flows,
            forgetting=_column(forgetting),
            drift_rate=_column(drift_rate),
            least=_column(least),
        )
        best, told = plants.evidence.max(-1), as_state(delay)
        clear = best.values > _at(plants.evidence, self.delay.expand(shape)) + MARGIN
        likely = torch.where(clear, best.indices.to(self.delay), self.delay)
        used = torch.where(told < 0, likely, told.clamp(max=LONGEST))
        return DelayedPlant(
            plants,
            torch.where(known.unsqueeze(-1), flows, self.flows),
            torch.where(known, used, self.delay),
        )

    def afresh(self, which: Tensor, gain: float | Tensor) -> "DelayedPlant":
        """Return the estimate in which the runs of the mask `which` (...,) know no more than where the entropy is."""
        prior = DelayedPlant.prior(as_state(gain).expand(which.shape)).plants._replace(entropy=self.plants.entropy)
        return self._replace(
            plants=Plant(
                *(torch.where(_as_wide(which, old), new, old) for new, old in zip(prior, self.plants, strict=True))
            ),
            delay=torch.where(which, 0.0, self.delay),
        )

    @property
    def gain(self) -> Tensor:
        """Change of entropy per unit of the signal, (...,), above 0."""
        return _at(self.plants.gain, self.delay)

    @property
    def drift(self) -> Tensor:
        """Change of entropy in a step that the signal does not explain, (...,), nats."""
        return _at(self.plants.drift, self.delay)

    @property
    def entropy(self) -> Tensor:
        """Entropy now, (...,), nats: the last reading, filtered, and what was planned since; NaN before the first."""
        newer = torch.arange(LONGEST + 1, device=self.delay.device) < self.delay.unsqueeze(-1)
        since = self.gain * (self.flows * newer).sum(-1) + self.delay * self.drift
        return _at(self.plants.entropy, self.delay) + since


def _at(x: Tensor, delay: Tensor) -> Tensor:
    return x.gather(-1, delay.long().expand(x.shape[:-1]).unsqueeze(-1)).squeeze(-1)


def _as_wide(mask: Tensor, like: Tensor) -> Tensor:
    return mask.reshape(mask.shape + (1,) * (like.dim() - mask.dim()))


def _column(x: float | Tensor) -> Tensor:
    return as_state(x).unsqueeze(-1)


def _pushed(newest: Tensor, others: Tensor) -> Tensor:
    return torch.cat([newest.unsqueeze(-1), others[..., :-1]], -1)
