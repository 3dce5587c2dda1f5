"""Entropy change of a token as a function of its probability p and the entropy H of its state: STEER, figure 1.

p and H do not determine the exact change, which also depends on the other arms. Here the other arms share 1 − p
geometrically, q_j ∝ exp(−β·j), with β chosen so that the state has the entropy H.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from entrostat import entropy_change, policy_stats

BISECTIONS = 60
STEEPEST = 60.0
"""Largest β of the geometric tail."""
ALONE: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "own logit": entropy_change.own_logit,
    "Ω": entropy_change.steer,
    "OPEFO": entropy_change.opefo,
    "Cov": lambda logp, entropy, weight: -entropy_change.covariance(logp, weight, -entropy, torch.zeros(())),
}
"""Formulas of p and H alone, with the sign of ΔH. For Cov, the mean of log p is −H and the mean of A is 0."""
FORMULAS = ("exact", *ALONE)


class Grid(NamedTuple):
    """Pairs of p and H, (n_p, n_h) each, and the change per unit of weight, nats; NaN if no state has that p and H."""

    p: Tensor
    entropy: Tensor
    flow: Tensor


def geometric_tail(entropy: Tensor, arms: int) -> Tensor:
    """Return the log of q_j ∝ exp(−β·j), (..., arms), with this entropy (..., nats). Finds β by bisection."""
    rank = torch.arange(arms, dtype=entropy.dtype)
    low, high = torch.zeros_like(entropy), torch.full_like(entropy, STEEPEST)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        flat = policy_stats(-middle.unsqueeze(-1) * rank).entropy > entropy
        low, high = torch.where(flat, middle, low), torch.where(flat, high, middle)
    return torch.log_softmax(-low.unsqueeze(-1) * rank, -1)


def exact_flow(p: Tensor, entropy: Tensor, arms: int) -> Tensor:
    """Return the exact flow of a unit of weight at p in (0, 1) and H (nats), same shape; NaN if no state has both."""
    rest = (entropy + p * p.log() + (1 - p) * torch.log1p(-p)) / (1 - p)
    possible = (rest >= 0) & (rest <= log(arms - 1))
    tail = geometric_tail(rest.clamp(0, log(arms - 1)), arms - 1) + torch.log1p(-p).unsqueeze(-1)
    stats = policy_stats(torch.cat([p.log().unsqueeze(-1), tail], -1))
    flow = entropy_change.exact(p.log(), stats.entropy, stats.s2, stats.s2l, torch.ones_like(p))
    return flow.masked_fill(~possible, torch.nan)


def surface(formula: str, arms: int, size: tuple[int, int]) -> Grid:
    """Return a formula of FORMULAS at the centres of `size` equal cells of 0 < p < 1, 0 < H < log(arms).

    Raises ValueError on an unknown formula.
    """
    if formula not in FORMULAS:
        raise ValueError(f"unknown formula {formula!r}; choose from {', '.join(FORMULAS)}")
    p, h = ((torch.arange(n, dtype=torch.float64) + 0.5) / n for n in size)
    grid_p, grid_h = torch.meshgrid(p, h * log(arms), indexing="ij")
    flow = exact_flow(grid_p, grid_h, arms)
    if formula in ALONE:
        flow = ALONE[formula](grid_p.log(), grid_h, torch.ones_like(grid_p)).masked_fill(flow.isnan(), torch.nan)
    return Grid(grid_p, grid_h, flow)


def boundary(entropy: Tensor, arms: int, points: int = 100) -> Tensor:
    """Return p*, where the exact flow turns negative, at entropies (n,).

    Interpolates linearly between two of `points` probabilities above e^(−H). NaN if the flow never turns negative.
    """
    share = torch.linspace(0, 1, points + 2, dtype=torch.float64)[1:-1]
    least = (-entropy).exp().unsqueeze(-1)
    p = least + (1 - least) * share
    flow = exact_flow(p, entropy.unsqueeze(-1).expand(p.shape), arms)
    turns = (flow[:, :-1] >= 0) & (flow[:, 1:] < 0)
    at = turns.double().argmax(-1, keepdim=True)
    (p0, p1), (f0, f1) = ((x.gather(-1, at), x.gather(-1, at + 1)) for x in (p, flow))
    return torch.where(turns.any(-1), (p0 + (p1 - p0) * f0 / (f0 - f1)).squeeze(-1), torch.nan)
