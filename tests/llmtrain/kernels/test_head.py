"""The fused head against a dense softmax in float64."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import policy_stats
from llmtrain.kernels import head_stats, projection, rows

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


@pytest.mark.slow
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


@pytest.fixture(scope="module", params=["torch", "triton"])
def path(request):
    if request.param == "triton":
        request.getfixturevalue("interpreter")
    return request.param


def accumulate(path, logits, targets):
    """Return sums and scratch by torch, or by Triton in tiles so narrow that the maximum moves between them."""
    if path == "torch":
        return rows.accumulate(logits.clone(), targets)
    from llmtrain.kernels import triton_rows

    return triton_rows.accumulate(logits.clone(), targets, rows=4, lanes=2)


def gradient(path, *arguments):
    if path == "torch":
        return rows.gradient(*arguments)
    from llmtrain.kernels import triton_rows

    return triton_rows.gradient(*arguments, rows=4, columns=16)


def combined(parts):
    """Return each rank's sums after `combine`; ranks are threads that exchange one maximum and one sum."""
    met, given, meetings = Barrier(len(parts)), {}, []

    def all_reduce(x, op=dist.ReduceOp.SUM, group=None):
        given[group] = x.clone()
        met.wait()
        every = torch.stack([given[rank] for rank in range(len(parts))])
        x.copy_(every.amax(0) if op == dist.ReduceOp.MAX else every.sum(0))
        meetings.append(op)
        met.wait()

    with patch.object(dist, "all_reduce", all_reduce), ThreadPoolExecutor(len(parts)) as pool:
        sums = list(pool.map(projection.combine, parts, range(len(parts))))
    assert meetings == [dist.ReduceOp.MAX] * len(parts) + [dist.ReduceOp.SUM] * len(parts)
    return sums


def by_rows(path, logits, targets, d_logp, d_entropy, starts=(0,)):
    """Return statistics (5, n) and ∂loss/∂logits (n, V) with the vocabulary divided at `starts`."""
    ends = [*starts[1:], logits.shape[1]]
    places = [targets - start for start in starts]
    parts = [accumulate(path, logits[:, a:b].contiguous(), y) for a, b, y in zip(starts, ends, places, strict=True)]
    every = [sums for sums, _ in parts] if len(parts) == 1 else combined([sums for sums, _ in parts])
    found = [rows.statistics(sums) for sums in every]
    for x in found:
        torch.testing.assert_close(x, found[0], rtol=0, atol=0, equal_nan=True)
    slopes = [
        gradient(path, scratch, sums, y, d_logp, d_entropy)
        for (_, scratch), sums, y in zip(parts, every, places, strict=True)
    ]
    return found[0], torch.cat(slopes, 1)


@pytest.mark.slow
@pytest.mark.parametrize("starts", [(0,), (0, 1, 30)])
@pytest.mark.parametrize("gap", [0, *(pytest.param(x, marks=pytest.mark.long) for x in (1, 16)), 4, 32])
@pytest.mark.parametrize("others", [1, pytest.param(40, marks=pytest.mark.long), 1000])
def test_one_token_above_all_others(path, starts, gap, others):
    """By hand: with q = e^−gap, the token's p is 1/s1 and that of each other one q/s1, s1 = 1 + others·q."""
    starts = [start for start in starts if start <= others]
    logits = torch.full((2, others + 1), 3.0)
    logits[:, 1] += gap
    q = math.exp(-gap)
    rest = others * q
    s1, log_s1 = 1 + rest, math.log1p(rest)
    low = gap + log_s1  # −log p of the others
    values = [
        [-log_s1, -low],
        [log_s1 + gap * rest / s1] * 2,
        [(1 + rest * q) / s1**2] * 2,
        [-(log_s1 + low * rest * q) / s1**2] * 2,
        [(log_s1**2 + low**2 * rest * q) / s1**2] * 2,
    ]
    slope = torch.full((others + 1,), -q / s1, dtype=torch.float64)
    slope[1] = rest / s1
    away = torch.full((others + 1,), -q / s1, dtype=torch.float64)  # the target is an other one
    away[1], away[0] = -1 / s1, 1 - q / s1
    spread = torch.full((others + 1,), gap * q / s1**2, dtype=torch.float64)
    spread[1] = -gap * rest / s1**2
    targets, zero = torch.tensor([1, 0]), torch.zeros(2)
    found, by_logp = by_rows(path, logits, targets, zero + 1, zero, starts)
    _, by_entropy = by_rows(path, logits, targets, zero, zero + 1, starts)
    for a, b in (
        (found, torch.tensor(values, dtype=torch.float64)),
        (by_logp, torch.stack([slope, away])),
    ):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=0)
    assert (by_entropy - spread).abs().max() <= 1e-5 * spread.abs().max()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    vocabulary=st.integers(4, 100),
    digits=st.floats(0.3, 8),
    offset=st.sampled_from([-50.0, 0.0, 30.0]),
    rivals=st.sampled_from([(), (0.0,), (0.0, 0.0), (0.001,), (0.0, 0.1)]),
    starts=st.sampled_from([(0,), (0, 1), (0, 1, 2)]),
    coefficients=st.sampled_from([(1.0, 0.0), (0.0, 1.0), (-0.7, 0.3)]),
    seed=st.integers(0, 10**6),
)
def test_peaked_rows(path, vocabulary, digits, offset, rivals, starts, coefficients, seed):
    """1 − p of 10^−digits, shared with rivals near or at the maximum, against a dense softmax of the same logits."""
    n, g = 5, torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, vocabulary, generator=g)
    order = torch.rand(n, vocabulary, generator=g).argsort(1)
    every = torch.arange(n)
    others = logits.scatter(1, order[:, :1], -torch.inf).logsumexp(1)
    top = others + math.log(10**digits - 1)
    for column, below in zip(order.T, (0.0, *rivals), strict=False):
        logits[every, column] = top - below
    logits += offset
    targets = order[every, torch.tensor([0, 0, 1, 2, 2])]
    starts = tuple(start * vocabulary // len(starts) for start in starts)
    d_logp, d_entropy = (torch.full((n,), x) for x in coefficients)
    found, slope = by_rows(path, logits, targets, d_logp, d_entropy, starts)

    leaf = logits.double().requires_grad_()
    dense = policy_stats(leaf)
    logp = dense.logp[every, targets]
    expected = torch.stack([logp, *dense[1:]]).detach()
    assert ((found - expected).abs() <= 1e-5 * expected.abs()).all()
    terms = [torch.autograd.grad(x.sum(), leaf, retain_graph=True)[0] for x in (logp, dense.entropy)]
    terms = [x * coefficient for x, coefficient in zip(terms, coefficients, strict=True)]
    largest = sum(x.abs() for x in terms).amax(1, keepdim=True)
    assert ((slope - sum(terms)).abs() <= 1e-5 * largest).all()


@pytest.mark.parametrize("starts", [(0,), (0, 20)])
@pytest.mark.parametrize("place", [0, 5, 25, 39])
def test_a_nan_is_not_hidden(path, starts, place):
    """It makes all results of its row NaN, and of no other row."""
    logits = torch.randn(3, 40, generator=torch.Generator().manual_seed(0))
    logits[1, place] = math.nan
    targets, ones = torch.tensor([3, 25, 39]), torch.ones(3)
    found, slope = by_rows(path, logits, targets, ones, ones, starts)
    assert found[:, 1].isnan().all()
    assert slope[1].isnan().all()
    assert found[:, [0, 2]].isfinite().all()
    assert slope[[0, 2]].isfinite().all()


@pytest.mark.parametrize("starts", [(0,), (0, 20), (0, 10, 30)])
def test_log_probabilities_have_no_floor(path, starts):
    """One token is impossible, another is 20,000 nats below the others."""
    logits = torch.zeros(2, 40)
    logits[0, 25], logits[1, 25] = -math.inf, -20_000.0
    targets, ones = torch.tensor([25, 25]), torch.ones(2)
    found, slope = by_rows(path, logits, targets, ones, ones, starts)
    torch.testing.assert_close(found[0], torch.tensor([-math.inf, -20_000.0 - math.log(39)]))
    expected = torch.full((2, 40), -1 / 39)
    expected[:, 25] = 1.0
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("starts", [(0, 20), (0, 10, 20), (0, 20, 30)])
def test_a_part_of_the_vocabulary_may_be_impossible(path, starts):
    """The first columns are −∞ in one row only: the result is the softmax over the remaining columns."""
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 40, generator=g)
    logits[1, :20] = -torch.inf
    targets, d_logp, d_entropy = torch.tensor([3, 25, 39]), torch.rand(3, generator=g), torch.rand(3, generator=g)
    found, slope = by_rows(path, logits, targets, d_logp, d_entropy, starts)
    alone = [
        by_rows("torch", row[None], y[None], a[None], b[None])
        for row, y, a, b in (
            (logits[0], targets[0], d_logp[0], d_entropy[0]),
            (logits[1, 20:], targets[1] - 20, d_logp[1], d_entropy[1]),
            (logits[2], targets[2], d_logp[2], d_entropy[2]),
        )
    ]
    torch.testing.assert_close(found, torch.cat([x for x, _ in alone], 1), rtol=1e-5, atol=1e-6)
    expected = torch.cat([alone[0][1], torch.cat([torch.zeros(1, 20), alone[1][1]], 1), alone[2][1]])
    torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-6)


def test_sums_of_impossible_tokens_alone_are_zero(path):
    sums, _ = accumulate(path, torch.full((2, 20), -math.inf), torch.tensor([3, 19]))
    assert [x.tolist() for x in (sums.s1, *sums[2:6])] == [[0.0, 0.0]] * 5
    assert rows.statistics(sums).isnan().all()


def test_rows_without_coefficient_are_skipped():
    """A row whose hidden state is NaN would make dW NaN if it were used."""
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
