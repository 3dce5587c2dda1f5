"""`rows` for CUDA: the same sums and gradient in two Triton kernels, each one pass over the logits.

fp32 throughout; a NaN among a row's logits makes its numbers NaN. The sums rescale themselves whenever a row's maximum
moves, so that every logit is read once and exponentiated once. Maxima are counted apart from the rest: all of them join
it when the maximum moves, and all but one in the end.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .rows import LOWEST, Sums, row_coefficients

ROWS = 1
"""Rows of a program."""
COLUMNS = 4096
"""Columns of a tile."""


class Scratch(NamedTuple):
    """What the gradient needs again."""

    logits: Tensor
    """(n, V)."""
    shift: Tensor
    """Maximum of this part of the row, (n,)."""


@triton.jit
def accumulate_kernel(
    logits, targets, sums, rows, columns, stride, LOWEST: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Write shift, rest, t1, s2, t2, u2 and the target's logit of each row to sums (7, rows)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    base = logits + row.to(tl.int64) * stride
    shift = tl.full([ROWS], -1e30, tl.float32)
    peaks = tl.zeros([ROWS], tl.int32)
    rest = tl.zeros([ROWS], tl.float32)
    t1 = tl.zeros([ROWS], tl.float32)
    s2 = tl.zeros([ROWS], tl.float32)
    t2 = tl.zeros([ROWS], tl.float32)
    u2 = tl.zeros([ROWS], tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        mask = inside[:, None] & (column < columns)[None, :]
        x = tl.load(base[:, None] + column[None, :], mask=mask, other=float("-inf")).to(tl.float32)
        moved = tl.maximum(shift, tl.max(x, 1))
        d = tl.maximum(shift - moved, LOWEST)
        f = tl.exp(d)
        z = tl.maximum(x - moved[:, None], LOWEST, propagate_nan=tl.PropagateNan.ALL)
        e = tl.exp(z)
        ez = z * e
        peak = x == moved[:, None]
        u2 = f * f * (u2 + 2.0 * d * t2 + d * d * s2) + tl.sum(ez * ez, 1)
        t2 = f * f * (t2 + d * s2) + tl.sum(e * ez, 1)
        s2 = f * f * s2 + tl.sum(e * e, 1)
        t1 = f * (t1 + d * (peaks + rest)) + tl.sum(ez, 1)
        rest = f * (rest + tl.where(d < 0, peaks, 0)) + tl.sum(tl.where(peak, 0.0, e), 1)
        peaks = tl.where(d < 0, 0, peaks) + tl.sum(peak.to(tl.int32), 1)
        shift = moved
    target = tl.load(targets + row, mask=inside, other=-1)
    here = inside & (target >= 0) & (target < columns)
    at_target = tl.load(base + target, mask=here, other=float("-inf")).to(tl.float32)
    tl.store(sums + row, shift, mask=inside)
    tl.store(sums + rows + row, rest + (peaks - 1), mask=inside)
    tl.store(sums + 2 * rows + row, t1, mask=inside)
    tl.store(sums + 3 * rows + row, s2, mask=inside)
    tl.store(sums + 4 * rows + row, t2, mask=inside)
    tl.store(sums + 5 * rows + row, u2, mask=inside)
    tl.store(sums + 6 * rows + row, at_target, mask=inside)


@triton.jit
def gradient_kernel(
    logits,
    out,
    targets,
    coefficients,
    rows,
    columns,
    stride,
    out_stride,
    LOWEST: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write a·e^z + b·z·e^z, but c at the target, to out; coefficients (4, rows) hold shift, a, b, c."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = inside[:, None] & (column < columns)[None, :]
    place = row.to(tl.int64)[:, None] * stride + column[None, :]
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


def accumulate(logits: Tensor, targets: Tensor, rows: int = ROWS, columns: int = COLUMNS) -> tuple[Sums, Scratch]:
    """As `rows.accumulate`, without overwriting the logits (n, V)."""
    n, v = logits.shape
    sums = torch.empty(7, n, device=logits.device, dtype=torch.float32)
    if n:
        grid = (triton.cdiv(n, rows),)
        with torch.cuda.device_of(logits):
            accumulate_kernel[grid](
                logits, targets, sums, n, v, logits.stride(0), LOWEST, ROWS=rows, COLUMNS=columns, num_warps=8
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
    """As `rows.gradient`; overwrites the logits where these have the dtype that is asked for."""
    logits = scratch.logits
    n, v = logits.shape
    out = logits if dtype in (None, logits.dtype) else torch.empty(n, v, dtype=dtype, device=logits.device)
    coefficients = torch.stack([scratch.shift, *row_coefficients(scratch.shift, sums, d_logp, d_entropy)])
    if n:
        grid = (triton.cdiv(n, rows), triton.cdiv(v, columns))
        with torch.cuda.device_of(logits):
            gradient_kernel[grid](
                logits,
                out,
                targets,
                coefficients,
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
