"""Head in bf16 and on the CUDA path: rounded and exact values, and the dtypes of products."""

import pytest
import torch
from head_scene import MODES, OPTIONS, close, dense, scene
from like_cuda import CudaProducts, like_cuda

from entrostat import policy_stats
from llmtrain.kernels import head_loss, head_stats, rows
from llmtrain.kernels.projection import Projection

OPTIONS_AND_DEVICES = [
    pytest.param(option, on_cuda, marks=[pytest.mark.long] * (on_cuda and option != "all"))
    for option in OPTIONS
    for on_cuda in (False, True)
]
"""Options of the head, and whether Triton's interpreter runs its kernels, which takes seconds."""


@pytest.mark.slow
@pytest.mark.parametrize(("option", "on_cuda"), OPTIONS_AND_DEVICES)
@pytest.mark.parametrize("mode", MODES)
def test_bfloat16_weights(mode, option, on_cuda, request):
    """bf16 inputs, fp32 statistics: near the float64 answer on the same rounded inputs."""
    hidden, weight, bias, targets, _ = scene(64, 32, 101, torch.bfloat16)
    plan = scene(64, 32, 101, torch.float32, spec="grpo+entropy_bonus")[-1]
    settings = {"temperature": 1.0, "softcap": None, **OPTIONS[option]}
    if settings["temperature"] == "tokens":
        settings["temperature"] = torch.linspace(0.5, 1.5, len(targets))
    leaves = [hidden, weight, *([bias] if settings.pop("bias", False) else [])]
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    _, stats, grads = dense(*doubles[:2], doubles[2] if len(leaves) == 3 else None, targets, plan, **settings)
    if on_cuda:
        request.getfixturevalue("interpreter")
        leaves = [like_cuda(x) for x in leaves]
    bias = leaves[2] if len(leaves) == 3 else None
    with CudaProducts() as products:
        loss, found = head_loss(leaves[0], leaves[1], targets, plan, bias=bias, mode=mode, **settings)
        found_grads = torch.autograd.grad(loss, leaves)
    narrow, wide = torch.bfloat16, torch.float32
    assert set(products.calls) == ({("mm", narrow, wide), ("addmm", narrow, wide)} if on_cuda else set())
    assert found.logp.dtype == torch.float32
    assert close(found.logp, stats[0], 1e-5)
    assert close(found.entropy, stats[1], 1e-5)
    for a, b in zip(found_grads, grads, strict=True):
        assert a.dtype == torch.bfloat16
        assert close(a, b, 2**-7)  # half a unit in the last place of bf16, twice; its sums are fp32


def test_sums_over_tokens_are_fp32():
    """1,000 equal tokens, one per chunk: bf16 sums would stop at 256 times the first."""
    weight, bias = torch.zeros(2, 1).bfloat16().requires_grad_(), torch.zeros(2).bfloat16().requires_grad_()
    stats = head_stats(torch.ones(1000, 1), weight, torch.zeros(1000).long(), bias=bias, chunk=1)
    stats.logp.sum().backward()
    assert weight.grad.flatten().tolist() == bias.grad.tolist() == [500.0, -500.0]


def test_which_rows_work_and_what_they_give_to_the_products(interpreter):
    """Triton's on CUDA unless the dtype is double; its gradient has the weight's dtype if no sum follows."""
    from llmtrain.kernels import triton_rows

    weight, bias, targets, slope = torch.randn(41, 6), torch.zeros(41), torch.arange(5), torch.ones(5)
    assert Projection(weight).rows is Projection(like_cuda(weight.double())).rows is rows
    assert Projection(like_cuda(weight)).rows is triton_rows
    narrow = like_cuda(weight.bfloat16())
    for projection, dtype in (
        (Projection(narrow), torch.bfloat16),
        (Projection(narrow, bias), torch.float32),
        (Projection(narrow, softcap=2.0), torch.float32),
        (Projection(weight.bfloat16()), torch.float32),
    ):
        sums, scratch = projection.sums(torch.randn(5, 41), targets)
        assert projection.dlogits(scratch, sums, targets, slope, slope, 1.0).dtype == dtype


@pytest.mark.parametrize(
    ("settings", "temperature"), [({}, 1.0), ({}, 0.5), ({"bias": torch.zeros(41)}, 1.0), ({"softcap": 2.0}, 1.0)]
)
def test_on_cuda_a_product_is_narrow_where_nothing_follows_it(settings, temperature):
    narrow = like_cuda(torch.randn(41, 6).bfloat16())
    with CudaProducts() as products:
        logits = Projection(narrow, dtype=torch.bfloat16, **settings).logits(torch.randn(5, 6), temperature)
    assert logits.dtype == torch.bfloat16
    follows = settings or temperature != 1.0
    assert products.calls == [("mm", torch.bfloat16, torch.float32 if follows else torch.bfloat16)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_are_kept_in_their_dtype(dtype):
    hidden, weight, _, targets, _ = scene(dtype=torch.float32)
    stats = head_stats(hidden, weight, targets, mode="stash", logits_dtype=dtype)
    assert stats.logp.grad_fn.saved_tensors[-1].dtype == dtype


def test_slopes_keep_their_dtype_under_temperatures_in_double_precision(interpreter):
    """The kernels accept and compute only fp32."""
    g = torch.Generator().manual_seed(0)
    weight, hidden, heat = torch.randn(41, 6, generator=g), torch.randn(5, 6, generator=g), torch.full((5,), 0.5)
    projection, targets, slope = Projection(like_cuda(weight)), torch.arange(5), torch.ones(5)
    found = []
    for temperature in (heat, heat.double()):
        sums, scratch = projection.sums(hidden @ weight.T, targets)
        found.append(projection.dlogits(scratch, sums, targets, slope, slope, temperature))
    assert torch.equal(*found)


@pytest.mark.parametrize("option", OPTIONS)
def test_bfloat16_states_before_an_fp32_head(option):
    hidden, weight, bias, targets, _ = scene(64, 32, 101, torch.float32)
    hidden = hidden.detach().bfloat16()
    settings = {"temperature": 1.0, "softcap": None, **OPTIONS[option]}
    if settings["temperature"] == "tokens":
        settings["temperature"] = torch.linspace(0.5, 1.5, 64)
    bias = bias if settings.pop("bias", False) else None
    found = head_stats(hidden, weight, targets, bias=bias, **settings)
    wide = head_stats(hidden.float(), weight, targets, bias=bias, **settings)
    assert all(torch.equal(a, b) for a, b in zip(found, wide, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_path_for_cuda_in_fp32(mode, interpreter):
    *leaves, targets, plan = scene(dtype=torch.float32)
    settings = {"temperature": 0.7, "softcap": 3.0, "mode": mode}
    expected, stats = head_loss(leaves[0], leaves[1], targets, plan, bias=leaves[2], **settings)
    grads = torch.autograd.grad(expected, leaves)
    there = [like_cuda(x) for x in leaves]
    loss, found = head_loss(there[0], there[1], targets, plan, bias=there[2], chunk=8, **settings)
    terms = plan.token_loss(stats.logp, stats.entropy).abs().sum()  # the loss is what is left when these cancel
    assert (loss - expected).abs() <= 1e-6 * terms
    assert all(close(a, b, 1e-6) for a, b in zip(found, stats, strict=True))
    assert all(close(a, b, 1e-5) for a, b in zip(torch.autograd.grad(loss, there), grads, strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("option", ["plain", "bias", "all"])
def test_bfloat16_logits(mode, option):
    """Only logits are rounded: values and gradients are fp32 results at the rounded logits."""
    hidden, weight, bias, targets, _ = scene(dtype=torch.float32)
    plan = scene(dtype=torch.float32, spec="grpo+entropy_bonus")[-1]
    temperature = torch.linspace(0.5, 1.5, len(targets)) if option == "all" else 1.0
    softcap = 2.0 if option == "all" else None
    settings = {"bias": None if option == "plain" else bias, "softcap": softcap, "temperature": temperature}
    logits = (hidden @ weight.T).detach() + (0.0 if option == "plain" else bias.detach())
    capped = logits if softcap is None else softcap * torch.tanh(logits / softcap)
    heat = temperature[:, None] if option == "all" else 1.0
    rounded = (capped / heat).bfloat16().double().requires_grad_()
    expected = policy_stats(rounded)
    logp = expected.logp.gather(1, targets[:, None])[:, 0]
    d_logits = torch.autograd.grad(plan.loss(logp, expected.entropy), rounded)[0].float() / heat
    slope = 1.0 if softcap is None else 1 - (capped / softcap) ** 2
    loss, found = head_loss(hidden, weight, targets, plan, mode=mode, chunk=8, logits_dtype=torch.bfloat16, **settings)
    assert close(found.logp, logp.detach(), 1e-6)
    assert close(found.entropy, expected.entropy.detach(), 1e-6)
    d_hidden, d_weight = torch.autograd.grad(loss, (hidden, weight))
    tolerance = 1e-5 if softcap is None else 2**-7  # the slope of the cap is taken at rounded logits
    assert close(d_hidden, (d_logits * slope) @ weight.detach(), tolerance)
    assert close(d_weight, (d_logits * slope).T @ hidden.detach(), tolerance)
