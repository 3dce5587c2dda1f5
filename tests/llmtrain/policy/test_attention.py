"""Packed rows attend sequence by sequence, short ones directly, new tokens by groups; windows stay what they are."""

import itertools
import math

import pytest
import torch
from like_cuda import like_cuda
from torch.nn.attention import varlen
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    Qwen2Config,
)

from llmtrain.policy import attention, precision
from llmtrain.policy.attention import attend, attend_by_sequence, attend_directly, sdpa_attention_forward, window_of
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 128,
}
BATCH = Batch(torch.arange(90) % 48 + 2, torch.tensor([4, 7, 3]), torch.tensor([36, 18, 22]))
"""Of 39, 24 and 24 tokens that go into the model."""


def model_of(config) -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


@pytest.fixture
def asked(monkeypatch) -> list[tuple[int, bool]]:
    """For each call of torch's attention: the width of what is looked at, and whether there is a mask."""
    calls, plain = [], torch.nn.functional.scaled_dot_product_attention

    def watched(query, key, value, attn_mask=None, **options):
        calls.append((key.shape[2], attn_mask is not None))
        return plain(query, key, value, attn_mask=attn_mask, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    return calls


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_packed_row_costs_what_its_sequences_cost(asked, checkpointing):
    model = model_of(Qwen2Config(**SIZES))
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    policy, gradients = Policy(model, layout="packed"), []
    asked.clear()
    policy.token_stats(BATCH, torch.arange(3)).logp.sum().backward()
    assert asked == [(39, False), (24, False), (24, False)] * 2 * (1 + checkpointing)
    for one in (policy, Policy(model_of(Qwen2Config(**SIZES)))):
        one.zero_grad()
        one.token_stats(BATCH, torch.arange(3)).logp.sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in one.model.parameters()]))
    assert (gradients[0] - gradients[1]).norm() < 1e-5 * gradients[1].norm()


def scene(dtype=torch.float64, tokens=7):
    """A module, and queries of four heads, keys and values of two."""
    draws = torch.Generator().manual_seed(0)
    shapes = [(3, heads, tokens, 8) for heads in (4, 2, 2)]
    module = torch.nn.Module()
    module.num_key_value_groups, module.is_causal = 2, True
    return module, [torch.randn(shape, generator=draws).to(dtype).requires_grad_() for shape in shapes]


MASK = (torch.rand(3, 1, 7, 7, generator=torch.Generator().manual_seed(1)) < 0.5) | torch.eye(7, dtype=torch.bool)
MASKS = {
    "causal": None,
    "bool": MASK,
    "of each row": MASK[:1],
    "added": torch.zeros(MASK.shape).double().masked_fill(~MASK, -torch.inf),
}


@pytest.mark.parametrize("scaling", [None, 0.3])
@pytest.mark.parametrize("mask", MASKS)
def test_direct_attention_is_that_of_torchs_kernel(asked, mask, scaling):
    module, inputs = scene()
    found = attend_directly(*inputs, MASKS[mask], scaling)
    assert not asked
    expected, _ = sdpa_attention_forward(module, *inputs, MASKS[mask], scaling=scaling)
    assert asked
    torch.testing.assert_close(found, expected)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(2)).double()
    slopes = [torch.autograd.grad((x * weight).sum(), inputs) for x in (found, expected)]
    for mine, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
    ("dtype", "masked", "tokens", "direct"),
    [
        (torch.bfloat16, False, 2, True),
        (torch.bfloat16, False, 256, True),
        (torch.bfloat16, False, 257, False),
        (torch.bfloat16, True, 256, True),
        (torch.bfloat16, True, 257, False),
        (torch.float32, True, 128, True),
        (torch.float32, True, 129, False),
        (torch.float32, False, 2, False),
    ],
)
def test_short_rows_take_it(asked, dtype, masked, tokens, direct):
    module, inputs = scene(dtype, tokens)
    attend(module, *inputs, torch.ones(1, 1, tokens, tokens, dtype=torch.bool) if masked else None)
    assert bool(asked) != direct


def test_a_row_that_sees_nothing_is_finite():
    """Padding on the left, whose states others multiply by zero."""
    _, inputs = scene()
    mask = MASK.clone()
    mask[1, :, :3] = False
    found = attend_directly(*inputs, mask, None)
    assert found.isfinite().all()
    torch.testing.assert_close(found[1, 3:], attend_directly(*inputs, MASK, None)[1, 3:])


@pytest.mark.parametrize(("share", "dtype"), [(0.0, torch.bfloat16), (math.inf, torch.float32)])
def test_under_autocast_short_rows_multiply_in_bf16_or_where_that_is_slow_in_fp32(share, dtype, monkeypatch):
    monkeypatch.setattr(precision, "SLOW", share)
    module, inputs = scene(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = attend(module, *inputs, None)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), attend(module, *inputs, None)[0], rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    "options", [{"dropout": 0.5}, {"is_causal": False}, {"position_bias": torch.zeros(1, 4, 7, 7).bfloat16()}]
)
def test_what_direct_attention_does_not_know_is_left_to_transformers(asked, options):
    module, inputs = scene(torch.bfloat16)
    attend(module, *inputs, None, **options)
    assert asked


@pytest.mark.parametrize("knows_groups", [True, False])
def test_on_a_gpu_all_sequences_take_one_call(monkeypatch, knows_groups):
    """The call of torch is written by hand here; test_cuda.py makes it on a GPU."""
    calls = []

    def variable_length(query, key, value, edges, others, longest, most, *, scale, window_size, enable_gqa=False):
        calls.append((edges.tolist(), longest, window_size, enable_gqa))
        assert enable_gqa or key.shape == query.shape
        assert (others is edges, most) == (True, longest)
        parts = []
        for begin, end in itertools.pairwise(edges.tolist()):
            each = [x[begin:end].transpose(0, 1)[None] for x in (query, key, value)]
            options = {"is_causal": True, "scale": scale, "enable_gqa": enable_gqa}
            parts.append(torch.nn.functional.scaled_dot_product_attention(*each, **options)[0].transpose(0, 1))
        return torch.cat(parts)

    monkeypatch.setattr(varlen, "varlen_attn", variable_length)
    known = {"scale", "enable_gqa"} if knows_groups else {"scale"}
    monkeypatch.setattr(attention, "VARLEN_OPTIONS", dict.fromkeys(known))
    draws, lengths = torch.Generator().manual_seed(0), torch.tensor([3, 1, 5])
    query, key, value = (torch.randn(1, heads, 9, 8, generator=draws).bfloat16() for heads in (4, 2, 2))
    module = torch.nn.Module()
    module.num_key_value_groups, module.is_causal = 2, True
    expected, _ = attend(module, query, key, value, lengths, scaling=0.3)
    assert not calls
    found, _ = attend(module, *map(like_cuda, (query, key, value)), lengths, scaling=0.3)
    assert calls == [([0, 3, 4, 9], 5, (-1, 0), knows_groups)]
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.01)
    attend(module, *map(like_cuda, (query.float(), key.float(), value.float())), lengths, scaling=0.3)
    attend(module, *map(like_cuda, (query, key, value)), lengths, scaling=0.3, dropout=0.1)
    assert len(calls) == 1, "not in fp32, not with dropout"


def test_edges_that_a_rollout_leaves_can_be_saved_by_an_update():
    attention.edges_of.cache_clear()
    with torch.inference_mode():
        attention.edges_of((2, 3), torch.device("cpu"))
    edges = attention.edges_of((2, 3), torch.device("cpu"))
    assert edges.tolist() == [0, 2, 5]
    assert not edges.is_inference()


@pytest.mark.parametrize("padding", [0, 2])
def test_a_new_token_sees_keys_and_values_that_are_not_copied_for_each_query_head(monkeypatch, padding):
    heads, plain = [], torch.nn.functional.scaled_dot_product_attention

    def watched(query, key, *rest, **options):
        heads.append(key.shape[1])
        return plain(query, key, *rest, **options)

    def logits():
        cache, mask = DynamicCache(config=model.config), torch.ones(2, 6)
        mask[0, :padding] = 0
        model(ids[:, :5], attention_mask=mask[:, :5] if padding else None, past_key_values=cache)
        heads.clear()
        told = {"attention_mask": mask if padding else None, "past_key_values": cache}
        return model(ids[:, 5:], position_ids=mask.long().sum(1, keepdim=True) - 1, **told).logits

    model, ids = model_of(Qwen2Config(**SIZES)).eval(), torch.arange(12).view(2, 6)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    with torch.no_grad():
        expected = logits()
        assert heads == [4, 4] or padding == 0  # transformers copies where there is a mask
        attend_by_sequence(model)
        found = logits()
    assert heads == [2, 2]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_a_position_bias_is_not_lost():
    """It has a number for each query head, so these cannot be attended to as tokens."""
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, 1, 8, generator=generator)
    key, value = torch.randn(2, 1, 2, 5, 8, generator=generator)
    bias = torch.randn(1, 4, 1, 5, generator=generator)
    module = torch.nn.Module()
    module.num_key_value_groups = 2
    found, _ = attend(module, query, key, value, None, position_bias=bias)
    expected = (query @ key.repeat_interleave(2, 1).mT / 8**0.5 + bias).softmax(-1) @ value.repeat_interleave(2, 1)
    torch.testing.assert_close(found, expected.transpose(1, 2))
    assert not torch.allclose(attend(module, query, key, value, None)[0], found)


WINDOWS = {
    "mistral": MistralConfig(**SIZES, sliding_window=8),
    "gemma3": Gemma3TextConfig(
        **SIZES, head_dim=8, sliding_window=8, layer_types=["sliding_attention", "full_attention"]
    ),
    "qwen2": Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=8, max_window_layers=1),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_stay_in_packed_rows_and_shared_ones_are_refused(name):
    model = model_of(WINDOWS[name])
    expected, found = (Policy(model, layout=layout).all_stats(BATCH, 1000) for layout in ("padded", "packed"))
    torch.testing.assert_close(found.logp, expected.logp, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=r"look back at most 8 tokens.*--optim.layout packed"):
        Policy(model, layout="shared")


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        MistralConfig(**SIZES, sliding_window=None),
        MistralConfig(**SIZES, sliding_window=128),
        Qwen2Config(**SIZES, sliding_window=8),
    ],
)
def test_who_has_no_window(config):
    model = model_of(config)
    assert window_of(model) is None
    Policy(model, layout="shared")
