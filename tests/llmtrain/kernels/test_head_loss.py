"""The three modes of the head, with every option, against autograd through a dense softmax in float64."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from head_scene import MODES, OPTIONS, close, dense, scene, statistics
from largest import Largest
from tests.ranks import start_ranks
from torch.utils.flop_counter import FlopCounterMode

from entrostat import Tokens, make, policy_stats
from entrostat.numbers.support import Support, truncated_entropy, truncated_logp
from llmtrain.kernels import head_loss, head_stats
from llmtrain.kernels.projection import CHUNK_BYTES
from llmtrain.kernels.truncated import restricted_stats, truncated_loss


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunk", [1, 8, None])
def test_against_dense(mode, option, chunk):
    hidden, weight, bias, targets, plan = scene()
    settings = {"temperature": 1.0, "bias": None, "softcap": None, **OPTIONS[option]}
    if settings["temperature"] == "tokens":
        settings["temperature"] = torch.linspace(0.5, 1.5, len(targets)).double()
    settings["bias"] = bias if settings["bias"] else None
    expected, stats, grads = dense(
        hidden, weight, settings["bias"], targets, plan, settings["temperature"], settings["softcap"]
    )
    loss, found = head_loss(hidden, weight, targets, plan, mode=mode, chunk=chunk, **settings)
    assert close(loss, expected, 1e-12)
    assert all(close(a, b, 1e-11) for a, b in zip(found, stats, strict=True))
    assert not any(x.requires_grad for x in found)
    leaves = [x for x in (hidden, weight, settings["bias"]) if x is not None]
    for a, b in zip(torch.autograd.grad(2 * loss, leaves), grads, strict=True):
        assert close(a, 2 * b, 1e-11)


def rounding(hidden, weight, bias, targets, plan):
    """For each gradient: the sum of absolute terms behind its entries, and the error of an fp32 matmul of true factors.

    The second matters for one token only, where the sum over the vocabulary is a matrix-vector product.
    """
    logits = (hidden @ weight.T + bias).detach().requires_grad_()
    stats = policy_stats(logits)
    loss = plan.loss(stats.logp.gather(1, targets[:, None])[:, 0], stats.entropy)
    dlogits = torch.autograd.grad(loss, logits)[0]
    ones = torch.ones(1, len(targets), dtype=torch.float64)
    for left, right in ((dlogits, weight), (dlogits.T, hidden), (ones, dlogits)):
        error = (left.float() @ right.float()).double() - left.float().double() @ right.float().double()
        yield (left.abs() @ right.abs()).max().item(), error.abs().max().item()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vocabulary", [7, 50_257, 151_936])
@pytest.mark.parametrize("shape", ["usual", "peaked", "uniform", "+50", "-50", "one token"])
def test_float32_against_float64(mode, vocabulary, shape):
    """1e-5 relative: values to themselves at the same fp32 logits, sums to the size of their terms."""
    n = 1 if shape == "one token" else 13
    scale = {"usual": 1.0, "peaked": 12.0, "uniform": 0.0}.get(shape, 1.0)
    *leaves, targets, plan = scene(n, 5, vocabulary, torch.float32, scale=scale)
    hidden, weight, bias = leaves
    with torch.no_grad():
        bias.fill_(float(shape) if shape in ("+50", "-50") else 0.0)
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    expected, stats, grads = dense(*doubles, targets, plan, 1.0, None)
    loss, found = head_loss(hidden, weight, targets, plan, bias=bias, mode=mode)
    terms = plan.token_loss(found.logp, found.entropy).abs().sum()  # the loss is what is left when these cancel
    assert (loss - expected).abs() <= 1e-5 * terms
    rounded = (hidden @ weight.T + bias).detach().double()
    for a, b, same in zip(found, stats, statistics(rounded, targets), strict=True):
        assert ((a - same).abs() <= 1e-5 * same.abs() + 1e-15).all()  # float64's own error beside a p of 1
        assert ((a - b).abs() <= 1e-5 * b.abs() + 1e-6).all()  # an fp32 matmul's error of the logits
    floors = rounding(*doubles, targets, plan)
    for a, b, (terms, floor) in zip(torch.autograd.grad(loss, leaves), grads, floors, strict=True):
        assert (a - b).abs().max() <= 1e-5 * terms + floor


@pytest.mark.parametrize("mode", MODES)
def test_impossible_columns(mode):
    """A bias of −∞ removes a token: results are as without its column, and its gradients are 0."""
    hidden, weight, bias, targets, plan = scene()
    here = torch.arange(len(bias)) % 5 != 1
    targets = here.nonzero()[:, 0][targets % int(here.sum())]
    with torch.no_grad():
        bias[~here] = -torch.inf
    loss, found = head_loss(hidden, weight, targets, plan, bias=bias, mode=mode, chunk=8)
    grads = torch.autograd.grad(loss, (hidden, weight, bias))
    rest = [x.detach()[here].requires_grad_() for x in (weight, bias)]
    expected, stats, (d_hidden, *others) = dense(hidden, *rest, (here.cumsum(0) - 1)[targets], plan, 1.0, None)
    assert close(loss, expected, 1e-12)
    assert all(close(a, b, 1e-11) for a, b in zip(found, stats, strict=True))
    assert close(grads[0], d_hidden, 1e-11)
    for a, b in zip(grads[1:], others, strict=True):
        assert close(a[here], b, 1e-11)
        assert (a[~here] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mode", MODES)
def test_one_hot_rows(mode, dtype):
    """With all mass on the target, gradients are 0 and everything is finite."""
    v = 41
    targets, weight = torch.arange(v), torch.eye(v, dtype=dtype, requires_grad=True)
    hidden = (800.0 * torch.eye(v, dtype=dtype)).requires_grad_()
    logp = torch.zeros(v, dtype=dtype)
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.ones(v, dtype=dtype), entropy=logp)
    loss, stats = head_loss(hidden, weight, targets, make("grpo+entropy_bonus").plan(tokens), mode=mode)
    assert [x.unique().tolist() for x in stats] == [[0.0], [0.0], [1.0], [0.0], [0.0]]
    assert all((x == 0).all() for x in torch.autograd.grad(loss, (hidden, weight)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("gap", [4.0, 8.0, 16.0, 24.0])
def test_peaked_rows(mode, gap):
    """Down to 1 − p = 1e-9. The logits are the gap and 0, so that the matmul has no error."""
    v = 41
    targets, weight = torch.arange(v), torch.eye(v, requires_grad=True)
    hidden = (gap * torch.eye(v)).requires_grad_()
    logp = torch.zeros(v)
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.ones(v), entropy=logp)
    plan = make("grpo+entropy_bonus").plan(tokens)
    doubles = [x.detach().double().requires_grad_() for x in (hidden, weight)]
    expected, stats, grads = dense(*doubles, None, targets, plan, 1.0, None)
    loss, found = head_loss(hidden, weight, targets, plan, mode=mode)
    assert close(loss, expected, 1e-6)
    for a, b in zip(found, stats, strict=True):
        assert ((a - b).abs() <= 1e-5 * b.abs()).all()
    for a, b in zip(torch.autograd.grad(loss, (hidden, weight)), grads, strict=True):
        assert ((a - b).abs().amax(1) <= 1e-5 * b.abs().amax(1)).all()


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", [{"top_k": 3}, {"top_k": 0, "top_p": 0.7}])
def test_a_bonus_on_truncated_entropies(settings, mode, option):
    """Loss and gradients of the complete plan agree with autograd through a dense softmax."""
    hidden, weight, bias, targets, plain = scene()
    controller = make("truncated_entropy_bonus+entropy_bonus", **{"truncated_entropy_bonus.coef": 0.5}, **settings)
    zero = torch.zeros_like(plain.advantage)
    advantage = plain.advantage
    plan = controller.plan(Tokens(logp=zero - 3, old_logp=zero - 3, advantage=advantage, entropy=zero))
    given = {"temperature": 1.0, "softcap": None, **OPTIONS[option]}
    heat = torch.linspace(0.5, 1.5, len(targets)).double() if given["temperature"] == "tokens" else given["temperature"]
    bias = bias if given.pop("bias", False) else None
    leaves = [x for x in (hidden, weight, bias) if x is not None]
    logits = hidden @ weight.T if bias is None else hidden @ weight.T + bias
    logits = logits if given["softcap"] is None else given["softcap"] * torch.tanh(logits / given["softcap"])
    logits = logits / (heat[:, None] if isinstance(heat, torch.Tensor) else heat)
    truncated = truncated_entropy(logits, controller.support)
    expected = plan.loss(*statistics(logits, targets)[:2], truncated_entropy=truncated)
    grads = torch.autograd.grad(expected, leaves)
    support = controller.support
    with Largest() as largest:
        loss, _ = head_loss(
            hidden, weight, targets, plan, temperature=heat, bias=bias, softcap=given["softcap"], mode=mode, chunk=8,
            support=support,
        )  # fmt: skip
    assert close(loss, expected, 1e-12)
    assert largest.elements <= weight.shape[0] * len(targets)
    for a, b in zip(torch.autograd.grad(3 * loss, leaves), grads, strict=True):
        assert close(a, 3 * b, 1e-11)
    with pytest.raises(ValueError, match="a bonus on truncated entropies needs `support`"):
        head_loss(hidden, weight, targets, plan, mode=mode)


@pytest.mark.parametrize(("chunk", "share", "tokens"), [(8, 8, 8), (None, 8, 2), (None, 20, 1)])
def test_a_bonus_on_truncated_entropies_is_made_in_chunks(chunk, share, tokens, monkeypatch):
    """By default a chunk is a share of the 16 tokens that memory allows here, and at least one token."""
    monkeypatch.setitem(CHUNK_BYTES, "cpu", 16 * 500 * 4)
    monkeypatch.setattr("llmtrain.kernels.truncated.SHARE", share)
    hidden, weight, *_ = scene(64, 1, 500)
    zero = torch.zeros(64, dtype=torch.float64)
    coefficient = (torch.arange(64) % 4 == 0).double()
    with Largest() as largest:
        loss = truncated_loss(hidden, weight, coefficient, Support(top_k=5), chunk=chunk)
        loss.backward()
    assert largest.elements == tokens * 500
    assert (hidden.grad.abs().sum(1) > 0).tolist() == (coefficient > 0).tolist()
    assert truncated_loss(hidden, weight, zero, Support(top_k=5)) == 0


@pytest.mark.parametrize(("chunk", "tokens"), [(8, 8), (None, 2), (100, 64)])
def test_restricted_policies_are_made_in_chunks(chunk, tokens, monkeypatch):
    monkeypatch.setitem(CHUNK_BYTES, "cpu", 16 * 500 * 4)
    hidden, weight, _, targets, _ = scene(64, 1, 500)
    heat = torch.linspace(0.5, 2, 64, dtype=torch.float64)
    support = Support(min_p=0.05, top_k=200)
    with Largest() as largest:
        found = restricted_stats(hidden, weight, targets, support, heat, chunk=chunk)
    assert largest.elements == tokens * 500
    logits = hidden @ weight.T / heat[:, None]
    expected = truncated_logp(logits, support).gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(found.logp, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.entropy, truncated_entropy(logits, support), rtol=1e-12, atol=1e-12)
    assert 0 < int(found.logp.isfinite().sum()) < 64
    assert not any(x.requires_grad for x in found)
    assert [x.shape for x in restricted_stats(hidden[:0], weight, targets[:0], support)] == [(0,), (0,)]


@pytest.mark.parametrize("mode", MODES)
def test_a_slice_of_the_plan(mode):
    hidden, weight, _, targets, plan = scene()
    index = torch.tensor([20, 3, 11])
    loss, _ = head_loss(hidden[index], weight, targets[index], plan, index, mode=mode)
    stats = head_stats(hidden[index], weight, targets[index])
    torch.testing.assert_close(loss, plan.loss(stats.logp, stats.entropy, index), rtol=1e-13, atol=0)


@pytest.mark.parametrize("mode", MODES)
def test_no_tokens(mode):
    hidden, weight, _, targets, plan = scene()
    none = torch.empty(0, dtype=torch.long)
    loss, stats = head_loss(hidden[:0], weight, targets[:0], plan, none, mode=mode)
    loss.backward()
    assert loss.item() == 0
    assert stats.logp.shape == (0,)
    assert (weight.grad == 0).all()


@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("mode", MODES)
def test_gradcheck(mode, softcap):
    hidden, weight, bias, targets, plan = scene(7, 3, 5)
    heat = torch.linspace(0.5, 1.5, len(targets)).double()

    def loss(h, w, b):
        return head_loss(h, w, targets, plan, temperature=heat, bias=b, softcap=softcap, mode=mode, chunk=3)[0]

    assert torch.autograd.gradcheck(loss, (hidden, weight, bias))


@pytest.mark.parametrize("mode", MODES)
def test_a_graph_that_is_kept_can_be_used_again(mode):
    hidden, weight, _, targets, plan = scene()
    loss, _ = head_loss(hidden, weight, targets, plan, mode=mode)
    once = torch.autograd.grad(loss, (hidden, weight), retain_graph=True)
    for _ in range(3):
        loss.backward(retain_graph=True)
    for leaf, grad in zip((hidden, weight), once, strict=True):
        torch.testing.assert_close(leaf.grad, 3 * grad)
    again = torch.autograd.grad(loss, (hidden, weight))
    assert all(torch.equal(a, b) for a, b in zip(again, once, strict=True))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_are_refused(mode):
    hidden, weight, _, targets, plan = scene()
    (grad,) = torch.autograd.grad(head_loss(hidden, weight, targets, plan, mode=mode)[0], hidden, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|does not require grad"):
        (grad**2).sum().backward()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("live", [0, 10, 30])
@pytest.mark.parametrize("needed", [(True, True), (True, False), (False, True), (False, False)])
def test_no_work_for_rows_without_coefficient_nor_for_gradients_that_nobody_needs(mode, live, needed):
    """2·N·D·V forward; the same per live row for dX, for dW, and to recompute logits."""
    n, d, v = 30, 6, 41
    hidden, weight, _, targets, _ = scene(n, d, v)
    zero = torch.zeros(n, dtype=torch.float64)
    advantage = (torch.arange(n) < live).double()
    plan = make("grpo").plan(Tokens(logp=zero, old_logp=zero, advantage=advantage))
    leaves = [x.detach().requires_grad_(need) for x, need in zip((hidden, weight), needed, strict=True)]
    in_place = {torch.ops.aten.addmm_: lambda total, left, right, **_: 2 * left[0] * left[1] * right[1]}
    with FlopCounterMode(display=False, custom_mapping=in_place) as flops:
        loss, _ = head_loss(*leaves, targets, plan, mode=mode, chunk=8)
        if any(needed):
            loss.backward()
    made_again = mode == "recompute" and any(needed)
    products = n + live * (made_again + sum(needed))
    assert flops.get_total_flops() == 2 * products * d * v


@pytest.mark.parametrize("mode", MODES)
def test_without_gradients_nothing_is_made_for_them(mode):
    n, d, v, chunk = 30, 6, 41, 8
    hidden, weight, _, targets, plan = scene(n, d, v)
    with torch.no_grad(), FlopCounterMode(display=False) as flops, Largest() as largest:
        loss, _ = head_loss(hidden, weight, targets, plan, mode=mode, chunk=chunk)
    assert flops.get_total_flops() == 2 * n * d * v
    assert largest.elements == chunk * v
    assert close(loss, dense(hidden, weight, None, targets, plan, 1.0, None)[0].detach(), 1e-12)


@pytest.mark.parametrize(("mode", "holds_all"), [("fused", False), ("recompute", False), ("stash", True)])
def test_what_is_held(mode, holds_all):
    n, d, v, chunk = 64, 4, 500, 8
    hidden, weight, _, targets, plan = scene(n, d, v)
    with Largest() as largest:
        loss, _ = head_loss(hidden, weight, targets, plan, mode=mode, chunk=chunk)
        loss.backward()
    assert largest.elements == (n * v if holds_all else chunk * v)


def test_unknown_mode():
    hidden, weight, _, targets, plan = scene()
    for call, names in (
        (lambda: head_loss(hidden, weight, targets, plan, mode="dense"), "mode .*fused, recompute, stash; got 'dense'"),
        (lambda: head_stats(hidden, weight, targets, mode="fused"), "mode .*recompute, stash; got 'fused'"),
    ):
        with pytest.raises(ValueError, match=names):
            call()


@pytest.mark.parametrize(
    ("name", "value", "names"),
    [
        ("temperature", torch.ones(2), r"temperature .*\(29,\); got \(2,\)"),
        ("temperature", 0.0, "positive temperature; got 0.0"),
        ("temperature", float("nan"), "positive temperature; got nan"),
        ("temperature", torch.arange(29.0), "temperature for each token"),
        ("temperature", torch.full((29,), torch.nan), "temperature for each token"),
        ("bias", torch.zeros(1), r"bias .*\(41,\); got \(1,\)"),
        ("bias", torch.zeros(29, 41), r"bias .*\(41,\); got \(29, 41\)"),
        ("softcap", 0.0, "softcap .*positive; got 0.0"),
        ("chunk", 0, "chunk .*1; got 0"),
        ("chunk", -1, "chunk .*1; got -1"),
        ("logits_dtype", torch.float16, "logits_dtype .*torch.bfloat16, torch.float64 or None; got torch.float16"),
        ("targets", torch.full((29,), -100), "targets .*0 to 40"),
        ("targets", torch.full((29,), 41), "targets .*0 to 40"),
        ("targets", torch.zeros(3).long(), r"targets \(N,\)"),
    ],
)
def test_arguments_that_do_not_fit(name, value, names):
    hidden, weight, _, targets, plan = scene()
    for call, given in ((head_stats, {"targets": targets}), (head_loss, {"targets": targets, "plan": plan})):
        with pytest.raises(ValueError, match=names):
            call(hidden, weight, **{**given, name: value})


def vocabulary_rank(rank: int, world: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    torch.set_num_threads(1)
    hidden, weight, bias, targets, plan = scene(v=42)
    part = slice(rank * 21, rank * 21 + 21)
    mine = [weight.detach()[part].requires_grad_(), bias.detach()[part].requires_grad_()]
    out = {}
    for mode in MODES:
        loss, stats = head_loss(
            hidden, mine[0], targets, plan, temperature=0.7, bias=mine[1], softcap=3.0, mode=mode, chunk=8,
            group=dist.group.WORLD,
        )  # fmt: skip
        out[mode] = (loss.detach(), tuple(stats), torch.autograd.grad(loss, (hidden, *mine)))
    torch.save(out, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.slow
def test_vocabulary_over_two_ranks(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3])  # where the ranks find this file
    start_ranks(2, vocabulary_rank, str(tmp_path))
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    hidden, weight, bias, targets, plan = scene(v=42)
    expected, stats, (d_hidden, d_weight, d_bias) = dense(hidden, weight, bias, targets, plan, 0.7, 3.0)
    for mode in MODES:
        for loss, found, grads in (rank[mode] for rank in ranks):
            assert close(loss, expected, 1e-12)
            assert all(close(a, b, 1e-11) for a, b in zip(found, stats, strict=True))
            assert close(grads[0], d_hidden, 1e-11)
        assert close(torch.cat([rank[mode][2][1] for rank in ranks]), d_weight, 1e-11)
        assert close(torch.cat([rank[mode][2][2] for rank in ranks]), d_bias, 1e-11)
