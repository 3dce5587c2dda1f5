"""bf16 products of a body: fp32 weights, states, output layer and gradients; casts of weights that last a rollout.

Each test runs with products in bf16 and with products in fp32 of rounded numbers, on every processor.
"""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from benchmarks.model_families import FAMILIES, tiny
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from llmtrain.policy import precision
from llmtrain.policy.attention import attend_by_sequence
from llmtrain.policy.engines import place
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.policy.precision import advice, compute_in_bf16, is_reached, rate, slow_bf16
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.layout import LAYOUTS
from llmtrain.settings.config import EngineConfig, TrainConfig

TOKENIZER = build_char_tokenizer("0123456789+-*/()=: ")
BF16 = 2.0**-8
"""Relative rounding of a bf16 number."""


def make_model():
    model = build_tiny(len(TOKENIZER), hidden=32, layers=2, heads=4, kv_heads=2, intermediate=48, seed=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5 if parameter.ndim == 2 else 1.0)
    return model


SHARES = {"in_bf16": 0.0, "in_fp32": math.inf}
"""Share of the rate of fp32 below which products are done in fp32, by the way that it leads to."""


@pytest.fixture(params=sorted(SHARES), autouse=True)
def way(request, monkeypatch):
    """One of the two ways to multiply numbers of bf16."""
    monkeypatch.setattr(precision, "SLOW", SHARES[request.param])
    return request.param


@pytest.fixture(params=sorted(LAYOUTS))
def policies(request, way):
    """The policy in fp32, and the same with bf16 products."""
    models = [make_model(), make_model()]
    compute_in_bf16(models[1])
    return [Policy(model, layout=request.param) for model in models]


def batch():
    lengths = torch.tensor([3, 3, 4])
    ids = torch.randint(3, len(TOKENIZER), (int(lengths.sum()) + 15,), generator=torch.Generator().manual_seed(0))
    ids[8:11] = ids[:3]  # the first two share a prompt
    return Batch(ids, prompt_lengths=lengths, response_lengths=torch.tensor([5, 4, 6]))


def test_statistics_are_rounded_and_fp32(policies):
    exact, rounded = (policy.token_stats(batch(), torch.arange(3)) for policy in policies)
    assert rounded.logp.dtype == rounded.entropy.dtype == torch.float32
    gap = (exact.logp - rounded.logp).abs().max()
    assert 1e-4 < gap < 40 * BF16  # logits of this model reach 10


def test_gradients_are_fp32_and_those_of_the_exact_policy_but_for_rounding(policies):
    grads = []
    for policy in policies:
        policy.token_stats(batch(), torch.arange(3)).logp.sum().backward()
        parameters = list(policy.model.parameters())
        assert all(x.dtype == x.grad.dtype == torch.float32 for x in parameters)
        grads.append(torch.cat([x.grad.flatten() for x in parameters]))
    cosine = torch.nn.functional.cosine_similarity(*grads, dim=0)
    assert 0.998 < cosine < 1 - 1e-7


def test_the_output_layer_is_not_rounded():
    """Logits of states that the body gave are fp32 products of them, to the last bit."""
    model = make_model()
    compute_in_bf16(model)
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        states = model.base_model(input_ids=ids).last_hidden_state
        assert states.dtype == torch.float32
        torch.testing.assert_close(model(input_ids=ids).logits, model.lm_head(states), rtol=0, atol=0)


class Casts(TorchDispatchMode):
    """Count of the casts of matrices to bf16, by shape."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and out.dtype == torch.bfloat16 and out.ndim == 2:
            self.seen[tuple(out.shape)] += 1
        return out


def test_a_rollout_casts_each_weight_once():
    """The log-probabilities are those of the learner's pass, and no weight is cast again for the next token."""
    model = make_model()
    compute_in_bf16(model)
    sampler = HFRollout(model, TOKENIZER, max_new_tokens=8, generator=torch.Generator().manual_seed(0))
    with Casts() as casts:
        rollouts = sampler.generate(TOKENIZER(["12=", "3 4="])["input_ids"], 8)
    assert casts.seen == {(32, 32): 4, (16, 32): 4, (48, 32): 4, (32, 48): 2}  # q, o; k, v; gate, up; down in 2 layers
    learned = Policy(model).token_stats(Batch.of(rollouts), torch.arange(16)).logp
    torch.testing.assert_close(rollouts.logp, learned.detach(), atol=40 * BF16, rtol=0)


def test_weights_that_moved_are_cast_anew():
    model = make_model()
    compute_in_bf16(model)
    prompts = TOKENIZER(["12="])["input_ids"]

    def logp():
        sampler = HFRollout(model, TOKENIZER, max_new_tokens=4, generator=torch.Generator().manual_seed(0))
        return sampler.generate(prompts, 4).logp

    before = logp()
    assert torch.equal(logp(), before)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    assert not torch.equal(logp()[:1], before[:1])


MULTIPLY = (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm, torch.ops.aten.baddbmm)
"""Products whose inputs tell in which precision they were computed; attention's kernels are told by their names."""


class Products(TorchDispatchMode):
    """Dtypes of products and of attention's kernels, forward and backward."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in MULTIPLY or "attention" in str(func):
            self.seen[next(x.dtype for x in args if isinstance(x, torch.Tensor))] += 1
        return func(*args, **(kwargs or {}))


def gpt2():
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 400, "vocab_size": len(TOKENIZER)}
    return GPT2LMHeadModel(GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


@pytest.mark.parametrize("make", [make_model, gpt2])
@pytest.mark.parametrize("tokens", [5, 300])
@pytest.mark.parametrize("rows", [1, 3])
def test_every_product_of_a_slow_processor_is_in_fp32(make, tokens, rows, way):
    """In a pass, forward and backward, and in a rollout; 300 tokens are attended to by torch's kernel."""
    model = make()
    attend_by_sequence(model)
    compute_in_bf16(model)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(3, len(TOKENIZER), (rows, tokens), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, : tokens // 2 if rows > 1 else 0] = 0
    sampler = HFRollout(model, TOKENIZER, max_new_tokens=4, generator=generator)
    with Products() as products:
        model(input_ids=ids, attention_mask=mask, use_cache=False).logits.log_softmax(-1)[..., 0].sum().backward()
        sampler.generate(ids[:, : tokens - 4].tolist(), 2)
    if way == "in_fp32":
        assert products.seen[torch.float32] > 40
        assert not products.seen[torch.bfloat16]
    else:
        assert products.seen[torch.bfloat16] > 20


@pytest.mark.parametrize("bias", [True, False])
def test_a_rounded_layer_gives_the_exact_product_of_rounded_numbers(bias):
    """To the rounding of the result, as its gradients are to theirs."""
    layer = torch.nn.Linear(37, 11, bias=bias)
    x = torch.randn(5, 37, generator=torch.Generator().manual_seed(1)).requires_grad_()
    layer.__class__ = precision.RoundedLinear
    assert torch.equal(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))  # without autocast
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x)
    assert found.dtype == torch.bfloat16
    found.backward(torch.ones_like(found))
    narrow, weight = (y.detach().bfloat16().double() for y in (x, layer.weight))
    exact = narrow @ weight.T + (0 if layer.bias is None else layer.bias.detach().bfloat16().double())
    torch.testing.assert_close(found.double(), exact, rtol=BF16 * 1.01, atol=1e-6)
    torch.testing.assert_close(x.grad.double(), weight.sum(0).expand(5, -1), rtol=BF16 * 1.01, atol=1e-6)
    torch.testing.assert_close(layer.weight.grad.double(), narrow.sum(0).expand(11, -1), rtol=BF16 * 1.01, atol=1e-6)


def test_other_autocasts_are_left_alone():
    layer = torch.nn.Linear(8, 8)
    x = torch.randn(3, 8)
    with torch.autocast("cpu", torch.float16):
        plain = layer(x)
        layer.__class__ = precision.RoundedLinear
        assert torch.equal(layer(x), plain)
    assert plain.dtype == torch.float16


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_both_ways_round_the_same_numbers(attention, monkeypatch):
    """Gradients under an attention that both do in bf16: sums in another order turn a few roundings over.

    Under ours scores are rounded in one way and not in the other.
    """
    grads = {}
    for name in ("exact", *SHARES):
        model = make_model()
        model.set_attn_implementation(attention)
        attend_by_sequence(model)
        if name in SHARES:
            monkeypatch.setattr(precision, "SLOW", SHARES[name])
            compute_in_bf16(model)
        logits = model(input_ids=batch().ids[None, :16], use_cache=False).logits
        logits.log_softmax(-1)[..., 5].sum().backward()
        grads[name] = torch.cat([x.grad.flatten() for x in model.parameters()])
    apart = (grads["in_bf16"] - grads["in_fp32"]).norm()
    rounding = min((grads["exact"] - grads[name]).norm() for name in SHARES)
    assert apart < (0.3 if attention == "eager" else 1.2) * rounding


def test_recomputed_activations_give_the_same_gradients():
    found = []
    for again in (False, True):
        model = make_model().train()
        attend_by_sequence(model)
        if again:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        compute_in_bf16(model)
        Policy(model).token_stats(batch(), torch.arange(3)).logp.sum().backward()
        found.append(torch.cat([x.grad.flatten() for x in model.parameters()]))
    assert torch.equal(*found)


def test_rounded_weights_are_not_kept_after_a_rollout_that_fails(way):
    model = make_model()
    compute_in_bf16(model)
    layers = [x for x in model.modules() if isinstance(x, precision.RoundedLinear)]
    assert len(layers) == (14 if way == "in_fp32" else 0)

    def fails():
        with precision.without_gradients(model):
            assert all(x.kept is not None for x in layers)
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fails()
    assert all(x.kept is None for x in layers)


def of_family(name):
    """A small random model of a family, and token ids for it."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(tiny(name)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0 if parameter.ndim == 2 else 1.0)
    attend_by_sequence(model)
    return model, torch.randint(3, 200, (2, 12), generator=torch.Generator().manual_seed(0))


def check_family(name):
    """Sampling and training both round, as torch's autocast over the whole model does, to its rounding."""
    model, ids = of_family(name)
    with torch.no_grad():
        exact = model(input_ids=ids, use_cache=False).logits.log_softmax(-1)
        with torch.autocast("cpu", torch.bfloat16):
            whole = model(input_ids=ids, use_cache=False).logits.float().log_softmax(-1)
        compute_in_bf16(model)
        assert is_reached(model, ids)
        found = model(input_ids=ids, use_cache=False).logits
    assert found.dtype == torch.float32
    gap, usual = ((x - exact).abs().mean() for x in (found.log_softmax(-1), whole))
    assert 0 < gap < 2 * usual


@pytest.mark.parametrize("name", ["opt", "bart", "llama4_text", "modernbert-decoder", "inkling_text", "gpt_neox"])
def test_the_layers_of_a_family_are_reached(name):
    """OPT and BART call a decoder in their base model, Llama 4 is its own; ModernBERT's decoder is its output layer.

    Inkling adds a bias of positions to its scores.
    """
    check_family(name)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_the_layers_of_every_family_are_reached(name):
    try:
        model, ids = of_family(name)
        model(input_ids=ids, use_cache=False)
    except Exception as error:
        pytest.skip(f"no small model of it runs in fp32: {type(error).__name__}")
    check_family(name)


def test_a_model_whose_passes_go_elsewhere_is_refused(monkeypatch):
    model = make_model()
    monkeypatch.setattr(model, "get_decoder", lambda: make_model().model)
    config = replace(TrainConfig(), engine=EngineConfig(bf16=True))
    with pytest.raises(ValueError, match=r"engine\.bf16 does not reach the layers of .*: train without it"):
        place(config, Policy(model))


def test_a_model_without_a_body_is_refused():
    model = make_model()
    model.get_decoder = lambda: model
    model.model = torch.nn.Identity()
    with pytest.raises(ValueError, match=r"engine\.bf16 cannot tell the layers of"):
        compute_in_bf16(model)


def test_a_processor_that_is_slow_in_bf16_is_told_of():
    slow = "this processor multiplies at {} GFLOP/s in bf16 and at {} in fp32"
    rounds = ", so that numbers are rounded to bf16 and multiplied in fp32"
    faster = ": training is faster without engine.bf16"
    precision.SLOW = 0.4
    assert advice(bf16=31.7e9, fp32=108.4e9) == slow.format(32, 108) + rounds + faster
    assert advice(bf16=31.7e9, fp32=108.4e9, casts=False) == slow.format(32, 108) + faster
    assert advice(bf16=152e9, fp32=291e9) == slow.format(152, 291) + faster
    assert advice(bf16=204e9, fp32=91e9) == ""
    assert slow_bf16("cuda") == ""
    assert 1e8 < rate(torch.float32) < 1e13
