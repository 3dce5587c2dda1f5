"""PI control of the entropy as a linear loop: stability, poles, gains by pole placement, step response.

    e⁺ = e + d − g·(kp·e + ki·S⁺),  S⁺ = S + e

e = Ĥ − target (nats), S the sum of errors, g the plant gain (fall of entropy in a rollout step for a unit of α), d the
drift of the entropy without control. This is the loop that `entropic` closes, as far as the plant is linear. Numbers
may be tensors that broadcast together; results are float64.

With s = g·kp and c = g·ki the loop has the matrix [[1 − s − c, −c], [1, 1]] on (e, S): determinant 1 − s, trace
2 − s − c. Jury's conditions for both poles inside the unit circle are |1 − s| < 1, c > 0 and 2s + c < 4.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .per_run import as_state

POLES = (0.8, 0.9)
"""Default poles of `place_poles`: an error falls below a tenth within 20 rollout steps and crosses zero once."""


class Gains(NamedTuple):
    """Gains of the controller α = kp·e + ki·S⁺."""

    kp: Tensor
    ki: Tensor


class Response(NamedTuple):
    """Response of a loop, step by step: (..., steps + 1) each."""

    error: Tensor
    """Error e, nats."""
    alpha: Tensor
    """α applied at e."""
    total: Tensor
    """S⁺, the sum of errors in α, nats."""


def stable(g: float | Tensor, kp: float | Tensor, ki: float | Tensor) -> Tensor:
    """Return True if the loop is asymptotically stable: 0 < g·kp < 2, g·ki > 0 and 2·g·kp + g·ki < 4. Bool tensor."""
    s, c = as_state(g) * kp, as_state(g) * ki
    return (s > 0) & (s < 2) & (c > 0) & (2 * s + c < 4)


def transition(g: float | Tensor, kp: float | Tensor, ki: float | Tensor) -> Tensor:
    """Return the matrix of the loop on (e, S), (..., 2, 2)."""
    s, c = torch.broadcast_tensors(as_state(g) * kp, as_state(g) * ki)
    one = torch.ones_like(s)
    return torch.stack([torch.stack([1 - s - c, -c], -1), torch.stack([one, one], -1)], -2)


def poles(g: float | Tensor, kp: float | Tensor, ki: float | Tensor) -> Tensor:
    """Return the two poles, complex128 (..., 2), roots of z² − (2 − g·kp − g·ki)·z + 1 − g·kp."""
    s, c = torch.broadcast_tensors(as_state(g) * kp, as_state(g) * ki)
    half = (2 - s - c) / 2
    root = (half**2 - (1 - s)).to(torch.complex128).sqrt()
    return torch.stack([half + root, half - root], -1)


def place_poles(g: float | Tensor, first: float | Tensor = POLES[0], second: float | Tensor = POLES[1]) -> Gains:
    """Return the gains that give a plant of gain g > 0 the real poles `first` and `second`, each in [0, 1).

    g·kp = 1 − p₁p₂ and g·ki = (1 − p₁)(1 − p₂); the loop is stable. Raises ValueError if g or a pole is out of range.
    """
    g, first, second = as_state(g), as_state(first), as_state(second)
    if not bool((g > 0).all()):
        raise ValueError("the plant gain must be positive: without it α does not move the entropy")
    for pole in (first, second):
        if not bool(((pole >= 0) & (pole < 1)).all()):
            raise ValueError("poles must lie in [0, 1)")
    return Gains((1 - first * second) / g, (1 - first) * (1 - second) / g)


def response(
    g: float | Tensor,
    kp: float | Tensor,
    ki: float | Tensor,
    *,
    error: float | Tensor = 1.0,
    drift: float | Tensor = 0.0,
    alpha_max: float | Tensor = torch.inf,
    anti_windup: bool = True,
    steps: int = 200,
) -> Response:
    """Return the response of a loop that starts at `error` (nats) with S = 0.

    drift: d, nats per rollout step. α is clipped to ±alpha_max. With anti-windup the sum stops while α is saturated and
    e would drive it further, as in `entropic`.
    """
    g, kp, ki, e, drift, limit = torch.broadcast_tensors(*map(as_state, (g, kp, ki, error, drift, alpha_max)))
    total = torch.zeros_like(e)
    steps_made: list[tuple[Tensor, Tensor, Tensor]] = []
    alpha = torch.zeros_like(e)
    for step in range(steps + 1):
        if step:
            e = e + drift - g * alpha
        summed = total + e
        wanted = kp * e + ki * summed
        winding = (wanted.abs() > limit) & (wanted * e > 0) & anti_windup
        total = torch.where(winding, total, summed)
        alpha = (kp * e + ki * total).clamp(min=-limit, max=limit)
        steps_made.append((e, alpha, total))
    return Response(*(torch.stack(values, -1) for values in zip(*steps_made, strict=True)))


def step_response(g: float | Tensor, kp: float | Tensor, ki: float | Tensor, **settings: Any) -> Tensor:
    """Return the errors of `response` with these settings: (..., steps + 1), nats."""
    return response(g, kp, ki, **settings).error


def settling_time(errors: Tensor, band: float | Tensor) -> Tensor:
    """Return the steps until |e| stays within `band` (nats), int64 (...,); `steps` if never. errors: (..., steps)."""
    outside = errors.abs() > as_state(band).unsqueeze(-1)
    last = (outside * torch.arange(1, errors.shape[-1] + 1, device=errors.device)).amax(-1)
    return last


def overshoot(errors: Tensor) -> Tensor:
    """Return the largest |e| on the other side of zero from its start, (...,), nats; 0 if e never crosses zero."""
    return (-errors * errors[..., :1].sign()).amax(-1).clamp(min=0)
