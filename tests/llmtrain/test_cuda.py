"""Tests that need a GPU: compiled kernels and layers, attention in one call, and whole trainings.

To run them: TRITON_INTERPRET=0 python -m pytest tests/llmtrain/test_cuda.py
"""

import os
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from head_scene import MODES, OPTIONS, close, dense, scene
from tests.ranks import group, run_ranks
from transformers import LlamaConfig, LlamaForCausalLM

from entrostat.logs.runlog import read_metrics
from llmtrain.kernels import head_loss, rows, triton_rows
from llmtrain.policy import attention
from llmtrain.policy.policy import Policy
from llmtrain.process.ranks import join, leave
from llmtrain.sequences.batch import Batch
from llmtrain.training.run import train_run

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "0", reason="set TRITON_INTERPRET=0"),
]
DEVICE = "cuda"
SPEC = "grpo+entropy_bonus"
GROUPS = {"heads": {}, "groups of heads": {"num_key_value_heads": 2}}
BATCH = Batch(torch.arange(90) % 48 + 2, torch.tensor([4, 7, 3]), torch.tensor([36, 18, 22]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_the_head_on_a_gpu(mode, option, dtype):
    """Near the float64 answer on the same, possibly rounded, inputs; statistics are fp32."""
    hidden, weight, bias, targets, _ = scene(300, 64, 5003, dtype, device=DEVICE)
    settings = {"temperature": 1.0, "softcap": None, **OPTIONS[option]}
    if settings["temperature"] == "tokens":
        settings["temperature"] = torch.linspace(0.5, 1.5, len(targets), device=DEVICE)
    leaves = [hidden, weight, *([bias] if settings.pop("bias", False) else [])]
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    bias, plan = leaves[2] if len(leaves) == 3 else None, scene(300, 64, 5003, torch.float32, SPEC, device=DEVICE)[-1]
    _, stats, grads = dense(*doubles[:2], doubles[2] if len(leaves) == 3 else None, targets, plan, **settings)
    loss, found = head_loss(leaves[0], leaves[1], targets, plan, bias=bias, mode=mode, **settings)
    found_grads = torch.autograd.grad(loss, leaves)
    assert close(found.logp, stats[0], 1e-5)
    assert close(found.entropy, stats[1], 1e-5)
    for a, b in zip(found_grads, grads, strict=True):
        assert close(a, b, 1e-5 if dtype == torch.float32 else 2**-7)


@pytest.mark.parametrize("vocabulary", [7, 50_257, 151_936])
def test_rows_of_triton(vocabulary):
    g = torch.Generator().manual_seed(0)
    x, targets = 3 * torch.randn(13, vocabulary, generator=g), torch.randint(vocabulary, (13,), generator=g)
    slopes = torch.randn(2, 13, generator=g)
    sums, scratch = triton_rows.accumulate(x.cuda(), targets.cuda())
    true_sums, true_scratch = rows.accumulate(x.double(), targets)
    found, expected = rows.statistics(sums).cpu(), rows.statistics(true_sums)
    assert ((found - expected).abs() <= 1e-5 * expected.abs()).all()
    gradient = triton_rows.gradient(scratch, sums, targets.cuda(), *slopes.cuda()).cpu()
    true = rows.gradient(true_scratch, true_sums, targets, *slopes.double())
    assert ((gradient - true).abs().amax(1) <= 1e-5 * true.abs().amax(1)).all()


def llama(**others) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(**sizes, intermediate_size=64, max_position_embeddings=128, **others)
    return LlamaForCausalLM(config).train()


def gradients(policy: Policy) -> torch.Tensor:
    policy.zero_grad()
    policy.token_stats(BATCH, torch.arange(3)).logp.sum().backward()
    return torch.cat([p.grad.flatten().cpu().double() for p in policy.model.parameters()])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", ["padded", "packed", "shared"])
@pytest.mark.parametrize("groups", GROUPS)
def test_layouts_on_a_gpu(layout, groups, dtype):
    """The CPU's gradient in fp32, but for rounding."""
    model = llama(**GROUPS[groups])
    expected = gradients(Policy(model, layout="padded"))
    found = gradients(Policy(model.to(DEVICE, dtype), layout=layout))
    assert (found - expected).norm() < (1e-4 if dtype == torch.float32 else 0.03) * expected.norm()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_packed_row_takes_one_call_for_each_layer(monkeypatch, checkpointing, autocast):
    calls, plain = [], attention.attend_at_once

    def watched(query, key, value, each, scaling):
        calls.append((len(query), each, query.dtype))
        return plain(query, key, value, each, scaling)

    monkeypatch.setattr(attention, "attend_at_once", watched)
    model = llama(**GROUPS["groups of heads"]).to(DEVICE, torch.float32 if autocast else torch.bfloat16)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    policy = Policy(model, layout="packed")
    calls.clear()
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        found = gradients(policy)
    assert calls == [(87, [39, 24, 24], torch.bfloat16)] * 2 * (1 + checkpointing)
    monkeypatch.setattr(attention, "VARLEN_OPTIONS", {})
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        expected = gradients(policy)
    assert len(calls) == 2 * (1 + checkpointing)
    assert (found - expected).norm() < 0.01 * expected.norm()


RUNS = {
    "torch": {},
    "torch, bf16": {"engine.bf16": True},
    "torch, compiled": {"engine.torch_compile": True},
    "packed, checkpointed": {"optim.layout": "packed", "engine.gradient_checkpointing": True},
    "packed, bf16": {"optim.layout": "packed", "engine.bf16": True},
    "ZeRO 0": {"engine.name": "deepspeed", "engine.zero_stage": 0},
    "ZeRO 1": {"engine.name": "deepspeed", "engine.zero_stage": 1},
    "ZeRO 2, bf16": {"engine.name": "deepspeed", "engine.zero_stage": 2, "engine.bf16": True},
    "ZeRO 3": {"engine.name": "deepspeed", "engine.zero_stage": 3},
    "ZeRO 3, offload": {
        "engine.name": "deepspeed",
        "engine.zero_stage": 3,
        "engine.offload_optimizer": True,
        "engine.offload_param": True,
    },
}


def over(config, settings):
    """Return the configuration with settings by their dotted names."""
    for name, value in settings.items():
        part, _, key = name.partition(".")
        changed = replace(getattr(config, part), **{key: value}) if key else value
        config = replace(config, **{part: changed})
    return config


@pytest.fixture(scope="module")
def on_a_cpu(small, tmp_path_factory) -> dict[str, float]:
    """The first step on a CPU."""
    return first_step(small, tmp_path_factory.mktemp("cpu"))


def first_step(config, folder) -> dict[str, float]:
    train_run(replace(config, steps=2, eval=replace(config.eval, every=0), out=str(folder / "run"), overwrite=True))
    return next(line for line in read_metrics(folder / "run") if "time/step" in line)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_on_a_gpu_is_the_one_on_a_cpu(small, on_a_cpu, tmp_path, name):
    """Its first step: with bf16 some tokens are others, so only the entropy is compared."""
    settings = RUNS[name]
    if settings.get("engine.name") == "deepspeed" and find_spec("deepspeed") is None:
        pytest.skip("no DeepSpeed")
    found = first_step(over(replace(small, device=DEVICE), settings), tmp_path)
    if settings.get("engine.bf16"):
        assert found["entropy"] == pytest.approx(on_a_cpu["entropy"], rel=0.05)
        return
    for key in ("entropy", "reward", "loss", "grad_norm"):
        assert found[key] == pytest.approx(on_a_cpu[key], rel=1e-3, abs=1e-4), key


def send_objects(size: int) -> None:
    ranks = join("cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    assert len(ranks.deal([torch.zeros(size)])) == len(ranks.gather([torch.zeros(size)])[0]) == size
    assert torch.cuda.max_memory_allocated() - before < size, "objects went over the GPU"
    leave(0)


def test_objects_between_ranks_take_no_memory_of_a_gpu():
    """Responses of all ranks, while a rollout engine fills the GPU."""
    run_ranks(group(1), send_objects, 1 << 22)
