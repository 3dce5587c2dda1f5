"""Time that `engine.torch_compile` saves: forward and backward pass of a model's body, layers compiled or as written.

    OMP_NUM_THREADS=1 python -m benchmarks.compiled_layers [tiny|smollm2-135m|qwen2.5-7b]

Packed rows of equal sequences, of four widths in turn. Both take turns; smallest of the turns, in CPU seconds, or on a
GPU, where it is a model's, in elapsed seconds.

- tiny: the demo's model in fp32;
- smollm2-135m: SmolLM2-135M's shape in fp32 and with bf16 products;
- qwen2.5-7b: four layers of Qwen2.5-7B's shape in bf16, as written and with gradient checkpointing; needs a GPU.
"""

import argparse

import torch
from benchmarks.layers import SIZES, now
from transformers import LlamaConfig, LlamaModel

from llmtrain.plan.derived import Layout
from llmtrain.plan.efficiency import BANDWIDTH_SHARE
from llmtrain.policy.attention import attend_by_sequence
from llmtrain.policy.compiled import compile_layers

LAYERS = {"tiny": 4, "smollm2-135m": 30, "qwen2.5-7b": 4}
ON_GPU = "qwen2.5-7b"
TOKENS = {"tiny": 4096, "smollm2-135m": 1024, ON_GPU: 16_384}
LENGTH = {"tiny": 32, "smollm2-135m": 32, ON_GPU: 2048}
TURNS = 8
KINDS = {"tiny": ("fp32",), "smollm2-135m": ("fp32", "bf16 products"), ON_GPU: ("bf16", "bf16, checkpointed")}
COLUMNS = ("model", "precision", "eager, s", "compiled, s", "eager / compiled")


def model_of(name: str, kind: str, compiled: bool) -> LlamaModel:
    """Return a model with fixed weights."""
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(vocab_size=64, num_hidden_layers=LAYERS[name], **SIZES[name]))
    if name == ON_GPU:
        model.to("cuda", torch.bfloat16)
    attend_by_sequence(model)
    if "checkpointed" in kind:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if compiled:
        compile_layers(model)
    return model.train()


def step(model: LlamaModel, name: str, kind: str, tokens: int) -> torch.Tensor:
    """Run a pass forward and backward; return a layer's gradient."""
    draws, device = torch.Generator().manual_seed(tokens), model.device
    ids, slope = torch.randint(64, (1, tokens), generator=draws), torch.randn(model.config.hidden_size, generator=draws)
    place = torch.arange(LENGTH[name], device=device).repeat(tokens // LENGTH[name])[None]
    with torch.autocast(device.type, torch.bfloat16, enabled=kind == "bf16 products"):
        states = model(input_ids=ids.to(device), position_ids=place, use_cache=False).last_hidden_state
    model.zero_grad()
    (states.float() @ slope.to(device)).sum().backward()
    return model.layers[0].mlp.gate_proj.weight.grad.clone()


def saved_bytes(hidden: int, intermediate: int, rotated: int) -> int:
    """Return the bytes per token and layer that compiled layers of a Llama or Qwen2 need not move forward.

    Written operation by operation, with D states, F units of the MLP, R numbers of queries and keys that are rotated,
    and norms in fp32: 2·36·D for norms, 12·D for residual sums, 10·F for SwiGLU and 20·R for the rotation; at least
    16·D, 6·F and 4·R in one pass each.
    """
    return (72 + 12 - 16) * hidden + (10 - 6) * intermediate + (20 - 4) * rotated


def saved_seconds(layout: Layout) -> float:
    """Return the seconds per rollout step of memory traffic that compiled layers need not have.

    An upper bound of what compilation saves on a GPU. A backward pass counts as two forward.
    """
    model, config, gpu = layout.model, layout.config, layout.gpu
    each = saved_bytes(model.hidden, model.intermediate, model.q_width + model.kv_width)
    passes = 1 + config.live_share * config.ppo_epochs * (1 + config.gradient_checkpointing + 2)
    moved = passes * each * model.layers * layout.tokens / layout.ranks
    return moved / (gpu.bandwidth * BANDWIDTH_SHARE)


def row(name: str, kind: str) -> str:
    """Return a row of the table; raises AssertionError if the gradients differ."""
    models = {way: model_of(name, kind, way == "compiled") for way in ("eager", "compiled")}
    widths = [TOKENS[name] + LENGTH[name] * i for i in range(4)]
    for tokens in widths[:2]:  # the second width compiles again, for all widths
        step(models["compiled"], name, kind, tokens)
    seconds: dict[str, list[float]] = {way: [] for way in models}
    for turn in range(TURNS):
        gradients = {}
        for way, model in models.items():
            began = now(model.device)
            gradients[way] = step(model, name, kind, widths[turn % len(widths)])
            seconds[way].append(now(model.device) - began)
        away = (gradients["eager"] - gradients["compiled"]).norm() / gradients["eager"].norm()
        assert away < (1e-4 if kind == "fp32" else 0.1), float(away)
    eager, compiled = (min(seconds[way]) for way in ("eager", "compiled"))
    return f"| {name} | {kind} | {eager:.3g} | {compiled:.3g} | {eager / compiled:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="|".join(LAYERS), help="models to time")
    models = parser.parse_args().models or [name for name in LAYERS if name != ON_GPU or torch.cuda.is_available()]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name in models:
        for kind in KINDS[name]:
            print(row(name, kind), flush=True)


if __name__ == "__main__":
    main()
