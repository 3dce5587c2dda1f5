"""`rows` for CUDA: the same sums and gradient in two Triton kernels, each with one pass over the logits.

All arithmetic is fp32; a NaN among a row's logits makes its results NaN. Each kernel reads and exponentiates every
logit once: sums are rescaled when their maximum rises. Each lane has its own sums and maximum; lanes are merged only
after the last logit, so they never wait for each other. `rest` sums all logits except the maxima: when the maximum
rises, all of s1 joins it, and at the end all maxima except one.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .rows import LOWEST, Sums, row_coefficients

ROWS = 1
"""Rows per program."""
LANES = 512
"""Lanes per row, each with its own sums."""
DEPTH = 8
"""Logits that a lane loads between updates of its maximum."""
COLUMNS = 4096
"""Columns per program of the gradient kernel."""


class Scratch(NamedTuple):
    """Values that the gradient reuses."""

    logits: Tensor
    """Logits (n, V)."""
    shift: Tensor
    """Maximum of this part of each live row, (m,)."""
    live: Tensor | None = None
    """Rows that need a gradient, (m,); None for all."""

    def of(self, rows: Tensor) -> "Scratch":
        """Return the scratch of selected rows, without copying logits."""
        return Scratch(self.logits, self.shift[rows], rows if self.live is None else self.live[rows])


@triton.jit
def rescale(d, s1, rest, t1, s2, t2, u2):
    """Return the sums after every z = x - shift becomes z + d, d ≤ 0. If d < 0, no z is 0, so all of s1 joins rest."""
    f = tl.exp(d)
    u2 = f * f * (u2 + d * (2.0 * t2 + d * s2))
    t2 = f * f * (t2 + d * s2)
    t1 = f * (t1 + d * s1)
    rest = f * tl.where(d < 0, s1, rest)
    return f * s1, rest, t1, f * f * s2, t2, u2


@triton.jit
def accumulate_kernel(
    logits,
    targets,
    sums,
    rows,
    columns,
    stride,
    LOWEST: tl.constexpr,
    ROWS: tl.constexpr,
    DEPTH: tl.constexpr,
    LANES: tl.constexpr,
):
    """Write shift, rest, t1, s2, t2, u2 and the target's logit of each row to sums (7, rows).

    In the loop a lane's rest excludes all of its maxima, and s1 includes them.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    base = logits + row.to(tl.int64) * stride
    shift = tl.full([ROWS, LANES], -1e30, tl.float32)
    s1 = tl.zeros([ROWS, LANES], tl.float32)
    rest = tl.zeros([ROWS, LANES], tl.float32)
    t1 = tl.zeros([ROWS, LANES], tl.float32)
    s2 = tl.zeros([ROWS, LANES], tl.float32)
    t2 = tl.zeros([ROWS, LANES], tl.float32)
    u2 = tl.zeros([ROWS, LANES], tl.float32)
    for start in range(0, columns, DEPTH * LANES):
        xs = ()
        moved = shift
        for k in tl.static_range(DEPTH):
            column = start + k * LANES + tl.arange(0, LANES)
            mask = inside[:, None] & (column < columns)[None, :]
            x = tl.load(base[:, None] + column[None, :], mask=mask, other=float("-inf")).to(tl.float32)
            moved = tl.maximum(moved, x)
            xs += (x,)  # type: ignore[assignment]
        s1, rest, t1, s2, t2, u2 = rescale(tl.maximum(shift - moved, LOWEST), s1, rest, t1, s2, t2, u2)
        shift = moved
        for k in tl.static_range(DEPTH):
            z = tl.maximum(xs[k] - shift, LOWEST, propagate_nan=tl.PropagateNan.ALL)
            e = tl.exp(z)
            ez = z * e
            s1 += e
            rest += tl.where(xs[k] == shift, 0.0, e)
            t1 += ez
            s2 = tl.fma(e, e, s2)
            t2 = tl.fma(e, ez, t2)
            u2 = tl.fma(ez, ez, u2)
    most = tl.max(shift, 1)
    d = tl.maximum(shift - most[:, None], LOWEST)
    peaks = tl.where(d < 0, 0.0, tl.floor(s1 - rest + 0.5))
    s1, rest, t1, s2, t2, u2 = rescale(d, s1, rest, t1, s2, t2, u2)
    target = tl.load(targets + row, mask=inside, other=-1)
    here = inside & (target >= 0) & (target < columns)
    at_target = tl.load(base + target, mask=here, other=float("-inf")).to(tl.float32)
    tl.store(sums + row, most, mask=inside)
    tl.store(sums + rows + row, tl.sum(rest, 1) + (tl.sum(peaks, 1) - 1), mask=inside)
    tl.store(sums + 2 * rows + row, tl.sum(t1, 1), mask=inside)
    tl.store(sums + 3 * rows + row, tl.sum(s2, 1), mask=inside)
    tl.store(sums + 4 * rows + row, tl.sum(t2, 1), mask=inside)
    tl.store(sums + 5 * rows + row, tl.sum(u2, 1), mask=inside)
    tl.store(sums + 6 * rows + row, at_target, mask=inside)


@triton.jit
def gradient_kernel(
    logits,
    out,
    targets,
    coefficients,
    live,
    rows,
    columns,
    stride,
    out_stride,
    LOWEST: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write c at the target, else a·e^z + b·z·e^z, of live rows to out; coefficients (4, rows): shift, a, b, c."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = inside[:, None] & (column < columns)[None, :]
    place = tl.load(live + row, mask=inside, other=0)[:, None] * stride + column[None, :]
    shift = tl.load(coefficients + row, mask=inside, other=0.0)
    a = tl.load(coefficients + rows + row, mask=inside, other=0.0)
    b = tl.load(coefficients + 2 * rows + row, mask=inside, other=0.0)
    c = tl.load(coefficients + 3 * rows + row, mask=inside, other=0.0)
    target = tl.load(targets + row, mask=inside, other=-1)
    x = tl.load(logits + place, mask=mask, other=float("-inf")).to(tl.float32)
    z = tl.maximum(x - shift[:, None], LOWEST, propagate_nan=tl.PropagateNan.ALL)
    slope = tl.exp(z) * (a[:, None] + b[:, None] * z)
    slope = tl.where(column[None, :] == target[:, None], c[:, None], slope)
    place = row.to(tl.int64)[:, None] * out_stride + column[None, :]
    tl.store(out + place, slope.to(out.dtype.element_ty), mask=mask)


def accumulate(logits: Tensor, targets: Tensor, rows: int = ROWS, lanes: int = LANES) -> tuple[Sums, Scratch]:
    """Do the same as `rows.accumulate`, without overwriting the logits (n, V)."""
    n, v = logits.shape
    sums = torch.empty(7, n, device=logits.device, dtype=torch.float32)
    if n:
        grid = (triton.cdiv(n, rows),)
        with torch.cuda.device_of(logits):
            accumulate_kernel[grid](
                logits, targets, sums, n, v, logits.stride(0), LOWEST, ROWS=rows, DEPTH=DEPTH, LANES=lanes, num_warps=4
            )
    return Sums(*sums), Scratch(logits, sums[0])


def gradient(
    scratch: Scratch,
    sums: Sums,
    targets: Tensor,
    d_logp: Tensor,
    d_entropy: Tensor,
    dtype: torch.dtype | None = None,
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> Tensor:
    """Do the same as `rows.gradient`; overwrites the logits if all rows are live and `dtype` is theirs."""
    logits, n, v = scratch.logits, len(d_logp), scratch.logits.shape[1]
    dtype = dtype or logits.dtype
    in_place = scratch.live is None and dtype == logits.dtype
    out = logits if in_place else torch.empty(n, v, dtype=dtype, device=logits.device)
    live = torch.arange(n, device=logits.device) if scratch.live is None else scratch.live
    coefficients = torch.stack([scratch.shift, *row_coefficients(scratch.shift, sums, d_logp, d_entropy)])
    if n:
        grid = (triton.cdiv(n, rows), triton.cdiv(v, columns))
        with torch.cuda.device_of(logits):
            gradient_kernel[grid](
                logits,
                out,
                targets,
                coefficients,
                live,
                n,
                v,
                logits.stride(0),
                out.stride(0),
                LOWEST=LOWEST,
                ROWS=rows,
                COLUMNS=columns,
                num_warps=8,
            )
    return out
