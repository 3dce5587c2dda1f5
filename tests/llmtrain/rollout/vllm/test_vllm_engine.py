"""Real vLLM on a CPU: log-probabilities, repeatable draws, weights that arrive, and a process left as it was."""

import copy
import os
import random
import signal
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("vllm", reason="make install")

import torch.distributed as dist
from transformers import AutoConfig
from vllm_answers import CONFIG, EOS, PROMPTS, TOKENIZER, Forgetful, ask, forced_logp, sharp_model

from llmtrain.policy.model import build_tiny, save
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.rollout_engine import Begun, Request, RolloutError, check_answer
from llmtrain.rollout.vllm.receiver import checksum
from llmtrain.rollout.vllm.sender import packed_bytes
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine, prompt_seeds
from llmtrain.rollout.vllm.vllm_start import options
from llmtrain.settings.config import RolloutConfig

pytestmark = pytest.mark.slow  # vLLM takes half a minute to start
STOP = 5


@pytest.fixture(scope="module")
def start():
    """The model that the engine starts from."""
    return sharp_model()


@pytest.fixture
def model(start):
    """A copy to change."""
    return copy.deepcopy(start)


def outside() -> dict:
    """What an engine in this process must leave as it was."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "python": random.getstate(),
        "threads": torch.get_num_threads(),
        "functions": (torch.set_num_threads, dist.destroy_process_group),
        "environment": dict(os.environ),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "affinity": os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None,
    }


@pytest.fixture(scope="module")
def engine(start, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "start"
    save(start, TOKENIZER, folder)
    before = outside()
    engine = VLLMEngine(folder, CONFIG, [EOS], sleep_level=2)
    assert outside() == before
    yield engine
    before = outside()
    engine.close()
    assert outside() == before
    assert not dist.is_initialized()


@pytest.fixture(autouse=True)
def settings(request):
    """Each test finds the engine as it was configured."""
    yield
    if "engine" in request.fixturenames:
        engine = request.getfixturevalue("engine")
        engine.config, engine.stop_token_ids, engine.rank = CONFIG, [EOS], 0


def update(engine, model):
    engine.update(model.named_parameters(), engine.version + 1)


def told(rollouts, prompts) -> dict:
    """Responses and log-probabilities by prompt."""
    logps = [part.tolist() for part in rollouts.logp.split(rollouts.response_lengths.tolist())]
    found: dict = {}
    for i, *answer in zip(rollouts.prompt_index.tolist(), rollouts.responses(), logps, strict=True):
        found.setdefault(prompts[i], []).append(answer)
    return found


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logp_is_the_policys_at_the_sampling_temperature(engine, model, temperature):
    update(engine, model)
    rollouts = ask(engine, temperature=temperature)
    torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts, temperature), atol=1e-4, rtol=0)
    assert not torch.allclose(rollouts.logp, forced_logp(model, rollouts, 1.3), atol=1e-2)


def test_an_answer_is_whole(engine):
    request = Request(TOKENIZER(PROMPTS)["input_ids"], CONFIG.sampling, [list(range(5))], 0)
    rollouts = engine.submit(request)()
    check_answer(rollouts, request, engine.version, rank=0)
    for ids, finished in zip(rollouts.responses(), rollouts.finished.tolist(), strict=True):
        assert EOS not in ids[:-1]
        assert (ids[-1] == EOS) == finished
        assert finished or len(ids) == CONFIG.max_new_tokens
    assert 0 < rollouts.finished.sum() < len(rollouts)
    assert rollouts.prompt_ids == TOKENIZER(PROMPTS)["input_ids"]


def test_a_request_repeats_bit_for_bit(engine):
    first, again, other = (ask(engine, seed=seed) for seed in (7, 7, 8))
    assert torch.equal(first.response_ids, again.response_ids)
    assert torch.equal(first.logp, again.logp)
    assert first.responses() != other.responses()
    samples = told(first, PROMPTS)[PROMPTS[0]]
    assert len({tuple(ids) for ids, _ in samples}) > 4  # the samples of a prompt are draws of their own


def test_a_prompt_is_answered_alike_in_any_order_by_whoever_answers_it(engine):
    whole = told(ask(engine), PROMPTS)
    assert told(ask(engine, PROMPTS[::-1]), PROMPTS[::-1]) == whole
    parts = {}
    for engine.rank in range(3):
        parts |= told(ask(engine, shares=[[0, 3], [1, 2, 4], []]), PROMPTS)
    assert parts == whole


def test_a_response_goes_on_where_it_was_interrupted(engine, model):
    """Greedily it is the uninterrupted one; drawn, its log-probabilities are the policy's after all tokens so far."""
    update(engine, model)
    prompts, limit = TOKENIZER(PROMPTS)["input_ids"], CONFIG.max_new_tokens
    for temperature, n in ((0.0, 1), (1.0, 8)):
        sampling = replace(CONFIG.sampling, temperature=temperature, samples=n)
        whole = Request(prompts, sampling, [[*range(5)]], 3)
        first = engine.submit(replace(whole, tokens=2))()
        check_answer(first, replace(whole, tokens=2), engine.version, rank=0)
        rows = (~first.finished).nonzero()[:, 0]
        begun = tuple(Begun(3, *divmod(row, n), 2) for row in rows.tolist())
        left = first.take(rows)
        after = [prompts[i] + ids for i, ids in zip(left.prompt_index.tolist(), left.responses(), strict=True)]
        rest = replace(whole, prompt_ids=prompts + after, begun=begun, shares=[[*range(5, 5 + len(after))]])
        found = engine.submit(rest)()
        check_answer(found, rest, engine.version, rank=0)
        assert len(found) == len(rows) > n // 2
        assert int(found.response_lengths.max()) == limit - 2
        logp = forced_logp(model, found, temperature or 1.0)
        torch.testing.assert_close(found.logp, logp, atol=1e-4, rtol=0)
        assert torch.equal(engine.submit(rest)().response_ids, found.response_ids)
        if not temperature:
            expected = engine.submit(whole)()
            assert first.continued(rows, found).responses() == expected.responses()


def test_equal_prompts_get_draws_of_their_own():
    seeds = prompt_seeds(0, [[1, 2], [3], [1, 2]])
    assert len({*seeds, *prompt_seeds(1, [[1, 2], [3]])}) == 5
    assert prompt_seeds(0, [[3], [1, 2]]) == [seeds[1], seeds[0]]


def test_first_tokens_follow_the_distribution(engine, model):
    update(engine, model)
    n = 4096
    rollouts = ask(engine, PROMPTS[:1], n, max_new_tokens=1)
    counts = torch.bincount(rollouts.response_ids, minlength=len(TOKENIZER))
    with torch.no_grad():
        expected = n * model(torch.tensor([rollouts.prompt_ids[0]])).logits[0, -1].softmax(-1)
    used = expected > 5
    chi2 = ((counts - expected) ** 2 / expected)[used].sum()
    assert chi2 < used.sum() + 5 * (2 * used.sum()) ** 0.5


def test_stop_tokens_end_a_response_as_with_hf(engine, model):
    config = replace(CONFIG, stop_token_ids=(STOP,))
    engine.stop_token_ids = [EOS, STOP]
    for rollouts in ask(engine, n=16), ask(HFEngine(model, TOKENIZER, config), n=16):
        ends = {ids[-1] for ids, ended in zip(rollouts.responses(), rollouts.finished.tolist(), strict=True) if ended}
        assert ends == {EOS, STOP}
        assert not any({EOS, STOP} & set(ids[:-1]) for ids in rollouts.responses())


@pytest.mark.parametrize("part", ["all", "model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight"])
def test_after_an_update_it_samples_with_the_new_weights(engine, model, part):
    """The embedding is the output head, too, of which vLLM holds a copy; long prompts are kept in its prefix cache."""
    ask(engine)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if part in ("all", name):
                parameter.mul_(1.3)
    update(engine, model)
    rollouts = ask(engine)
    torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts), atol=1e-4, rtol=0)
    assert set(rollouts.version.tolist()) == {engine.version}


def test_an_update_does_not_hold_the_policys_tensors(engine, model):
    update(engine, model)
    before = ask(engine)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(ask(engine).logp, before.logp)


def test_an_engine_that_reports_another_version_is_refused(engine, model):
    update(engine, model)
    version = engine.version
    engine.llm.update_weight_version("41")
    with pytest.raises(RolloutError, match=rf"answered with weights 41; it was sent {version}"):
        ask(engine)
    with pytest.raises(RolloutError, match=rf"reports weights 41; it was sent {version + 1}"):
        engine.accept(version + 1, engine.source.sent)
    assert engine.version == version
    update(engine, model)
    assert engine.llm.get_weight_version() == str(engine.version)


def test_weights_that_arrive_changed_are_refused(engine, model):
    update(engine, model)
    sent = dict(engine.source.sent)
    sent["model.norm.weight"] ^= 1
    with pytest.raises(RolloutError, match=r"1 of \d+ tensors .*worker 0 .*model\.norm"):
        engine.accept(engine.version, sent)


def test_weights_that_do_not_arrive_are_refused(engine, model):
    engine.sender.client = Forgetful(engine.client)
    try:
        with pytest.raises(RolloutError, match=r"model.norm.weight first"):
            update(engine, model)
    finally:
        engine.sender.client = engine.client
    update(engine, model)


def test_a_head_that_stays_behind_is_refused(engine, model, monkeypatch):
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(1 + 1e-4)
    monkeypatch.setattr("llmtrain.rollout.vllm.receiver.repack_head", lambda model: None)
    with pytest.raises(RolloutError, match="output head"):
        update(engine, model)
    monkeypatch.undo()
    update(engine, model)


def test_checksums_tell_value_place_name_type_and_shape():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    flipped = x.clone()
    flipped.view(torch.int32)[3, 2] ^= 1
    others = [flipped, x.flip(0), x.T, x.reshape(4, 6), x.double(), x.bfloat16(), x[:5]]
    sums = [checksum("w", x), checksum("v", x), *(checksum("w", other) for other in others)]
    assert len(set(sums)) == len(sums)
    assert checksum("w", x.clone()) == sums[0]
    columns = (x[:, 1], x[:, 1:2], x[0, :1].expand(6))
    assert [checksum("w", column) for column in columns] == [checksum("w", column.contiguous()) for column in columns]


def test_a_checksum_by_hand():
    """Words of 8 bytes times 1, 3, 5, ...; the last of 2 · 5 bytes has 6 bytes of zeros, wherever the tensor begins."""
    name = zlib.crc32(b"w torch.int64 (2,)")
    assert checksum("w", torch.tensor([5, -7])) == (name + 5 - 7 * 3) % 2**64
    x = torch.arange(6, dtype=torch.int16)
    assert checksum("w", x[1:]) == zlib.crc32(b"w torch.int16 (5,)") + 1 + (2 << 16) + (3 << 32) + (4 << 48) + 5 * 3
    long = torch.arange(300_000)
    total = zlib.crc32(b"w torch.int64 (300000,)") + sum(i * (2 * i + 1) for i in range(300_000))
    assert checksum("w", long) == total % 2**64


def test_random_states_threads_and_environment_stay(engine, model):
    torch.set_num_threads(2)
    try:
        before = outside()
        ask(engine)
        update(engine, model)
        assert outside() == before
    finally:
        torch.set_num_threads(1)


def test_what_vllm_refuses_is_named(engine):
    for prompts, error, names in (
        (["1" * 200], RolloutError, r"200 tokens .* 12 .*rollout\.max_model_len 128"),
        (["1=", ""], ValueError, "no tokens"),
    ):
        with pytest.raises(error, match=names):
            ask(engine, prompts)
    engine.stop_token_ids = [10_000]
    with pytest.raises(RolloutError, match=r"vllm .*10000"):
        ask(engine)


def test_a_model_with_narrow_heads_is_told_before_vllm_starts(tmp_path):
    save(build_tiny(len(TOKENIZER), hidden=64, layers=1, heads=4, intermediate=16), TOKENIZER, tmp_path)
    with pytest.raises(ValueError, match=r"heads of size 32 .* size 16: .*--model\.num-heads 2"):
        VLLMEngine(tmp_path, CONFIG, [EOS])


def test_release_is_a_no_op_on_a_cpu(engine):
    version = engine.version
    engine.release()
    assert (engine.asleep, engine.version) == (False, version)
    assert len(ask(engine)) == 40


QWEN = {"model_type": "qwen2", "vocab_size": 151_936, "hidden_size": 2048, "num_hidden_layers": 1}
GPT_OSS = {"model_type": "gpt_oss", "vocab_size": 201_088, "hidden_size": 2880, "num_hidden_layers": 1}


@pytest.mark.parametrize(
    ("sizes", "shape", "dtype"),
    [
        (QWEN, (151_936, 2048), torch.float32),  # Qwen2.5-3B
        pytest.param(QWEN | {"hidden_size": 5120}, (151_936, 5120), torch.bfloat16, marks=pytest.mark.slow),
        pytest.param(GPT_OSS, (32, 2880, 5760), torch.float32, marks=pytest.mark.slow),  # experts in one weight
    ],
)
def test_the_largest_weight_of_a_model_fits_into_the_buffer_of_ipc(sizes, shape, dtype, monkeypatch):
    """vLLM's own packing, of a weight without storage."""
    from vllm.distributed.weight_transfer import packed_tensor

    config = AutoConfig.for_model(**sizes)
    empty, size = torch.empty, packed_bytes(config, dtype)
    monkeypatch.setattr(packed_tensor, "reduce_tensor", lambda tensor: (None, ()))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=lambda: None))
    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", lambda *args, **kwargs: empty(*args, **(kwargs | {"device": "meta"})))
        weights = iter([("a.weight", torch.empty(shape, dtype=dtype))])
        assert len(list(packed_tensor.packed_ipc_producer(weights, "gpu", lambda item: item[1], size))) == 1


@pytest.mark.slow
def test_several_workers_are_vllms_own_processes():
    """In an actor vLLM would ask Ray for them, which has not been told."""
    both = [options(RolloutConfig(tensor_parallel_size=n), "cuda", 1024) for n in (1, 2)]
    assert [found.get("distributed_executor_backend") for found in both] == [None, "mp"]


def test_precision_is_the_devices_unless_chosen():
    assert options(RolloutConfig(), "cpu", 1024)["dtype"] == torch.float32
    assert options(RolloutConfig(), "cuda", 1024)["dtype"] == torch.bfloat16
    assert options(RolloutConfig(dtype="bfloat16"), "cpu", 1024)["dtype"] == torch.bfloat16
    assert options(RolloutConfig(dtype="float32"), "cuda", 1024)["dtype"] == torch.float32
