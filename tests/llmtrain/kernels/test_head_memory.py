"""The trainer's passes over a batch never hold the logits of all tokens: there is no tensor of N×V."""

import pytest
import torch
from largest import Largest

from entrostat import make
from llmtrain.kernels.projection import chunk_tokens
from llmtrain.policy.engine import TorchEngine
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.process.clock import Clock
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import OptimConfig
from llmtrain.training.learner import Experience, Learner

V, B, PROMPT, RESPONSE = 32_768, 24, 4, 60
N = B * RESPONSE
OPTIM = OptimConfig(micro_batch_tokens=B * (PROMPT + RESPONSE), mini_batch_size=B // 4)


@pytest.fixture(scope="module")
def scene():
    """Return a model with a large vocabulary, and a micro-batch with more tokens than a chunk of the head."""
    assert chunk_tokens(V, torch.device("cpu")) < N
    model = build_tiny(V, hidden=16, layers=1, heads=1, kv_heads=1, intermediate=16)
    ids = torch.randint(V, (B * (PROMPT + RESPONSE),), generator=torch.Generator().manual_seed(0))
    return model, Batch(ids, torch.full((B,), PROMPT), torch.full((B,), RESPONSE))


@pytest.mark.slow
def test_statistics_without_gradient(scene):
    """Used for the rollout, for evaluation and for a reference policy."""
    model, batch = scene
    with Largest() as largest:
        stats = Policy(model).all_stats(batch, OPTIM.micro_batch_tokens)
    assert largest.elements == chunk_tokens(V, torch.device("cpu")) * V
    assert not any(x.requires_grad for x in stats)
    with Largest() as dense, torch.no_grad():
        logits = model(input_ids=batch.padded(torch.arange(B))).logits
    assert dense.elements > N * V  # what the head spares
    expected = torch.log_softmax(logits[:, PROMPT - 1 : -1], -1)
    expected = expected.gather(2, batch.padded(torch.arange(B))[:, PROMPT:, None]).flatten()
    torch.testing.assert_close(stats.logp, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("controller", [pytest.param("clip_higher+entropy_bonus", marks=pytest.mark.slow), "gspo"])
def test_an_update(scene, controller):
    """Gradients in the forward pass (fused), and with recomputed logits."""
    model, batch = scene
    policy = Policy(model)
    reward = torch.arange(B) % 2 * 1.0
    group = torch.arange(B) // 4
    stats = policy.all_stats(batch, OPTIM.micro_batch_tokens)
    experience = Experience.of(batch, stats, reward, 2 * reward - 1, group, torch.arange(B))
    learner = Learner(policy, TorchEngine(model, OPTIM), make(controller), OPTIM, seed=0, clock=Clock("cpu"), updates=2)
    with Largest() as largest:
        metrics = learner.update(experience, step=0)
    assert metrics["grad_norm"] > 0
    assert largest.elements == chunk_tokens(V, torch.device("cpu")) * V


def test_chunks_fill_the_memory_and_on_a_gpu_tiles_of_products():
    """2^27 bytes of fp32 logits on a CPU and 2.5 * 2^30 elsewhere, for 16 to 4,096 tokens."""
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert [chunk_tokens(v, cpu) for v in (8192, 8193, 151_936, 2**21, 2**22)] == [4096, 4095, 220, 16, 16]
    assert [chunk_tokens(v, cuda) for v in (50_257, 151_936, 262_144, 5 * 2**20, 10**8)] == [4096, 4096, 2560, 128, 16]
