"""Weights by handles of GPU memory, in several pieces: all of the way but the GPU."""

import os
from dataclasses import replace

import cloudpickle
import pytest
import torch

pytest.importorskip("vllm", reason="make install")

import without_gpus
from vllm_answers import CONFIG, EOS, TOKENIZER, ask, forced_logp, sharp_model
from without_gpus import install_ipc, install_mapped_ipc, map_ipc

from llmtrain.policy.model import save
from llmtrain.rollout.rollout_engine import RolloutError
from llmtrain.rollout.vllm.sender import make_sender
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine

pytestmark = pytest.mark.slow


@pytest.fixture
def engine(tmp_path, monkeypatch):
    save(sharp_model(), TOKENIZER, tmp_path)
    engine = VLLMEngine(tmp_path, CONFIG, [EOS], transport="ipc")
    engine.given = install_ipc(monkeypatch.setattr)
    largest = max(p.numel() for p in sharp_model().parameters())
    engine.sender = make_sender("ipc", engine.client, engine.source, buffer=4 * largest)
    yield engine
    engine.close()


def test_weights_come_whole_or_not_at_all(engine, monkeypatch):
    """Twice, through a buffer that holds the largest one; then a buffer that is written again while it is read."""
    model = sharp_model().requires_grad_(False)
    pieces = []
    send = engine.sender.client.update_weights
    monkeypatch.setattr(
        engine.sender.client, "update_weights", lambda info: (pieces.append(len(info["names"])), send(info))
    )
    for version in (1, 2):
        for parameter in model.parameters():
            parameter.mul_(0.9)
        pieces.clear()
        engine.update(model.named_parameters(), version)
        assert len(pieces) > 1
        assert sum(pieces) == len(list(model.parameters())) == len(engine.source.sent)
        rollouts = ask(engine)
        assert set(rollouts.version.tolist()) == {version}
        torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts), atol=1e-4, rtol=0)

    def late(info):
        engine.given[-1][0] ^= 1
        send(info)

    monkeypatch.setattr(engine.sender.client, "update_weights", late)
    with pytest.raises(
        RolloutError, match=r"weights 3: \d+ of \d+ tensors reached vllm's worker 0 with other checksums"
    ):
        engine.update(model.named_parameters(), 3)


@pytest.mark.long
def test_two_workers_in_processes_of_their_own(tmp_path, monkeypatch):
    """A tensor-parallel engine: messages reach both workers, and each opens the handles of its own GPU."""
    save(sharp_model(), TOKENIZER, tmp_path / "model")
    cloudpickle.register_pickle_by_value(without_gpus)  # vLLM's processes cannot import tests
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")
    engine = VLLMEngine(tmp_path / "model", replace(CONFIG, tensor_parallel_size=2), [EOS], transport="ipc")
    try:
        processes = engine.llm.collective_rpc(map_ipc)
        assert len({*processes, os.getpid()}) == 3
        install_mapped_ipc(monkeypatch.setattr, str(tmp_path))
        model = sharp_model().requires_grad_(False)
        largest = max(p.numel() for p in model.parameters())
        engine.sender = make_sender("ipc", engine.client, engine.source, workers=2, buffer=4 * largest)
        for version in (1, 2):
            for parameter in model.parameters():
                parameter.mul_(0.9)
            engine.update(model.named_parameters(), version)
            rollouts = ask(engine)
            assert set(rollouts.version.tolist()) == {version}
            torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts), atol=1e-4, rtol=0)
    finally:
        engine.close()
