"""Triton kernels, run by the interpreter on the CPU and compiled for sm_90 without a GPU."""

import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton")

from llmtrain.kernels import rows, triton_rows

ROWS, LANES, COLUMNS = 16, 512, 4096
N = 13
TINY = torch.finfo(torch.float32).tiny
"""Squares of what a one-hot row leaves to its other tokens go below it."""


def logits(vocabulary: int) -> torch.Tensor:
    """Return rows of all kinds: uniform, one-hot, very large, very small, with impossible tokens, rising maximum."""
    x = 3 * torch.randn(N, vocabulary, generator=torch.Generator().manual_seed(0))
    x[0] = 0.0
    x[1, 2] = 60.0
    x[2] += 50.0
    x[3] -= 50.0
    x[4, 3:5] = -torch.inf
    x[5] = torch.linspace(-20, 20, vocabulary)
    x[6] = torch.linspace(20, -20, vocabulary)
    return x


@pytest.mark.parametrize("vocabulary", [7, 50_257, 151_936])
def test_sums_and_gradient(vocabulary, interpreter):
    g = torch.Generator().manual_seed(1)
    x, targets = logits(vocabulary), torch.randint(vocabulary, (N,), generator=g)
    targets[4] = 0
    d_logp, d_entropy = torch.randn(2, N, generator=g)
    d_entropy[7] = d_logp[8] = 0.0
    sums, scratch = triton_rows.accumulate(x.clone(), targets, rows=ROWS, lanes=LANES)
    true_sums, true_scratch = rows.accumulate(x.double(), targets)
    found, expected = rows.statistics(sums), rows.statistics(true_sums)
    assert ((found - expected).abs() <= 1e-5 * expected.abs() + TINY).all()
    out = triton_rows.gradient(scratch, sums, targets, d_logp, d_entropy, rows=ROWS, columns=COLUMNS)
    true = rows.gradient(true_scratch, true_sums, targets, d_logp.double(), d_entropy.double())
    assert ((out - true).abs().amax(1) <= 1e-5 * true.abs().amax(1)).all()


def test_bfloat16_logits(interpreter):
    """Sums of the rounded logits have fp32 precision; gradients are within a unit in the last place, 2^-7."""
    g = torch.Generator().manual_seed(1)
    x, targets = logits(700).bfloat16(), torch.randint(700, (N,), generator=g)
    targets[4] = 0
    d_logp, d_entropy = torch.randn(2, N, generator=g)
    sums, scratch = triton_rows.accumulate(x.clone(), targets, rows=ROWS, lanes=LANES)
    true_sums, true_scratch = rows.accumulate(x.double(), targets)
    found, expected = rows.statistics(sums), rows.statistics(true_sums)
    assert ((found - expected).abs() <= 1e-5 * expected.abs() + TINY).all()
    out = triton_rows.gradient(scratch, sums, targets, d_logp, d_entropy, rows=ROWS, columns=COLUMNS)
    true = rows.gradient(true_scratch, true_sums, targets, d_logp.double(), d_entropy.double())
    assert out.dtype == torch.bfloat16
    assert ((out - true).abs() <= 2**-7 * true.abs() + 1e-5 * true.abs().amax(1, keepdim=True)).all()


def test_a_gradient_in_another_dtype(interpreter):
    """The bf16 output is the rounded fp32 gradient; the logits are unchanged."""
    x, targets = logits(700), torch.arange(N)
    targets[4] = 0
    slopes = torch.randn(2, N, generator=torch.Generator().manual_seed(1))
    sums, scratch = triton_rows.accumulate(x, targets, rows=ROWS, lanes=LANES)
    kept = x.clone()
    narrow = triton_rows.gradient(scratch, sums, targets, *slopes, torch.bfloat16, rows=ROWS, columns=COLUMNS)
    assert torch.equal(x, kept)
    wide = triton_rows.gradient(scratch, sums, targets, *slopes, rows=ROWS, columns=COLUMNS)
    in_torch = rows.gradient(*reversed(rows.accumulate(kept, targets)), targets, *slopes, torch.bfloat16)
    assert narrow.dtype == in_torch.dtype == torch.bfloat16
    torch.testing.assert_close(narrow.float(), wide, rtol=2**-7, atol=0)  # the interpreter cuts where a GPU rounds


def test_a_gradient_of_some_rows(interpreter):
    """Rows have the requested order, and all logits are unchanged."""
    x, targets = logits(700), torch.arange(N)
    targets[4] = 0
    slopes = torch.randn(2, N, generator=torch.Generator().manual_seed(1))
    sums, scratch = triton_rows.accumulate(x, targets, rows=ROWS, lanes=LANES)
    kept, live = x.clone(), torch.tensor([12, 3, 7])
    parts = scratch.of(live), sums.of(live), targets[live], *slopes[:, live]
    found = triton_rows.gradient(*parts, rows=ROWS, columns=COLUMNS)
    assert torch.equal(x, kept)
    whole = triton_rows.gradient(scratch, sums, targets, *slopes, rows=ROWS, columns=COLUMNS)
    assert whole is x
    assert torch.equal(found, whole[live])


def test_some_rows_of_some_rows(interpreter):
    x = logits(9)
    scratch = triton_rows.accumulate(x, torch.zeros(N, dtype=torch.long), rows=ROWS, lanes=LANES)[1]
    found = scratch.of(torch.tensor([5, 2, 9])).of(torch.tensor([2, 0]))
    assert found.live.tolist() == [9, 5]
    assert torch.equal(found.shift, x.amax(1)[[9, 5]])


def test_targets_of_other_ranks_are_left_out(interpreter):
    x = logits(40)
    targets = torch.full((N,), -5)
    targets[3:] = 40
    sums, scratch = triton_rows.accumulate(x.clone(), targets, rows=ROWS, lanes=LANES)
    assert (sums.target == -torch.inf).all()
    expected = rows.gradient(*reversed(rows.accumulate(x.clone(), targets)), targets, *torch.ones(2, N))
    found = triton_rows.gradient(scratch, sums, targets, *torch.ones(2, N), rows=ROWS, columns=COLUMNS)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_nothing():
    sums, scratch = triton_rows.accumulate(torch.empty(0, 9), torch.empty(0, dtype=torch.long))
    assert sums.s1.shape == (0,)
    empty = torch.empty(0)
    assert triton_rows.gradient(scratch, sums, empty.long(), empty, empty).shape == (0, 9)


COMPILE = r"""
import re
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from llmtrain.kernels import triton_rows as t

def ptx(kernel, pointers):
    names = ("rows", "columns", "stride", *(["out_stride"] if "out" in pointers else []))
    sizes = ("ROWS", "COLUMNS") if "out" in pointers else ("ROWS", "DEPTH", "LANES")
    constants = {"LOWEST": -1e4, **{name: getattr(t, name) for name in sizes}}
    signature = {**pointers, **dict.fromkeys(names, "i32"), **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]

for logits, out in (("*fp32", "*fp32"), ("*fp32", "*bf16"), ("*bf16", "*bf16")):
    of_sums = {"logits": logits, "targets": "*i64", "sums": "*fp32"}
    of_gradient = {"logits": logits, "out": out, "targets": "*i64", "coefficients": "*fp32", "live": "*i64"}
    for kernel, pointers in ((t.accumulate_kernel, of_sums), (t.gradient_kernel, of_gradient)):
        text = ptx(kernel, pointers)
        assert ".target sm_90" in text
        assert ".f64" not in text, kernel
        loops = re.findall(r"^(\$L\w+):(.*?)bra(?:\.uni)?\s+\1;", text, re.DOTALL | re.MULTILINE)
        assert len(loops) == (kernel is t.accumulate_kernel)
        for _, body in loops:
            assert "ex2.approx" in body and "bar.sync" in text and "shfl" in text
            assert not re.search("bar.sync|shfl", body), "lanes wait for each other before the last logit"
print("compiled")
"""


@pytest.mark.slow
def test_compiles_for_sm_90_without_double_precision(tmp_path):
    """No lane waits for another before all logits are read."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-c", COMPILE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "compiled\n", done.stderr
