"""Nucleus sampling of HFRollout against hand-computed nuclei and transformers' own."""

import numpy as np
import pytest
import torch
from transformers import TopPLogitsWarper

from llmtrain.policy.model import build_tiny
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout

TOKENIZER = build_char_tokenizer("0123456789+-*/()=: ")
MODEL = build_tiny(len(TOKENIZER), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16)


def sampler(top_p, temperature=1.0):
    return HFRollout(
        MODEL,
        TOKENIZER,
        max_new_tokens=8,
        temperature=temperature,
        top_p=top_p,
        generator=torch.Generator().manual_seed(0),
    )


def drawn(logits, top_p, count=4000, temperature=1.0):
    """Return the tokens for evenly spaced uniform numbers, and their log-probabilities."""
    uniform = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    tokens, stats = sampler(top_p, temperature)._sample(logits.expand(count, -1), uniform)
    return tokens, stats[:, 0]


@pytest.mark.parametrize(
    ("top_p", "nucleus"),
    [(0.3, {2: 1.0}), (0.49, {2: 1.0}), (0.6, {2: 5 / 8, 0: 3 / 8}), (0.9, {2: 5 / 9.5, 0: 3 / 9.5, 3: 1.5 / 9.5})],
)
def test_nucleus_by_hand(top_p, nucleus):
    p = torch.tensor([0.3, 0.05, 0.5, 0.15])
    tokens, logp = drawn(p.log(), top_p)
    shares = torch.bincount(tokens, minlength=4) / len(tokens)
    wanted = torch.tensor([nucleus.get(i, 0.0) for i in range(4)])
    torch.testing.assert_close(shares, wanted, atol=1e-3, rtol=0)
    torch.testing.assert_close(logp, p[tokens].log())  # of the whole distribution


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.6, *(pytest.param(x, marks=pytest.mark.long) for x in (1.0, 1.4))])
@pytest.mark.parametrize("top_p", [0.05, 0.7, 0.95])
def test_nucleus_is_transformers(top_p, temperature):
    logits = torch.randn(1, 300, generator=torch.Generator().manual_seed(7)) * 2
    warped = TopPLogitsWarper(top_p)(torch.zeros(1, 1), logits / temperature).softmax(-1)[0]
    tokens, logp = drawn(logits[0], top_p, count=50_000, temperature=temperature)
    shares = torch.bincount(tokens, minlength=300) / len(tokens)
    assert set(tokens.tolist()) <= set(warped.nonzero()[:, 0].tolist())
    torch.testing.assert_close(shares, warped, atol=1e-4, rtol=0)
    torch.testing.assert_close(logp, (logits[0] / temperature).log_softmax(-1)[tokens])


def test_the_largest_uniform_number_stays_in_the_nucleus():
    last = torch.tensor([np.nextafter(1, 0)], dtype=torch.float64)
    p = torch.tensor([[0.2500001, 0.25, 0.26, 0.2399999]])
    token, _ = sampler(0.5)._sample(p.log(), last)
    assert token.item() in (0, 2)


def test_the_narrowest_nucleus_is_greedy():
    prompts = TOKENIZER(["1+2=", "7*8="])["input_ids"]
    greedy, narrow = sampler(1.0, temperature=0).generate(prompts, 1), sampler(1e-6).generate(prompts, 1)
    assert torch.equal(greedy.response_ids, narrow.response_ids)


@pytest.mark.parametrize("top_p", [0, 1.5, -1])
def test_impossible_top_p_is_refused(top_p):
    with pytest.raises(ValueError, match="top_p"):
        sampler(top_p)
