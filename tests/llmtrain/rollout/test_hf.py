"""Rollouts: exact log-probabilities, repeatable draws, packing, and independence of the batch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.draw import BLOCK, invert
from llmtrain.rollout.hf import HFRollout, stop_ids
from llmtrain.rollout.rollout_engine import RolloutError
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.rollouts import join

TOKENIZER = build_char_tokenizer("0123456789+-*/()=: ")
PROMPTS = TOKENIZER(["1=", "12 13=", "3 5 7=22:", "9"])["input_ids"]
T = 12


@pytest.fixture(scope="module")
def tokenizer():
    return TOKENIZER


@pytest.fixture(scope="module")
def model(tokenizer):
    model = build_tiny(len(tokenizer), hidden=32, layers=2, heads=4, kv_heads=2, intermediate=48, seed=3)
    with torch.no_grad():
        # Sharper than the initial weights, so that a wrong position or mask shows in the log-probabilities.
        for parameter in model.parameters():
            parameter.mul_(2.5 if parameter.ndim == 2 else 1.0)
    return model


def sampler(model, tokenizer, seed=0, **changes):
    settings = {"max_new_tokens": T, "generator": torch.Generator().manual_seed(seed)} | changes
    return HFRollout(model, tokenizer, **settings)


def forced_logp(model, rollouts, temperature):
    """Log-probabilities of the responses from one plain forward pass a sequence (N)."""
    parts = []
    for i, response in zip(rollouts.prompt_index.tolist(), rollouts.responses(), strict=True):
        prompt = rollouts.prompt_ids[i]
        logits = model(torch.tensor([prompt + response])).logits[0] / temperature
        logp = logits.log_softmax(-1)[len(prompt) - 1 : -1]
        parts.append(logp.gather(1, torch.tensor(response)[:, None])[:, 0])
    return torch.cat(parts).detach()


@pytest.mark.parametrize("temperature", [1.0, 0.6, 1.7])
def test_logp_equals_teacher_forcing(model, tokenizer, temperature):
    rollouts = sampler(model, tokenizer, temperature=temperature).generate(PROMPTS, 16)
    assert len(set(rollouts.response_lengths.tolist())) > 3  # rows did leave the batch on the way
    torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts, temperature), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.6}, {"top_p": 0.8}, {"temperature": 0}, {"max_num_seqs": 16}]
)
def test_statistics_are_those_of_the_policy(model, tokenizer, settings):
    plain = sampler(model, tokenizer, **settings).generate(PROMPTS, 16)
    rollouts = sampler(model, tokenizer, **settings, stats=True).generate(PROMPTS, 16)
    assert plain.stats is None
    assert torch.equal(rollouts.response_ids, plain.response_ids)
    assert torch.equal(rollouts.stats[0], rollouts.logp)
    torch.testing.assert_close(rollouts.logp, plain.logp, atol=1e-6, rtol=0)
    policy = Policy(model, settings.get("temperature") or 1.0)
    torch.testing.assert_close(
        rollouts.stats, torch.stack(policy.all_stats(Batch.of(rollouts), 512)), atol=1e-5, rtol=0
    )
    odd = rollouts.take(torch.arange(1, 64, 2))
    torch.testing.assert_close(odd.stats, torch.stack(policy.all_stats(Batch.of(odd), 512)), atol=1e-5, rtol=0)
    assert torch.equal(join([odd, rollouts]).stats, torch.cat([odd.stats, rollouts.stats], 1))
    assert join([odd, plain]).stats is None


def test_a_rank_without_prompts_has_statistics_of_no_tokens(model, tokenizer):
    assert sampler(model, tokenizer, stats=True).generate(PROMPTS, 16, mine=[]).stats.shape == (5, 0)


def test_packing(model, tokenizer):
    rollouts = sampler(model, tokenizer).generate(PROMPTS, 16)
    assert len(rollouts) == 64
    assert len(rollouts.response_ids) == len(rollouts.logp) == rollouts.response_lengths.sum()
    assert rollouts.prompt_index.tolist() == [i for i in range(4) for _ in range(16)]
    assert rollouts.logp.dtype == torch.float32
    eos = tokenizer.eos_token_id
    for ids, finished in zip(rollouts.responses(), rollouts.finished.tolist(), strict=True):
        assert eos not in ids[:-1]
        assert (ids[-1] == eos) == finished
        assert finished or len(ids) == T
    assert 0 < rollouts.finished.sum() < 64


def test_same_generator_state_same_rollouts(model, tokenizer):
    rollout = sampler(model, tokenizer)
    rollout.generate(PROMPTS, 2)
    state = rollout.generator.get_state()
    first = rollout.generate(PROMPTS, 4)
    other = rollout.generate(PROMPTS, 4)
    rollout.generator.set_state(state)
    torch.manual_seed(99)  # the global generator plays no part
    again = rollout.generate(PROMPTS, 4)
    assert torch.equal(first.response_ids, again.response_ids)
    assert torch.equal(first.logp, again.logp)
    assert first.response_ids.tolist() != other.response_ids.tolist()


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_mixed_lengths_equal_one_prompt_at_a_time(model, tokenizer, temperature):
    together = sampler(model, tokenizer, temperature=temperature).generate(PROMPTS, 5)
    single = sampler(model, tokenizer, temperature=temperature)
    alone = [single.generate([prompt], 5) for prompt in PROMPTS]
    assert together.response_ids.tolist() == [x for part in alone for x in part.response_ids.tolist()]
    assert together.finished.tolist() == [x for part in alone for x in part.finished.tolist()]
    torch.testing.assert_close(together.logp, torch.cat([part.logp for part in alone]), atol=1e-5, rtol=0)


def test_greedy_takes_the_most_likely_token(model, tokenizer):
    rollouts = sampler(model, tokenizer, temperature=0).generate(PROMPTS, 2)
    responses = rollouts.responses()
    assert responses[0] == responses[1]
    for i, response in zip(rollouts.prompt_index.tolist(), responses, strict=True):
        prompt = rollouts.prompt_ids[i]
        logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
        assert logits.argmax(-1).tolist() == response
    torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts, 1.0), atol=1e-5, rtol=0)


def test_samples_follow_the_distribution(model, tokenizer):
    n = 20_000
    rollouts = sampler(model, tokenizer, max_new_tokens=1).generate(PROMPTS[:1], n)
    counts = torch.bincount(rollouts.response_ids, minlength=len(tokenizer))
    expected = n * model(torch.tensor([rollouts.prompt_ids[0]])).logits[0, -1].softmax(-1).detach()
    used = expected > 5
    chi2 = ((counts - expected) ** 2 / expected)[used].sum()
    assert chi2 < used.sum() + 5 * (2 * used.sum()) ** 0.5


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 4 * BLOCK + 1),
    sharpness=st.floats(0, 30),
    uniform=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
    seed=st.integers(0, 99),
)
def test_draws_invert_the_cumulative_distribution(size, sharpness, uniform, seed):
    """The token is the one whose stretch of the cumulative sum has the uniform number, but for its fp32 rounding."""
    weight = (sharpness * torch.randn(size, generator=torch.Generator().manual_seed(seed))).softmax(-1)
    weight[torch.rand(size, generator=torch.Generator().manual_seed(seed)) < 0.3] = 0.0
    weight[seed % size] = 0.5
    uniforms = torch.tensor(uniform, dtype=torch.float64)
    drawn = invert(weight.expand(len(uniforms), -1), uniforms)
    cdf = weight.double().cumsum(-1) / weight.double().sum()
    assert (weight[drawn] > 0).all()
    assert (cdf[drawn] >= uniforms - 1e-6).all()
    assert (cdf[drawn] - weight[drawn] / weight.double().sum() <= uniforms + 1e-6).all()


def test_rare_tokens_after_a_frequent_one_are_drawn():
    """A block of sum 1 in fp32 also has tokens of 1e-9, which a cumulative sum in fp32 would never reach."""
    weight = torch.full((BLOCK,), 1e-9)
    weight[0] = 1.0
    total = weight.double().sum()
    uniforms = (weight.double().cumsum(0) - 0.5e-9) / total
    assert torch.equal(invert(weight.expand(BLOCK, -1), uniforms)[1:], torch.arange(1, BLOCK))


def test_texts_drop_only_the_final_eos(model, tokenizer):
    rollouts = sampler(model, tokenizer).generate(PROMPTS, 16)
    pad = tokenizer.pad_token_id
    for ids, text, finished in zip(
        rollouts.responses(), rollouts.texts(tokenizer), rollouts.finished.tolist(), strict=True
    ):
        assert tokenizer(text)["input_ids"] == (ids[:-1] if finished else ids)
        assert ("<pad>" in text) == (pad in ids)


def test_results_can_enter_autograd(model, tokenizer):
    rollouts = sampler(model, tokenizer).generate(PROMPTS[:1], 2)
    ids = torch.tensor([rollouts.responses()[0]])
    loss = model(ids).logits.log_softmax(-1).gather(2, ids[..., None]).sum() * rollouts.logp[0]
    loss.backward()
    weights = torch.ones(1, requires_grad=True)
    (weights * rollouts.logp).sum().backward()
    torch.nn.functional.embedding(rollouts.response_ids, model.lm_head.weight).sum().backward()
    assert weights.grad.item() == pytest.approx(rollouts.logp.sum().item(), rel=1e-5)
    model.zero_grad()


def test_training_mode_is_given_back(model, tokenizer):
    for mode in (True, False):
        model.train(mode)
        sampler(model, tokenizer).generate(PROMPTS[:1], 1)
        assert model.training is mode


def test_every_declared_eos_ends_a_response(model, tokenizer):
    model.generation_config.eos_token_id = [1, 5]
    try:
        assert stop_ids(model, tokenizer) == [1, 5]
        rollouts = sampler(model, tokenizer).generate(PROMPTS, 16)
    finally:
        model.generation_config.eos_token_id = 1
    ends = {ids[-1] for ids, ended in zip(rollouts.responses(), rollouts.finished.tolist(), strict=True) if ended}
    assert ends == {1, 5}


def test_stop_tokens_end_a_response_as_eos_does(model, tokenizer):
    rollouts = sampler(model, tokenizer, stop_token_ids=(5,)).generate(PROMPTS, 16)
    ends = {ids[-1] for ids, ended in zip(rollouts.responses(), rollouts.finished.tolist(), strict=True) if ended}
    assert ends == {tokenizer.eos_token_id, 5}
    assert not any(5 in ids[:-1] for ids in rollouts.responses())


@pytest.mark.parametrize(
    ("settings", "prompts", "names"),
    [
        *(({"stop_token_ids": (5, id)}, PROMPTS, rf"^stop_token_ids {id} .*0 to \d+$") for id in (-1, 20_000)),
        ({"max_new_tokens": 0}, PROMPTS, "max_new_tokens"),
        ({"temperature": -1.0}, PROMPTS, "temperature"),
        ({}, [], "at least one prompt"),
        ({}, [[5], []], "no tokens"),
    ],
)
def test_a_refusal_names_what_is_wrong(model, tokenizer, settings, prompts, names):
    with pytest.raises(ValueError, match=names):
        sampler(model, tokenizer, **settings).generate(prompts, 1)


def test_a_prompt_is_answered_alike_by_whoever_answers_it(model, tokenizer):
    """Two ranks with two prompts each give the responses of one process with all four."""
    whole = sampler(model, tokenizer).generate(PROMPTS, 5)
    parts = [sampler(model, tokenizer).generate(PROMPTS, 5, mine) for mine in ([0, 3], [1, 2])]
    assert [part.prompt_index.unique().tolist() for part in parts] == [[0, 3], [1, 2]]
    told = {}
    for part in parts:
        for place, (i, response) in enumerate(zip(part.prompt_index.tolist(), part.responses(), strict=True)):
            told[i, place % 5] = response
    for place, (i, response) in enumerate(zip(whole.prompt_index.tolist(), whole.responses(), strict=True)):
        assert told[i, place % 5] == response


@pytest.mark.parametrize("together", [1, 7, 10, 1000])
def test_how_many_are_sampled_together_changes_nothing(model, tokenizer, together):
    whole = sampler(model, tokenizer).generate(PROMPTS, 5)
    parts = sampler(model, tokenizer, max_num_seqs=together).generate(PROMPTS, 5)
    assert parts.responses() == whole.responses()
    assert parts.prompt_index.tolist() == whole.prompt_index.tolist()
    assert parts.finished.tolist() == whole.finished.tolist()
    torch.testing.assert_close(parts.logp, whole.logp, rtol=1e-5, atol=1e-5)


def test_weights_that_are_not_finite_are_named(model, tokenizer):
    weight = model.model.layers[0].mlp.up_proj.weight
    before = weight.detach().clone()
    try:
        with torch.no_grad():
            weight[0, 0] = torch.nan
        with pytest.raises(RolloutError, match="NaN: its weights"):
            sampler(model, tokenizer).generate(PROMPTS, 4)
    finally:
        with torch.no_grad():
            weight.copy_(before)
