"""Time that `engine.torch_compile` saves: forward and backward pass of a model's body, layers compiled or as written.

    OMP_NUM_THREADS=1 python -m benchmarks.compiled_layers [tiny|smollm2]

Packed rows of equal sequences, of four widths in turn: the demo's model in fp32, SmolLM2-135M's shape in fp32 and with
bf16 products. Both take turns; CPU seconds, smallest of the turns.
"""

import argparse
import time

import torch
from transformers import LlamaConfig, LlamaModel

from llmtrain.plan.derived import Layout
from llmtrain.plan.efficiency import BANDWIDTH_SHARE
from llmtrain.policy.attention import attend_by_sequence
from llmtrain.policy.compiled import compile_layers

SHAPES = {
    "tiny": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4},
    "smollm2": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
}
TOKENS = {"tiny": 4096, "smollm2": 1024}
LENGTH = 32
TURNS = 8
COLUMNS = ("model", "precision", "eager, CPU s", "compiled, CPU s", "eager / compiled")


def model_of(name: str, compiled: bool) -> LlamaModel:
    """Return a model with fixed weights."""
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(vocab_size=64, **SHAPES[name]))
    attend_by_sequence(model)
    if compiled:
        compile_layers(model)
    return model.train()


def step(model: LlamaModel, tokens: int, bf16: bool) -> torch.Tensor:
    """Run a pass forward and backward; return a layer's gradient."""
    draws = torch.Generator().manual_seed(tokens)
    ids, slope = torch.randint(64, (1, tokens), generator=draws), torch.randn(model.config.hidden_size, generator=draws)
    place = torch.arange(LENGTH).repeat(tokens // LENGTH)[None]
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        states = model(input_ids=ids, position_ids=place, use_cache=False).last_hidden_state
    model.zero_grad()
    (states.float() @ slope).sum().backward()
    return model.layers[0].mlp.gate_proj.weight.grad.clone()


def saved_seconds(layout: Layout) -> float:
    """Return the seconds per rollout step of memory traffic that compiled layers of a Llama or Qwen2 need not have.

    An upper bound of what compilation saves on a GPU. In bytes per token and layer forward, of D states, F units of the
    MLP and Q + K numbers that are rotated, with norms in fp32: written operation by operation 2·36·D for norms, 12·D
    for residual sums, 10·F for SwiGLU and 20·(Q + K) for the rotation; at least 16·D, 6·F and 4·(Q + K) in one pass
    each. A backward pass counts as two forward.
    """
    model, config, gpu = layout.model, layout.config, layout.gpu
    each = (72 + 12 - 16) * model.hidden + (10 - 6) * model.intermediate + (20 - 4) * (model.q_width + model.kv_width)
    passes = 1 + config.live_share * config.ppo_epochs * (1 + config.gradient_checkpointing + 2)
    moved = passes * each * model.layers * layout.tokens / layout.ranks
    return moved / (gpu.bandwidth * BANDWIDTH_SHARE)


def row(name: str, bf16: bool) -> str:
    """Return a row of the table; raises AssertionError if the gradients differ."""
    models = {"eager": model_of(name, False), "compiled": model_of(name, True)}
    widths = [TOKENS[name] + LENGTH * i for i in range(4)]
    for tokens in widths[:2]:  # the second width compiles again, for all widths
        step(models["compiled"], tokens, bf16)
    seconds: dict[str, list[float]] = {kind: [] for kind in models}
    for turn in range(TURNS):
        gradients = {}
        for kind, model in models.items():
            began = time.process_time()
            gradients[kind] = step(model, widths[turn % len(widths)], bf16)
            seconds[kind].append(time.process_time() - began)
        away = (gradients["eager"] - gradients["compiled"]).norm() / gradients["eager"].norm()
        assert away < (0.1 if bf16 else 1e-4), float(away)
    eager, compiled = (min(seconds[kind]) for kind in ("eager", "compiled"))
    precision = "bf16" if bf16 else "fp32"
    return f"| {name} | {precision} | {eager:.2f} | {compiled:.2f} | {eager / compiled:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="|".join(SHAPES), help="models to time")
    models = parser.parse_args().models or list(SHAPES)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name in models:
        for bf16 in (False,) if name == "tiny" else (False, True):
            print(row(name, bf16), flush=True)


if __name__ == "__main__":
    main()
