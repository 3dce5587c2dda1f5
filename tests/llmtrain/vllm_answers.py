"""Prompts, a model and its responses, for the tests of vLLM."""

from dataclasses import replace

import torch

from llmtrain.policy.model import build_tiny
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.rollout_engine import Request
from llmtrain.settings.config import RolloutConfig
from llmtrain.verifiers.countdown import ALPHABET

CONFIG = RolloutConfig(max_new_tokens=12, max_model_len=128, kv_cache_gib=0.25)
PROMPTS = ["1=", "12 13=", "3 5 7=22:", "9", "7 7 " * 12 + "1=9:"]
"""The last fills more than one cache block."""
TOKENIZER = build_char_tokenizer(ALPHABET)
EOS = 1


def sharp_model():
    """Sharper than with initial weights, so that a wrong one shows in the log-probabilities."""
    model = build_tiny(len(TOKENIZER), hidden=64, layers=2, heads=2, kv_heads=2, intermediate=96, seed=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5 if parameter.ndim == 2 else 1.0)
    return model


def ask(engine, prompts=PROMPTS, n=8, seed=0, shares=None, **drawn):
    ids = TOKENIZER(list(prompts))["input_ids"]
    return engine.submit(
        Request(ids, replace(CONFIG.sampling, samples=n, **drawn), shares or [list(range(len(prompts)))], seed)
    )()


@torch.no_grad()
def forced_logp(model, rollouts, temperature=1.0):
    """Log-probabilities of the responses from one plain forward pass a sequence (N)."""
    parts = []
    for i, response in zip(rollouts.prompt_index.tolist(), rollouts.responses(), strict=True):
        prompt = rollouts.prompt_ids[i]
        logp = (model(torch.tensor([prompt + response])).logits[0] / temperature).log_softmax(-1)[len(prompt) - 1 : -1]
        parts.append(logp.gather(1, torch.tensor(response)[:, None])[:, 0])
    return torch.cat(parts)


class Forgetful:
    """A sender's client that loses a tensor on the way."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        return getattr(self.client, name)

    def update_weights(self, info):
        self.client.update_weights({"names": info["names"][:-1], "tensors": info["tensors"][:-1]})
