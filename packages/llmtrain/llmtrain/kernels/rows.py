"""Row operations on a chunk of logits in torch: five statistics with one exponential, then their gradient.

With z = logit − max, the accumulators s1 = Σe^z, t1 = Σz·e^z, s2 = Σe^{2z}, t2 = Σz·e^{2z}, u2 = Σz²·e^{2z} give

    lse = max + ln s1        H = ln s1 − t1/s1                       S2 = s2/s1²
    S2L = t2/s1² − ln s1·S2  S2LL = u2/s1² − 2·ln s1·t2/s1² + (ln s1)²·S2

No terms cancel, since z ≤ 0 ≤ ln s1. On a peaked row s1 is close to 1, the term of its maximum, and would lose the
digits of 1 − p. So rest = s1 − 1 is summed over all columns except one maximum, and ln s1 = log1p(rest).

The sums of parts of the vocabulary add up after rescaling to a common maximum. Shapes: n rows, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor

LOWEST = -1e4
"""Lower limit for shifted logits: e^z is 0 there, and z·e^z is 0 instead of NaN for a logit of −∞."""
LEAST = -1e30
"""Maximum of a row whose logits are all −∞ in one part of the vocabulary; its sums are 0."""
CACHED = 2**18
"""Products that are summed together, few enough to stay in the cache."""


class Sums(NamedTuple):
    """Accumulators of each row, (n,) each, relative to its `shift`; only `target` is not shifted."""

    shift: Tensor
    """Maximum of the row's logits, which was subtracted from them."""
    rest: Tensor
    """s1 − 1, summed without one of the row's maxima."""
    t1: Tensor
    s2: Tensor
    t2: Tensor
    u2: Tensor
    target: Tensor
    """Logit of the target; −∞ if the target is not in this part of the vocabulary."""

    def of(self, rows: Tensor) -> "Sums":
        """Return the sums of selected rows."""
        return Sums(*(part[rows] for part in self))

    @property
    def s1(self) -> Tensor:
        return 1 + self.rest

    @property
    def log_s1(self) -> Tensor:
        return self.rest.log1p()

    @property
    def logp(self) -> Tensor:
        return self.target - self.shift - self.log_s1


class Scratch(NamedTuple):
    """Intermediate values that the gradient reuses."""

    e: Tensor
    """e^z, (n, V)."""
    ez: Tensor
    """z·e^z, (n, V)."""
    shift: Tensor
    """Maximum of this part of each row, subtracted to get z, (n,)."""

    def of(self, rows: Tensor) -> "Scratch":
        """Return the scratch of selected rows."""
        return Scratch(*(part[rows] for part in self))


def accumulate(logits: Tensor, targets: Tensor) -> tuple[Sums, Scratch]:
    """Return the sums over the columns of logits (n, V), which are overwritten, and the scratch.

    Targets outside 0..V−1 are in another part of the vocabulary.
    """
    logits = logits.float() if logits.dtype == torch.bfloat16 else logits
    peak = argmax(logits)[:, None]
    shift = logits.gather(1, peak).clamp_(min=LEAST)
    possible = (shift > LEAST).to(logits.dtype)
    here = (targets >= 0) & (targets < logits.shape[1])
    target = logits.gather(1, torch.where(here, targets, 0)[:, None])[:, 0]
    z = logits.sub_(shift).clamp_(min=LOWEST)
    e = z.exp()
    ez = z.mul_(e)
    rest = e.scatter_(1, peak, 0.0).sum(1) + (possible[:, 0] - 1)
    e.scatter_(1, peak, possible)
    sums = Sums(
        shift=shift[:, 0],
        rest=rest,
        t1=ez.sum(1),
        s2=row_dots(e, e),
        t2=row_dots(e, ez),
        u2=row_dots(ez, ez),
        target=torch.where(here, target, -torch.inf),
    )
    return sums, Scratch(e, ez, shift[:, 0])


def argmax(x: Tensor) -> Tensor:
    """Return the column of a maximum of each row, (n,). On a CPU numpy takes a fifth of torch's time."""
    return torch.from_numpy(x.numpy().argmax(1)) if x.device.type == "cpu" else x.argmax(1)


def row_dots(a: Tensor, b: Tensor) -> Tensor:
    """Return Σ a·b of each row, (n,), without storing a product as large as a."""
    out, rows = a.new_empty(len(a)), max(1, CACHED // a.shape[1])
    product = torch.empty_like(a[:rows])
    for x, y, place in zip(a.split(rows), b.split(rows), out.split(rows), strict=True):
        torch.sum(torch.mul(x, y, out=product[: len(x)]), 1, out=place)
    return out


def statistics(sums: Sums) -> Tensor:
    """Return logp, H, S2, S2L, S2LL of each row, (5, n)."""
    log_s1, square = sums.log_s1, sums.s1**2
    s2, t2, u2 = sums.s2 / square, sums.t2 / square, sums.u2 / square
    return torch.stack(
        [
            sums.logp,
            log_s1 - sums.t1 / sums.s1,
            s2,
            t2 - log_s1 * s2,
            u2 - 2 * log_s1 * t2 + log_s1**2 * s2,
        ]
    )


def token_statistics(logits: Tensor, targets: Tensor) -> Tensor:
    """Return logp, H, S2, S2L, S2LL of targets (n,) under logits (n, V), which are overwritten, (5, n)."""
    return statistics(accumulate(logits, targets)[0])


def row_coefficients(shift: Tensor, sums: Sums, d_logp: Tensor, d_entropy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a, b and c (n,) such that ∂loss/∂logits is c at the target and a·e^z + b·z·e^z elsewhere.

    ∂lp/∂z = e_y − p and ∂H/∂z = −p(log p + H), where log p + H = z + shift − sums.shift − t1/s1; the shifts differ only
    if another part of the vocabulary contains the row's maximum. At the target 1 − p is −expm1(lp).
    """
    d = shift - sums.shift
    scale = d.exp() / sums.s1
    mean = sums.t1 / sums.s1
    b = -d_entropy * scale
    z = (sums.target - sums.shift).clamp(min=LOWEST)
    c = -d_logp * sums.logp.expm1() - d_entropy * sums.logp.exp() * (z - mean)
    return b * (d - mean) - d_logp * scale, b, c


def gradient(
    scratch: Scratch, sums: Sums, targets: Tensor, d_logp: Tensor, d_entropy: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """Return ∂loss/∂logits (n, V) from ∂loss/∂logp and ∂loss/∂H (n,), by default in the scratch's dtype.

    Overwrites the scratch.
    """
    a, b, c = row_coefficients(scratch.shift, sums, d_logp, d_entropy)
    out = scratch.e.mul_(a[:, None])
    if b.device.type != "cpu" or bool((b != 0).any()):  # to look, the host would wait for a GPU
        out.add_(scratch.ez.mul_(b[:, None]))
    here = (targets >= 0) & (targets < out.shape[1])
    out[here, targets[here]] = c[here]
    return out.to(dtype or out.dtype)
