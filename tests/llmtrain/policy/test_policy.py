"""Statistics are those of the model's own logits, also where a model changes these after its output layer."""

import pytest
import torch
from transformers import AutoModelForCausalLM, CohereConfig, Gemma2Config, GPTJConfig, GraniteConfig, Qwen2Config

from entrostat import Tokens, make
from entrostat.numbers.support import Support
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch

SIZE = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPTJ = GPTJConfig(vocab_size=40, n_positions=32, n_embd=16, n_layer=1, n_head=2, rotary_dim=4)
MODELS = {
    "plain": Qwen2Config(**SIZE),
    "softcap": Gemma2Config(**SIZE, head_dim=8, final_logit_softcapping=0.05),
    "multiplied": CohereConfig(**SIZE, logit_scale=7.0),
    "divided": GraniteConfig(**SIZE, logits_scaling=0.1),
    "bias": GPTJ,
}


def model_of(config):
    model = AutoModelForCausalLM.from_config(config).eval().float()
    if (bias := getattr(model.get_output_embeddings(), "bias", None)) is not None:
        torch.nn.init.normal_(bias)  # it is 0 at first
    return model


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("name", MODELS)
def test_statistics_are_those_of_the_models_logits(name, temperature):
    torch.manual_seed(0)
    model = model_of(MODELS[name])
    ids = torch.randint(3, 40, (9,))
    found = Policy(model, temperature).all_stats(Batch(ids, torch.tensor([3]), torch.tensor([6])), 100)
    logp = (model(ids[None]).logits[0, 2:8].float() / temperature).log_softmax(-1)
    torch.testing.assert_close(found.logp, logp.gather(1, ids[3:, None])[:, 0], rtol=0, atol=2e-6)
    torch.testing.assert_close(found.entropy, -(logp.exp() * logp).sum(-1), rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_restricted_statistics_are_those_of_the_models_logits_without_its_noise(name):
    torch.manual_seed(0)
    model = model_of(MODELS[name])
    ids = torch.randint(3, 40, (30,))
    rows = [model(some[None]).logits[0] for some in (ids[:15], ids[15:])]
    logp = (torch.cat([rows[0][2:14], rows[1][4:14]]).float() / 0.5).log_softmax(-1).detach()
    target = torch.cat([ids[3:15], ids[20:]])[:, None]
    share = (logp - logp.amax(-1, keepdim=True)).exp()
    noise = float(share.gather(1, target).median()) * 1.001  # about half of the tokens are
    batch = Batch(ids, torch.tensor([3, 5]), torch.tensor([12, 10]))
    found = Policy(model, 0.5).all_restricted(batch, Support(min_p=noise), 16)
    kept = share >= noise
    inside = torch.where(kept, logp, -torch.inf) - torch.where(kept, logp.exp(), 0.0).sum(-1, keepdim=True).log()
    expected = inside.gather(1, target)[:, 0]
    torch.testing.assert_close(found.logp, expected, rtol=0, atol=2e-6)
    torch.testing.assert_close(found.entropy, -(inside.exp() * inside).nansum(-1), rtol=0, atol=4e-6)
    assert 0 < int(expected.isfinite().sum()) < 22


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_the_models_logits(name):
    torch.manual_seed(0)
    model = model_of(MODELS[name])
    ids, n = torch.randint(3, 40, (9,)), 6
    plan = make("reinforce").plan(Tokens(logp=None, old_logp=None, advantage=torch.ones(n)))
    batch = Batch(ids, torch.tensor([3]), torch.tensor([n]))
    loss, _ = Policy(model, 0.5).loss(batch, torch.tensor([0]), plan, torch.arange(n))
    loss.backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    logits = model(ids[None]).logits[0, 2:8].float() / 0.5
    torch.nn.functional.cross_entropy(logits, ids[3:]).backward()
    for parameter, gradient in zip(model.parameters(), found, strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=0, atol=5e-6)
