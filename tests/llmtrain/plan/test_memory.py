"""Memory against a hand calculation, against tensors that torch keeps, and against measured peaks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from llmtrain.plan import efficiency
from llmtrain.plan.architecture import Architecture, get_architecture
from llmtrain.plan.derived import lay_out
from llmtrain.plan.memory import Memory, activations, head, layer_activations
from llmtrain.plan.plan_config import PlanConfig

ROOT = Path(__file__).parents[3]
EIGHT = PlanConfig(model="Qwen3-8B-Base", gpus=8, gpu="h100", max_prompt_length=2048)
PARAMS = 8_190_735_360


def memory(**changes) -> Memory:
    return Memory(lay_out(replace(EIGHT, **changes)))


@pytest.mark.parametrize(
    ("stage", "weights", "gradients", "optimizer"),
    [(0, 2, 4, 12), (1, 2, 4, 12 / 8), (2, 2, 4 / 8, 12 / 8), (3, 2 / 8, 4 / 8, 12 / 8)],
)
def test_what_zero_stages_divide(stage, weights, gradients, optimizer):
    state = memory(zero_stage=stage).state
    assert state["weights"] == weights * PARAMS
    assert state["gradients"] == gradients * PARAMS
    assert state["optimizer"] == optimizer * PARAMS
    assert ("gathered weights" in state) == (stage == 3)
    assert state.get("gradients of a pass") == (2 * PARAMS if stage < 2 else None)


def test_the_zero_papers_example():
    """7.5B parameters on 64 GPUs: 120, 31.4, 16.6 and 1.9 GB (ZeRO, figure 1), there with 2 bytes of gradients."""
    for stage, expected in enumerate((120, 31.4, 16.6, 1.9)):
        state = memory(gpus=64, zero_stage=stage).state
        whole = state["weights"] + state["gradients"] / 2 + state["optimizer"]
        assert whole / PARAMS * 7.5 == pytest.approx(expected, rel=0.02)


def test_offload():
    moved = memory(zero_stage=3, offload_optimizer=True, offload_param=True)
    assert moved.state["optimizer"] == moved.state["weights"] == 0
    assert moved.state["gradients"] <= efficiency.GRADIENT_BUCKET_BYTES
    assert moved.host == 18 * PARAMS
    asks = memory(zero_stage=3, offload_optimizer=True, offload_param=True, reference_model=True)
    assert (asks.state["reference weights"], asks.host) == (0, 20 * PARAMS)
    assert memory(gpus=64, zero_stage=2, offload_optimizer=True).host == 16 * PARAMS / 8, "a node holds its share"
    assert memory().host == 0


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_reward_model_takes_what_the_policy_takes_and_a_reference(stage):
    alone = memory(zero_stage=stage, gpus=64, gpu="h200")
    prime = memory(zero_stage=stage, gpus=64, gpu="h200", reward_model=True)
    parts = ("weights", "gradients", "gradients of a pass", "optimizer")
    for part in parts:
        assert prime.state.get(part) == (2 * alone.state[part] if part in alone.state else None)
    assert prime.state["reference weights"] == alone.state["weights"]
    assert prime.state.get("gathered weights") == alone.state.get("gathered weights")
    away = memory(zero_stage=3, offload_optimizer=True, offload_param=True, reward_model=True)
    assert away.host == (2 * 18 + 2) * PARAMS


def test_kv_cache_by_hand():
    apart = memory(colocated=False, rollout_gpus=4, gpu_memory_utilization=0.8, tensor_model_parallel_size=2)
    left = 0.8 * (81559 << 20) - PARAMS - apart.engine_activations
    assert apart.kv_cache == pytest.approx(left)
    assert apart.kv_tokens == int(left // (36 * 2 * 4 * 128 * 2))
    assert set(apart.rollout) == {"reserved", "engine weights", "engine activations", "KV cache"}


@pytest.mark.parametrize(("stage", "weights", "gradients"), [(1, 2, 4), (2, 2, 0), (3, 2 / 8, 4 / 8)])
def test_colocated_the_trainer_stays_and_of_gradients_what_deepspeed_keeps(stage, weights, gradients):
    parts = memory(zero_stage=stage, gpu="h200").rollout
    assert parts["weights"] == weights * PARAMS
    assert parts["optimizer"] == 12 * PARAMS / 8
    assert parts.get("gradients", 0) == gradients * PARAMS
    assert not parts.keys() & {"gradients of a pass", "gathered weights"}
    parts = memory(zero_stage=2).rollout
    assert sum(parts.values()) <= (81559 << 20) * (1 + 1e-9)


def test_checkpointing_keeps_a_boundary_a_layer():
    model = get_architecture("Qwen3-8B-Base")
    inside = layer_activations(model)
    assert activations(model, 1000, True) == 1000 * (36 * 2 * 4096 + 2 * inside + 3 * 2 * 4096)
    assert activations(model, 1000, False) > 5 * activations(model, 1000, True)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_a_layer_keeps_what_torch_keeps(kind):
    """Tensors saved for the backward pass by one more layer, a token: within 8%."""
    torch = pytest.importorskip("torch")
    from transformers import Qwen2Config, Qwen2Model, Qwen3Config, Qwen3Model

    sizes = {"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 1024}
    make, config = {"qwen2": (Qwen2Model, Qwen2Config), "qwen3": (Qwen3Model, Qwen3Config)}[kind]

    def saved(layers: int, tokens: int = 128) -> float:
        model = make(config(num_hidden_layers=layers, head_dim=64, vocab_size=64, **sizes)).to(torch.bfloat16).train()
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        kept = {}

        def keep(x):
            if x.untyped_storage().data_ptr() not in weights:
                kept[x.untyped_storage().data_ptr()] = x
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            out = model(input_ids=torch.zeros(1, tokens, dtype=torch.long), use_cache=False)
        assert out.last_hidden_state.requires_grad
        return sum(x.untyped_storage().nbytes() for x in kept.values()) / tokens

    planned = Architecture(
        family="qwen2",
        name="small",
        layers=1,
        hidden=256,
        heads=4,
        kv_heads=2,
        head_dim=64,
        intermediate=1024,
        vocab=64,
        tied=False,
        attention_bias=kind == "qwen2",
        qk_norm=kind == "qwen3",
        max_positions=128,
    )
    assert layer_activations(planned) + 2 * 256 == pytest.approx(saved(3) - saved(2), rel=0.08)


def test_the_head_takes_what_was_measured():
    """Peaks of the fused head in docs/data/benchmarks.json, fp32 on a CPU: within 5%."""
    projection = pytest.importorskip("llmtrain.kernels.projection")
    reports = json.loads((ROOT / "docs/data/benchmarks.json").read_text())["kernels"]
    lines = [line for found in reports for line in found["results"] if line["name"] == "fused" and "peak" in line]
    lines = [line for line in lines if line["device"] == "cpu" and line["live"] == 1 and line["entropy"]]
    assert lines
    for line in lines:
        model = replace(get_architecture("Qwen3-8B-Base"), vocab=line["vocabulary"], hidden=line["hidden"])
        planned = head(model, line["tokens"], projection.CHUNK_BYTES["cpu"], weight_bytes=4)
        assert planned == pytest.approx(line["peak"], rel=0.05)


def test_chunks_are_those_of_the_head():
    projection = pytest.importorskip("llmtrain.kernels.projection")
    assert projection.CHUNK_BYTES["cuda"] == efficiency.HEAD_CHUNK_BYTES
    assert projection.CHUNK_TOKENS == efficiency.HEAD_CHUNK_TOKENS


def test_more_ranks_never_need_more():
    for stage in range(4):
        sizes = [sum(memory(gpus=gpus, zero_stage=stage).training.values()) for gpus in (8, 16, 32, 64)]
        assert sizes == sorted(sizes, reverse=True)
