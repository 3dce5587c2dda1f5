"""Responses that share a prompt's keys and values are decoded as they would be alone, captured or not."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, Qwen2Config

from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout import decoding, hf
from llmtrain.rollout.hf import HFRollout, ways
from llmtrain.rollout.shared_cache import LINE, Grid, SharedCache

TOKENIZER = build_char_tokenizer("0123456789+-*/()=: ")
PROMPTS = TOKENIZER(["1=", "12 13=22+12+12+13:", "3 5 7=22:", "9"])["input_ids"]
SIZES = {"vocab_size": len(TOKENIZER), "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "eos_token_id": 1, "pad_token_id": 0}
CONFIGS = {
    "grouped heads": LlamaConfig(**SIZES),
    "single heads": LlamaConfig(**SIZES | {"num_key_value_heads": 4}),
    "one head of keys": LlamaConfig(**SIZES | {"num_key_value_heads": 1}),
    "a window in two of three layers": Qwen2Config(
        **SIZES, use_sliding_window=True, sliding_window=5, max_window_layers=1
    ),
    "capped scores and windows": Gemma2Config(
        **SIZES, sliding_window=7, attn_logit_softcapping=1.5, query_pre_attn_scalar=4
    ),
}
T = 2 * LINE + 5
"""Tokens of a response: the room grows twice."""


def model_of(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight.mul_(6)
    return model


def sampler(model, way, **changes):
    given = {"max_new_tokens": T, "generator": torch.Generator().manual_seed(1), "way": way} | changes
    return HFRollout(model, TOKENIZER, **given)


def own_logp(model, rollouts):
    """Log-probabilities (N) by a plain pass over each sequence with the family's own, eager attention."""
    model.set_attn_implementation("eager")
    parts = []
    for i, response in zip(rollouts.prompt_index.tolist(), rollouts.responses(), strict=True):
        prompt = rollouts.prompt_ids[i]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + response]), use_cache=False).logits[0, len(prompt) - 1 : -1]
        parts.append(logits.log_softmax(-1).gather(1, torch.tensor(response)[:, None])[:, 0])
    return torch.cat(parts)


def trace(step):
    """Make a step as a graph of tensor operations without Python; what repeats it is this graph."""
    return make_fx(lambda: (step(), torch.zeros(1))[1])()


@pytest.fixture
def traced(monkeypatch):
    """Capture steps by tracing them on a CPU: a replay that asked the host anything would repeat the old answer."""
    made = []

    def capture(step):
        made.append(trace(step))
        return made[-1]

    monkeypatch.setattr(hf, "capture_cuda", capture)
    monkeypatch.setattr(hf, "without_gradients", lambda model: torch.no_grad())  # tracing is no inference mode
    return made


@pytest.mark.parametrize("name", CONFIGS)
def test_log_probabilities_are_the_models_own(name):
    model = model_of(CONFIGS[name])
    assert ways(model)[0] == "repeated"  # until its attention is by_sequence
    found = sampler(model, None).generate(PROMPTS, 6)
    assert ways(model)[0] == "shared"
    assert len(set(found.response_lengths.tolist())) > 5
    assert found.response_lengths.max() > 2 * LINE  # the room grew twice
    torch.testing.assert_close(found.logp, own_logp(model, found), rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_shared_and_repeated_draw_the_same_tokens(name):
    model = model_of(CONFIGS[name])
    shared, repeated = (sampler(model, way, stats=True).generate(PROMPTS, 6) for way in ("shared", "repeated"))
    assert torch.equal(shared.response_ids, repeated.response_ids)
    torch.testing.assert_close(shared.stats, repeated.stats, rtol=0, atol=5e-5)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "single heads")) for name in CONFIGS]
)
def test_captured_steps_draw_the_same_tokens(name, traced, monkeypatch):
    monkeypatch.setattr("llmtrain.rollout.shared_cache.ROOM", LINE)
    model = model_of(CONFIGS[name])
    whole = sampler(model, "shared").generate(PROMPTS, 8)
    captured = sampler(model, "captured").generate(PROMPTS, 8)
    assert torch.equal(captured.response_ids, whole.response_ids)
    assert torch.equal(captured.finished, whole.finished)
    torch.testing.assert_close(captured.logp, whole.logp, rtol=0, atol=2e-5)
    assert 3 <= len(traced) <= 7  # the first, two of more room, and one for each time that half of the rows left


def test_responses_with_limits_and_counts_of_their_own():
    """As partial rollouts ask for them: some prompts have one response that goes on, others several new ones."""
    model = model_of(CONFIGS["grouped heads"])
    shapes = [(4, 12), (1, 3), (2, 7), (6, 1)]
    uniforms = [torch.rand(shape, dtype=torch.float64) for shape in shapes]
    whole = sampler(model, "shared", max_new_tokens=12).generate(PROMPTS, 6, uniforms=uniforms)
    for i, prompt in enumerate(PROMPTS):
        alone = sampler(model, "repeated", max_new_tokens=12).generate([prompt], 6, uniforms=[uniforms[i]])
        mine = (whole.prompt_index == i).nonzero()[:, 0]
        assert [whole.responses()[j] for j in mine.tolist()] == alone.responses()
    torch.testing.assert_close(whole.logp, own_logp(model, whole), rtol=0, atol=2e-5)


@pytest.mark.parametrize("owner", [[0, 0, 1, 1], [0, 1, 1, 1, 2], [0], [0, 0, 0, 1]])
def test_a_grid_gives_back_what_it_was_given(owner):
    grid = Grid.of(torch.tensor(owner), torch.device("cpu"))
    rows = torch.randn(len(owner), 2, 3, 5)
    spread = grid.spread(rows)
    assert spread.shape == (max(owner) + 1, 2, grid.width * 3, 5)
    assert torch.equal(grid.collect(spread), rows)
    for row, prompt in zip(rows, owner, strict=True):  # beside the others of its prompt
        places = spread[prompt].unflatten(1, (-1, 3))
        assert any(torch.equal(places[:, i], row) for i in range(grid.width))


class Waits(TorchDispatchMode):
    """Counts operations, and those for which the host waits for the device."""

    ASKING = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "unique", "masked_select", "item")

    def __init__(self):
        super().__init__()
        self.all = self.asking = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.all += 1
        self.asking += any(name == x or name.startswith(f"{x}_") for x in self.ASKING)
        return func(*args, **kwargs or {})


def test_a_step_asks_the_device_for_nothing_and_has_few_operations(monkeypatch):
    counted = []

    def capture(step):
        with Waits() as waits:
            step()
        counted.append(waits)
        return step

    monkeypatch.setattr(hf, "capture_cuda", capture)
    model = model_of(CONFIGS["grouped heads"])
    sampler(model, "captured").generate(PROMPTS, 8)
    assert all(one.asking == 0 for one in counted)
    print(f"{counted[0].all} operations for a token of three layers")
    assert counted[0].all <= 400


def test_an_attention_that_changes_keys_is_an_error(monkeypatch):
    model = model_of(CONFIGS["grouped heads"])
    update = SharedCache.update
    monkeypatch.setattr(
        SharedCache, "update", lambda *args, **options: tuple(x.clone() for x in update(*args, **options))
    )
    with pytest.raises(RuntimeError, match="its attention changes keys before it uses them"):
        sampler(model, "shared").generate(PROMPTS, 2)


@pytest.mark.slow
def test_rows_leave_by_halves_where_the_device_is_waited_for(traced, monkeypatch):
    """On a device that is asked only now and then, finished rows stay, and nobody sees what they draw."""
    model, looks = model_of(CONFIGS["single heads"]), []
    keep = decoding.Decoding._keep
    monkeypatch.setattr(decoding.Decoding, "_keep", lambda self, count: (looks.append(count), keep(self, count))[1])
    found = sampler(model, "captured").generate(PROMPTS, 16)
    assert looks
    assert all(64 % count == 0 for count in looks)
    assert torch.equal(found.response_ids, sampler(model, "repeated").generate(PROMPTS, 16).response_ids)
