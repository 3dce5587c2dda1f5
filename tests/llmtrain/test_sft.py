"""Supervised warm-up: what it learns from, and that it repeats."""

import pytest
import torch

from llmtrain.model import build_tiny
from llmtrain.rollout import HFRollout
from llmtrain.sft import warm_up
from llmtrain.tokenizer import build_char_tokenizer

EXAMPLES = [("1=", "22"), ("2=", "3"), ("3=", "111"), ("11=", "2")]


@pytest.fixture
def tokenizer():
    return build_char_tokenizer("123=")


def tiny(tokenizer):
    return build_tiny(len(tokenizer), hidden=32, layers=1, heads=2, kv_heads=2, intermediate=32)


def greedy(model, tokenizer, prompts):
    rollout = HFRollout(model, tokenizer, max_new_tokens=6, temperature=0, generator=torch.Generator())
    return rollout.generate(prompts, 1).texts(tokenizer)


def test_learns_responses_and_when_to_stop(tokenizer):
    model = tiny(tokenizer)
    seen = []
    losses = warm_up(
        model,
        tokenizer,
        EXAMPLES,
        steps=150,
        batch_size=4,
        lr=1e-2,
        progress=lambda step, loss: seen.append((step, loss)),
    )
    assert losses[-1] < 0.05 < losses[0]
    assert seen == list(enumerate(losses))
    assert greedy(model, tokenizer, [p for p, _ in EXAMPLES]) == [r for _, r in EXAMPLES]


def test_prompt_tokens_carry_no_loss(tokenizer):
    """The first loss is the mean negative log-probability of the response tokens alone."""
    model = tiny(tokenizer).eval()
    expected = []
    for prompt, response in EXAMPLES:
        ids = tokenizer(prompt + response)["input_ids"] + [tokenizer.eos_token_id]
        logp = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        expected += [-logp[t - 1, ids[t]].item() for t in range(len(prompt), len(ids))]
    losses = warm_up(model, tokenizer, EXAMPLES, steps=1, batch_size=4)
    assert losses[0] == pytest.approx(sum(expected) / len(expected), abs=1e-5)
    assert not model.training


def test_repeats_from_the_seed(tokenizer):
    def weights(seed):
        model = tiny(tokenizer)
        warm_up(model, tokenizer, EXAMPLES, steps=5, batch_size=3, seed=seed)
        return model.lm_head.weight

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


@pytest.mark.parametrize(("examples", "steps", "batch"), [([], 1, 1), (EXAMPLES, 0, 1), (EXAMPLES, 1, 0)])
def test_bad_settings(tokenizer, examples, steps, batch):
    with pytest.raises(ValueError, match="warm-up needs"):
        warm_up(tiny(tokenizer), tokenizer, examples, steps=steps, batch_size=batch)
