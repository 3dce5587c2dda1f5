"""bf16 products of a body: fp32 weights, states, output layer and gradients; casts of weights that last a rollout."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.policy.precision import advice, compute_in_bf16, rate, slow_bf16
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.layout import LAYOUTS

TOKENIZER = build_char_tokenizer("0123456789+-*/()=: ")
BF16 = 2.0**-8
"""Relative rounding of a bf16 number."""


def make_model():
    model = build_tiny(len(TOKENIZER), hidden=32, layers=2, heads=4, kv_heads=2, intermediate=48, seed=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5 if parameter.ndim == 2 else 1.0)
    return model


@pytest.fixture(params=sorted(LAYOUTS))
def policies(request):
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


def test_a_processor_that_is_slow_in_bf16_is_told_of():
    told = "this processor multiplies at 32 GFLOP/s in bf16 and at 108 in fp32: training is faster without engine.bf16"
    assert advice(bf16=31.7, fp32=108.4) == told
    assert advice(bf16=204.0, fp32=91.0) == ""
    assert slow_bf16("cuda") == ""
    assert 1e8 < rate(torch.float32) < 1e13
