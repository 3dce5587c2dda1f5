"""Supervised warm-up: what it learns from, that it repeats, and that cuts, layouts and ranks do not change it."""

import math
from dataclasses import replace

import pytest
import sft_ranks
import torch
from safetensors.torch import load_file
from sft_ranks import configuration, warmed
from tests.ranks import group, run_ranks

from llmtrain.data.prompts import encode_all
from llmtrain.policy.engine import TorchEngine
from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.policy import Policy
from llmtrain.policy.rates import rate_of
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout
from llmtrain.settings.config import ModelConfig
from llmtrain.training import warmup
from llmtrain.training.supervised import encode, optim, update, warm_up
from llmtrain.training.warmup import build_and_warm_up
from llmtrain.verifiers.countdown import ALPHABET

EXAMPLES = [("1=", "22"), ("2=", "3"), ("3=", "111"), ("11=", "2")]
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}={% endif %}"


@pytest.fixture
def tokenizer():
    return build_char_tokenizer("123=")


def tiny(tokenizer):
    return build_tiny(len(tokenizer), hidden=32, layers=1, heads=2, kv_heads=2, intermediate=32)


def warm(model, tokenizer, examples=EXAMPLES, *, steps, lr=3e-3, layout="packed", **settings):
    policy = Policy(model, layout=layout)
    engine = TorchEngine(model, optim(lr, steps), steps)
    return warm_up(policy, engine, encode(tokenizer, examples), steps=steps, **settings)


def on_torch(policy, *settings):
    return TorchEngine(policy.model, *settings)


def close(a, b) -> bool:
    """Weights after steps of some 3e-3. AdamW makes much of the rounding of gradients that are almost 0."""
    difference = (a - b).abs()
    return bool(difference.mean() < 1e-6 and difference.max() < 3e-4)


def greedy(model, tokenizer, prompts):
    rollout = HFRollout(model, tokenizer, max_new_tokens=6, temperature=0, generator=torch.Generator())
    return rollout.generate(encode_all(tokenizer, prompts), 1).texts(tokenizer)


def test_learns_responses_and_when_to_stop(tokenizer):
    model, seen = tiny(tokenizer), []
    told = {"progress": lambda step, loss: seen.append((step, loss))}
    losses = warm(model, tokenizer, steps=150, batch_size=4, lr=1e-2, **told)
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
    losses = warm(model, tokenizer, steps=1, batch_size=4)
    assert losses[0] == pytest.approx(sum(expected) / len(expected), abs=1e-5)
    assert not model.training


def test_one_step_is_that_of_cross_entropy(tokenizer):
    """AdamW on the mean cross-entropy, clipped, at the first rate of the schedule."""
    model, plain = tiny(tokenizer), tiny(tokenizer)
    warm(model, tokenizer, steps=40, batch_size=4, progress=stop_after_one(model, stopped := {}))
    rows = [(torch.tensor([tokenizer(p + r)["input_ids"] + [tokenizer.eos_token_id]]), len(p)) for p, r in EXAMPLES]
    logits = torch.cat([plain(ids).logits[0, n - 1 : -1] for ids, n in rows])
    torch.nn.functional.cross_entropy(logits, torch.cat([ids[0, n:] for ids, n in rows])).backward()
    torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
    torch.optim.AdamW(plain.parameters(), lr=3e-3 / 2, betas=(0.9, 0.95), weight_decay=0.01).step()
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(stopped[name], parameter.detach(), atol=2e-5, rtol=0)


def gem(logits, labels, beta):
    """GEM of some tokens (n, V), as its authors' code has it with a linear h, token by token and word by word."""
    found = []
    for z, y in zip(logits, labels.tolist(), strict=True):
        p, q = z.log_softmax(-1), (z / beta).softmax(-1).detach()
        found.append(-sum(q[a] * (p[y] - p[a]) for a in range(len(z))))
    return sum(found) / len(found)


def test_gem_by_hand():
    """Two words whose logits differ by log 2, β = .5: q = (.8, .2), so the gradient is ±.2; the loss is −.2·log 2."""
    z = torch.tensor([[math.log(2.0), 0.0]], dtype=torch.float64, requires_grad=True)
    loss = gem(z, torch.tensor([0]), 0.5)
    loss.backward()
    assert loss.item() == pytest.approx(-0.2 * math.log(2))
    assert z.grad[0].tolist() == pytest.approx([-0.2, 0.2])


@pytest.mark.parametrize("beta", [0.4, 0.7, 1.0])
def test_a_gradient_at_a_temperature_is_that_of_gem(tokenizer, beta):
    """Gradients of every weight are compared, through all layers."""
    plain, model = tiny(tokenizer), tiny(tokenizer)
    rows = [(torch.tensor([tokenizer(p + r)["input_ids"] + [tokenizer.eos_token_id]]), len(p)) for p, r in EXAMPLES]
    logits = torch.cat([plain(ids).logits[0, n - 1 : -1] for ids, n in rows])
    gem(logits, torch.cat([ids[0, n:] for ids, n in rows]), beta).backward()
    kept = {}

    class Keeping(TorchEngine):
        def step(self):
            kept.update({name: weight.grad.clone() for name, weight in self.model.named_parameters()})
            return super().step()

    policy = Policy(model, beta, layout="packed")
    update(policy, Keeping(model, optim(1e-3, 1), 1), encode(tokenizer, EXAMPLES), 64)
    for name, weight in plain.named_parameters():
        torch.testing.assert_close(kept[name], weight.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.slow
def test_gem_leaves_more_entropy(tokenizer):
    """A prompt has two answers in the ratio 3 to 1; the policy at temperature 1 is flatter than these data."""
    examples = [("1=", "2"), ("1=", "2"), ("1=", "2"), ("1=", "3")]
    shares = {}
    for beta in (1.0, 0.5):
        model = tiny(tokenizer)
        policy = Policy(model, beta, layout="packed")
        engine = TorchEngine(model, optim(1e-2, 200), 200)
        warm_up(policy, engine, encode(tokenizer, examples), steps=200, batch_size=4)
        likely = model(torch.tensor([tokenizer("1=")["input_ids"]])).logits[0, -1].softmax(-1)
        shares[beta] = [likely[tokenizer(digit)["input_ids"][0]].item() for digit in "23"]
    assert shares[1.0] == pytest.approx([0.75, 0.25], abs=0.01)
    ratio = 3**0.5  # p is proportional to q^β
    assert shares[0.5][0] / shares[0.5][1] == pytest.approx(ratio, abs=0.1)


def stop_after_one(model, into):
    def seen(step, loss):
        if step == 0:
            into.update({name: p.detach().clone() for name, p in model.named_parameters()})

    return seen


def test_rate_by_hand():
    rate = rate_of(optim(1.0, 100), 100)
    assert [rate(i) for i in (0, 3, 4)] == pytest.approx([0.2, 0.8, 1.0])
    assert rate(5) == 1
    assert rate(5 + 95 // 2) == pytest.approx(0.55, abs=0.01)
    assert 0.1 < rate(99) < 0.101
    assert rate_of(optim(1.0, 1), 1)(0) == 1


def test_repeats_from_the_seed(tokenizer):
    def weights(seed):
        model = tiny(tokenizer)
        warm(model, tokenizer, steps=5, batch_size=3, seed=seed)
        return model.lm_head.weight

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


@pytest.mark.parametrize(("layout", "budget"), [("packed", 1), ("packed", 15), ("padded", 30), ("shared", 8192)])
def test_cuts_and_layouts_do_not_change_it(layout, budget):
    whole = warmed(on_torch)
    other = warmed(on_torch, budget, layout)
    torch.testing.assert_close(other["losses"], whole["losses"], rtol=1e-5, atol=1e-6)
    assert close(other["weights"], whole["weights"])


def test_prompts_may_be_chat_messages(tokenizer):
    tokenizer.chat_template = TEMPLATE
    chat = [(({"role": "user", "content": prompt.removesuffix("=")},), response) for prompt, response in EXAMPLES]
    plain, put = encode(tokenizer, EXAMPLES), encode(tokenizer, chat)
    assert put.ids.tolist() == plain.ids.tolist()
    assert put.prompt_lengths.tolist() == [2, 2, 2, 3]
    assert put.response_lengths.tolist() == [3, 2, 4, 2]


@pytest.mark.parametrize(("examples", "steps", "batch"), [(0, 1, 1), (4, 0, 1), (4, 1, 0)])
def test_bad_settings(tokenizer, examples, steps, batch):
    model, some = tiny(tokenizer), encode(tokenizer, EXAMPLES).select(torch.arange(examples))
    with pytest.raises(ValueError, match="warm-up needs"):
        warm_up(Policy(model), TorchEngine(model, optim(1.0, 1), 1), some, steps=steps, batch_size=batch)


def test_a_loss_that_is_not_finite_ends_in_a_line(tokenizer):
    model = tiny(tokenizer)
    policy, some = Policy(model), encode(tokenizer, EXAMPLES)
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"step 0: loss is nan; .*sft\.lr"):
        warm_up(policy, TorchEngine(model, optim(1.0, 1), 1), some, steps=2, batch_size=4)
    with pytest.raises(ValueError, match="states that are not finite"):
        Policy(model)


def test_a_model_that_lies_there_is_warmed_up_further_and_replaced(tmp_path):
    config, path = configuration(str(tmp_path / "model")), tmp_path / "model"
    first = build_and_warm_up(config, path)
    again = replace(config, model=ModelConfig(path=str(path)))
    assert build_and_warm_up(again, path, together=True)[0] < first[0]


def test_of_two_processes_that_build_a_model_the_first_puts_it_there(tmp_path, monkeypatch):
    config, path = configuration(str(tmp_path / "run")), tmp_path / "model"
    parts = set()

    def late(model, tokenizer, part, engine):
        """Save the model late: another process begins and is done meanwhile."""
        parts.add(part)
        if len(parts) == 1:
            build_and_warm_up(config, path)
            (path / "read").touch()
        save(model, tokenizer, part, engine)

    monkeypatch.setattr(warmup, "save", late)
    build_and_warm_up(config, path)
    assert len(parts) == 2
    assert (path / "read").exists()
    assert [found.name for found in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("path", [None, "folder"])
def test_examples_that_a_model_is_too_short_for(path, tmp_path):
    """Told before there is a model."""
    config = configuration(str(tmp_path / "model"))
    if path:
        (tmp_path / path).mkdir()
        (tmp_path / path / "config.json").write_text('{"max_position_embeddings": 9}')
        build_char_tokenizer(ALPHABET).save_pretrained(tmp_path / path)
        names = f"9 .*model.path {tmp_path / path}"
        config = replace(config, model=ModelConfig(path=str(tmp_path / path)))
    else:
        names = "model.max_position_embeddings 9 "
        config = replace(config, model=replace(config.model, max_position_embeddings=9))
    with pytest.raises(ValueError, match=rf"\d\d tokens .*{names}"):
        build_and_warm_up(config, tmp_path / "model")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """The folder of what two gloo ranks made."""
    pytest.importorskip("deepspeed")
    out = tmp_path_factory.mktemp("sft")
    run_ranks(group(2), sft_ranks.main, out)
    return out


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", ["zero0", "zero1", "zero2", "zero3"])
def test_two_ranks_do_what_one_does(ranks, stage):
    """One holds three examples of each batch, the other two, in micro-batches of 20 tokens."""
    alone, found = warmed(on_torch), torch.load(ranks / "found.pt", weights_only=True)[stage]
    torch.testing.assert_close(found["losses"], alone["losses"], rtol=1e-5, atol=1e-6)
    assert close(found["weights"], alone["weights"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_ranks_write_one_model(ranks, tmp_path):
    build_and_warm_up(configuration(str(tmp_path / "model")), tmp_path / "model")
    found, alone = (load_file(folder / "model" / "model.safetensors") for folder in (ranks, tmp_path))
    assert found.keys() == alone.keys()
    for name, weight in alone.items():
        assert close(found[name], weight), name
    assert not list(ranks.glob("model.*"))


def test_a_solution_that_the_tokenizer_does_not_know_is_named():
    with pytest.raises(ValueError, match=r"^solution '2\+x': .*WordLevel.* model\.path$"):
        encode(build_char_tokenizer("12+="), [("1=", "1"), ("2=", "2+x")])
