"""The fused head against a dense softmax in float64."""

import math
import subprocess
import sys

import pytest
import torch

from entrostat import policy_stats
from llmtrain.kernels import head_stats

N, D, V = 23, 6, 41


def inputs(dtype=torch.float64, scale=1.0):
    g = torch.Generator().manual_seed(0)
    hidden = torch.randn(N, D, generator=g, dtype=torch.float64) * scale
    weight = torch.randn(V, D, generator=g, dtype=torch.float64)
    targets = torch.randint(V, (N,), generator=g)
    return hidden.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_(), targets


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_values(dtype, tolerance, scale, chunk):
    hidden, weight, targets = inputs(dtype, scale)
    found = head_stats(hidden, weight, targets, 0.7, chunk=chunk)
    dense = policy_stats(hidden.double() @ weight.double().T / 0.7)
    expected = (dense.logp.gather(1, targets[:, None])[:, 0], *dense[1:])
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_gradients(temperature):
    hidden, weight, targets = (x[:7].detach() for x in inputs())
    leaves = (hidden.requires_grad_(), weight.requires_grad_())
    assert torch.autograd.gradcheck(lambda h, w: head_stats(h, w, targets % 7, temperature, chunk=5)[:2], leaves)


@pytest.mark.parametrize("softcap", [None, 2.0])
def test_gradients_with_every_option(softcap):
    hidden, weight, targets = (x[:7].detach() for x in inputs())
    bias, heat = torch.linspace(-1, 1, 7).double(), torch.linspace(0.5, 1.5, 7).double()
    leaves = (hidden.requires_grad_(), weight.requires_grad_(), bias.requires_grad_())

    def stats(h, w, b):
        return head_stats(h, w, targets % 7, heat, bias=b, softcap=softcap, chunk=5)[:2]

    assert torch.autograd.gradcheck(stats, leaves)


@pytest.mark.parametrize("block", ["triton", "nothing"])
def test_the_cpu_path_needs_no_triton(block):
    done = subprocess.run([sys.executable, "-c", ON_CPU, block], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


ON_CPU = """
import sys
sys.modules.update({sys.argv[1]: None})  # importing it fails from here on
import torch
from entrostat import Tokens, make
from llmtrain.kernels import head_loss, head_stats
x = torch.randn(5, 3, requires_grad=True)
w, y, zero = torch.randn(7, 3), torch.arange(5), torch.zeros(5)
plan = make("grpo").plan(Tokens(logp=zero, old_logp=zero, advantage=zero + 1, entropy=zero))
for mode in ("fused", "recompute", "stash"):
    head_loss(x, w, y, plan, mode=mode)[0].backward()
head_stats(x, w, y).entropy.sum().backward()
assert "llmtrain.kernels.triton_rows" not in sys.modules
print("done")
"""


def test_float32_gradients_against_dense_float64():
    hidden, weight, targets = inputs(torch.float32)
    g_logp, g_entropy = torch.randn(2, N, generator=torch.Generator().manual_seed(1))
    stats = head_stats(hidden, weight, targets, chunk=8)
    found = torch.autograd.grad((stats.logp * g_logp + stats.entropy * g_entropy).sum(), (hidden, weight))
    h, w = hidden.detach().double().requires_grad_(), weight.detach().double().requires_grad_()
    dense = policy_stats(h @ w.T)
    logp = dense.logp.gather(1, targets[:, None])[:, 0]
    expected = torch.autograd.grad((logp * g_logp + dense.entropy * g_entropy).sum(), (h, w))
    for a, b in zip(found, expected, strict=True):
        assert ((a - b).abs().max() / b.abs().max()).item() < 1e-5


def test_rows_without_coefficient_are_skipped():
    """A row whose hidden state is NaN would spoil dW if it were touched."""
    hidden, weight, targets = inputs()
    with torch.no_grad():
        hidden[3] = math.nan
    stats = head_stats(hidden, weight, targets)
    live = torch.arange(N) != 3
    d_hidden, d_weight = torch.autograd.grad(stats.logp[live].sum(), (hidden, weight))
    assert torch.isfinite(d_weight).all()
    assert (d_hidden[3] == 0).all()


def test_impossible_tokens():
    hidden = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([[0.0], [-math.inf], [1.0]], dtype=torch.float64)
    stats = head_stats(hidden, weight, torch.tensor([0, 2]))
    expected = policy_stats(torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert stats.entropy.tolist() == pytest.approx([expected.entropy.item()] * 2)
    assert stats.s2ll.tolist() == pytest.approx([expected.s2ll.item()] * 2)


def test_no_tokens():
    hidden, weight, _ = inputs()
    stats = head_stats(hidden[:0], weight, torch.empty(0, dtype=torch.long))
    assert stats.logp.shape == (0,)
    stats.logp.sum().backward()
    assert (weight.grad == 0).all()


def test_moments_carry_no_gradient():
    stats = head_stats(*inputs())
    assert stats.logp.requires_grad
    assert not stats.s2.requires_grad


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, w, y: (h[:, :2], w, y), r"got \(23, 2\), \(41, 6\), \(23,\)"),
        (lambda h, w, y: (h, w, y[:5]), r"got \(23, 6\), \(41, 6\), \(5,\)"),
        (lambda h, w, y: (h, w, y, 0.0), "positive temperature; got 0.0"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        head_stats(*change(*inputs()))
