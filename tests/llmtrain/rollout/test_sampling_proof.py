"""Sampling by transformers proves itself: log-probabilities of sampled tokens are those of the model's own logits."""

import pytest
import torch
from benchmarks.model_families import tiny
from transformers import AutoModelForCausalLM

from llmtrain.policy.precision import compute_in_bf16
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout
from llmtrain.rollout.sampling_proof import is_exact, way_to_sample

PROMPTS = [[41, 42, 43, 44, 45], [50, 51], [60, 61, 62], [70, 71]]


@pytest.fixture
def tokenizer():
    return build_char_tokenizer("ab")


def model_of(family):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(tiny(family)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(3)
    return model


@pytest.mark.parametrize(
    ("family", "way"),
    [
        ("qwen2", "shared"),
        ("gemma2", "shared"),
        ("bart", "apart"),  # positions from the length of the cache
        ("qwen3_next", "apart"),  # recurrent layers
        ("lfm2_moe", "apart"),
        ("deepseek_v4", "apart"),
    ],
)
def test_sampled_tokens_have_the_log_probabilities_of_the_models_own_logits(family, way, tokenizer):
    model = model_of(family)
    assert way_to_sample(model, tokenizer) == way
    sampler = HFRollout(model, tokenizer, max_new_tokens=5, generator=torch.Generator().manual_seed(0), way=way)
    found = sampler.generate(PROMPTS, 2)
    assert found.prompt_index.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    parts = zip(
        found.prompt_index.tolist(),
        found.response_ids.split(found.response_lengths.tolist()),
        found.logp.split(found.response_lengths.tolist()),
        strict=True,
    )
    for owner, response, logp in parts:
        ids = torch.tensor([[*PROMPTS[owner], *response.tolist()]])
        with torch.no_grad():
            own = model(input_ids=ids, use_cache=False).logits[0, len(PROMPTS[owner]) - 1 : -1].log_softmax(-1)
        torch.testing.assert_close(logp, own.gather(1, response[:, None])[:, 0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["mamba", "bamba", "minimax", "rwkv", "openai-gpt"])
def test_a_model_that_cannot_be_sampled_is_refused_in_a_line(family, tokenizer):
    model = model_of(family)
    with pytest.raises(ValueError, match=r"rollout.name hf cannot sample with \w+ .*use rollout.name vllm") as refused:
        way_to_sample(model, tokenizer)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("family", ["qwen2", "gemma2", "gpt2"])
def test_a_model_in_fp32_without_dropout_is_sampled_exactly(family, tokenizer):
    model = model_of(family)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop"):
        setattr(model.config, name, 0.0)
    way = way_to_sample(model, tokenizer)
    assert is_exact(model.train(), tokenizer, way)
    assert model.training


def test_dropout_and_bf16_are_not_exact(tokenizer):
    state = torch.get_rng_state()
    model = model_of("gpt2")  # its dropout is .1
    before = torch.get_rng_state()
    assert is_exact(model, tokenizer, "shared")  # whoever trains it without
    assert not is_exact(model.train(), tokenizer, "shared")
    assert torch.equal(torch.get_rng_state(), before)
    half = model_of("qwen2").train()
    compute_in_bf16(half)
    assert not is_exact(half, tokenizer, "shared")
    assert not is_exact(model_of("qwen2").bfloat16(), tokenizer, "shared")
    torch.set_rng_state(state)


def test_all_ways_draw_the_same_tokens(tokenizer):
    model = model_of("qwen2")
    found = [
        HFRollout(model, tokenizer, max_new_tokens=5, generator=torch.Generator().manual_seed(0), way=way).generate(
            PROMPTS, 3
        )
        for way in ("shared", "repeated", "apart")
    ]
    for other in found[1:]:
        assert torch.equal(found[0].response_ids, other.response_ids)
        torch.testing.assert_close(found[0].logp, other.logp, rtol=0, atol=1e-5)
