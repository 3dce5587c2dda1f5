"""Real vLLM on a CPU that is sent LoRA adapters: it answers as one that is sent merged weights, and as safely."""

from dataclasses import replace
from typing import get_args

import pytest
import torch

pytest.importorskip("vllm", reason="make install")
pytest.importorskip("peft")

from vllm.config.lora import MaxLoRARanks
from vllm_answers import CONFIG, EOS, TOKENIZER, Forgetful, ask, forced_logp, sharp_model

from llmtrain.policy.lora import ADAPTER, adapter_weights, attach, layers, whole_weights
from llmtrain.policy.model import save
from llmtrain.rollout.rollout_engine import RolloutError
from llmtrain.rollout.vllm.sender import make_sender
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine
from llmtrain.rollout.vllm.vllm_start import LORA_RANKS
from llmtrain.settings.config import ModelConfig

pytestmark = pytest.mark.slow

LORA = ModelConfig(lora_rank=3, lora_alpha=7.5)
"""vLLM pads the rank to 8."""
VERSIONS = range(1, 5)


def adapted(version: int):
    """The model with an update that is 0 in version 0, and another in each version."""
    model = sharp_model()
    attach(model, LORA, seed=0)
    generator = torch.Generator().manual_seed(version)
    for _, layer in layers(model):
        if version:
            for factors in (layer.lora_A, layer.lora_B):
                torch.nn.init.normal_(factors[ADAPTER].weight, std=0.15, generator=generator)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model without an update."""
    path = tmp_path_factory.mktemp("models") / "base"
    save(sharp_model(), TOKENIZER, path)
    return path


@pytest.fixture(scope="module")
def merged(folder):
    """Answers of each version from an engine that is sent whole weights."""
    engine, found = VLLMEngine(folder, CONFIG, [EOS]), {0: None}
    found[0] = ask(engine)
    for version in VERSIONS:
        engine.update(whole_weights(adapted(version)), version)
        found[version] = ask(engine)
    engine.close()
    return found


@pytest.fixture(scope="module")
def engine(folder, merged):
    engine = VLLMEngine(folder, CONFIG, [EOS], lora_rank=LORA.lora_rank)
    yield engine
    engine.close()


def update(engine, model):
    engine.update(adapter_weights(model), engine.version + 1)


def test_each_version_answers_as_the_policy_and_as_merged_weights(engine, merged):
    """The same tokens from the same seeds; a prompt fills a cache block, which must not outlive its version."""
    assert engine.version == 0
    for version in [0, *VERSIONS]:
        model = adapted(version)
        if version:
            update(engine, model)
        rollouts = ask(engine)
        assert set(rollouts.version.tolist()) == {engine.version} == {version}
        assert engine.llm.get_weight_version() == str(version)
        torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts), atol=1e-4, rtol=0)
        assert rollouts.responses() == merged[version].responses()
        torch.testing.assert_close(rollouts.logp, merged[version].logp, atol=1e-4, rtol=0)
        other = adapted(version + 1)
        assert not torch.allclose(rollouts.logp, forced_logp(other, rollouts), atol=1e-1)


def test_a_request_repeats_bit_for_bit(engine):
    update(engine, adapted(1))
    first, again, other = (ask(engine, seed=seed) for seed in (7, 7, 8))
    assert torch.equal(first.response_ids, again.response_ids)
    assert torch.equal(first.logp, again.logp)
    assert first.responses() != other.responses()


def test_sent_are_the_factors_alone(engine):
    model = adapted(1)
    update(engine, model)
    assert engine.source.sent.keys() == {name for name, _ in adapter_weights(model)}
    assert all(name.endswith((".lora_A.weight", ".lora_B.weight")) for name in engine.source.sent)


def test_an_update_does_not_hold_the_policys_tensors(engine):
    model = adapted(2)
    update(engine, model)
    before = ask(engine)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(ask(engine).logp, before.logp)


def test_a_file_does_as_well(engine):
    """As with an engine in processes of its own."""
    sender = engine.sender
    engine.sender = make_sender("file", engine.client, engine.source)
    try:
        update(engine, adapted(3))
        rollouts = ask(engine)
    finally:
        engine.sender = sender
    torch.testing.assert_close(rollouts.logp, forced_logp(adapted(3), rollouts), atol=1e-4, rtol=0)


def test_factors_that_arrive_changed_or_not_at_all_are_refused(engine):
    update(engine, adapted(1))
    sent = dict(engine.source.sent)
    name = next(iter(sent))
    sent[name] ^= 1
    with pytest.raises(RolloutError, match=rf"1 of 28 tensors .*worker 0 .*{name}"):
        engine.accept(engine.version, sent)
    engine.sender.client = Forgetful(engine.client)
    try:
        with pytest.raises(RolloutError, match=r"1 of 28 tensors .*layers.1.mlp.down_proj.lora_B.weight first"):
            update(engine, adapted(2))
    finally:
        engine.sender.client = engine.client
    update(engine, adapted(2))
    rollouts = ask(engine)
    torch.testing.assert_close(rollouts.logp, forced_logp(adapted(2), rollouts), atol=1e-4, rtol=0)


def test_an_engine_that_reports_another_version_is_refused(engine):
    update(engine, adapted(1))
    engine.llm.update_weight_version("41")
    with pytest.raises(RolloutError, match=rf"answered with weights 41; it was sent {engine.version}"):
        ask(engine)
    update(engine, adapted(2))


def test_a_layer_that_vllm_does_not_adapt_is_refused(engine):
    factors = {"lora_A": torch.ones(3, 64), "lora_B": torch.ones(64, 3)}
    name = "model.layers.0.nowhere"
    strange = [(f"base_model.model.{name}.{key}.weight", value) for key, value in factors.items()]
    with pytest.raises(RolloutError, match=rf"{name}: .*--rollout\.lora-sync merged"):
        engine.update([*adapter_weights(adapted(1)), *strange], engine.version + 1)
    update(engine, adapted(1))


def test_an_adapter_that_is_gone_is_not_replaced_by_the_model(folder, merged):
    engine = VLLMEngine(folder, replace(CONFIG, max_new_tokens=4), [EOS], lora_rank=3)
    update(engine, adapted(1))
    engine.llm.llm_engine.remove_lora(1)
    with pytest.raises(RolloutError, match=r"rollout engine vllm could not answer: .*policy"):
        ask(engine)
    engine.close()


def test_ranks_are_those_that_vllm_has_room_for():
    assert get_args(MaxLoRARanks) == LORA_RANKS
