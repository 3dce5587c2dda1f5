"""Cost of attending to each sequence of a packed row in a call of its own, and of torch's kernel for short rows.

    OMP_NUM_THREADS=1 python -m benchmarks.attention_calls [smollm2-135m|qwen2.5-0.5b|qwen2.5-7b]
    OMP_NUM_THREADS=2 python -m benchmarks.attention_calls --short

Two layers of a model, forward and backward, on sequences of equal lengths: packed into one row, with a call for each
sequence or with one call and a dense mask (as transformers does), and as a batch, with one call and no mask. The batch
is the lower bound of what one call of variable-length attention could take; on a GPU that call is a case of its own.
Cases take turns; median of the turns.

- smollm2-135m: 2,048 tokens in fp32 on a CPU, CPU milliseconds;
- qwen2.5-0.5b, qwen2.5-7b: 8,192 and 16,384 tokens in bf16 on a GPU, elapsed milliseconds.

--short: attention alone, forward and backward, 2,048 tokens in SmolLM2-135M's shape on a CPU: torch's kernel, and the
matrix products that llmtrain makes instead in rows of up to 256 tokens.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from benchmarks.layers import SIZES, now
from transformers import LlamaConfig, LlamaModel

from llmtrain.policy import attention
from llmtrain.policy.attention import attend_by_sequence, attend_directly, sdpa_attention_forward

SHAPES = {
    "smollm2-135m": ((64, 32), (16, 128), (8, 256), (4, 512)),
    "qwen2.5-0.5b": ((64, 128), (32, 256), (8, 1024), (4, 2048), (2, 4096)),
    "qwen2.5-7b": ((512, 32), (64, 256), (16, 1024), (7, 2341), (2, 8192)),
}
"""Numbers of sequences, and their lengths in tokens."""
ON_CPU = "smollm2-135m"
LENGTHS = (16, 32, 64, 128, 256)
"""Tokens of short rows."""
TURNS = 7


def model_of(name: str, by_sequence: bool) -> LlamaModel:
    """Return two layers with fixed weights."""
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, **SIZES[name], num_hidden_layers=2, attn_implementation="sdpa")
    model = LlamaModel(config)
    if name != ON_CPU:
        model.to("cuda", torch.bfloat16)
    if by_sequence:
        attend_by_sequence(model)
    return model


def cases(name: str, count: int, length: int) -> dict[str, Callable[[], torch.Tensor]]:
    """Return functions that compute the last states, (count·length, D), by name."""
    one, other = model_of(name, True), model_of(name, False)
    ids = torch.randint(64, (count, length), generator=torch.Generator().manual_seed(0)).to(one.device)
    places = torch.arange(length, device=one.device).repeat(count)[None]
    row = {"input_ids": ids.reshape(1, -1), "position_ids": places, "use_cache": False}

    def each() -> torch.Tensor:
        with patch.object(attention, "VARLEN_OPTIONS", {}):
            return one(**row).last_hidden_state[0]

    found: dict[str, Callable[[], torch.Tensor]] = {
        "each": each,
        "dense": lambda: other(**row).last_hidden_state[0],
        "batch": lambda: other(input_ids=ids, use_cache=False).last_hidden_state.flatten(0, 1),
    }
    return found if name == ON_CPU else found | {"at once": lambda: one(**row).last_hidden_state[0]}


def measure(name: str, count: int, length: int) -> dict[str, float]:
    """Return the seconds of each case for so many sequences; raises AssertionError if the cases differ."""
    work, device = cases(name, count, length), torch.device("cpu" if name == ON_CPU else "cuda")
    with torch.no_grad():
        expected = work["batch"]()
        for case, states in work.items():
            away = float((states() - expected).norm() / expected.norm())
            assert away < (1e-5 if name == ON_CPU else 0.02), f"{case}: {away}"
    seconds: dict[str, list[float]] = {case: [] for case in work}
    for turn in range(TURNS + 1):
        for case, states in work.items():
            began = now(device)
            states().square().mean().backward()
            if turn:
                seconds[case].append(now(device) - began)
    return {case: statistics.median(taken) for case, taken in seconds.items()}


def short() -> None:
    """Print a table of torch's kernel and direct attention, by dtype and length of the rows."""
    heads, groups = (int(SIZES[ON_CPU][f"num_{name}_heads"]) for name in ("attention", "key_value"))
    module = torch.nn.Module()
    module.num_key_value_groups, module.is_causal = heads // groups, True  # type: ignore[assignment]
    print("| dtype | rows × tokens | mask | torch's kernel, ms | direct / kernel |\n|---|---|---|--:|--:|")
    for dtype, length, masked in itertools.product((torch.float32, torch.bfloat16), LENGTHS, (False, True)):
        rows = 2048 // length
        inputs = [torch.randn(rows, of, length, 64).to(dtype).requires_grad_() for of in (heads, groups, groups)]
        mask = torch.ones(rows, 1, length, length, dtype=torch.bool).tril() if masked else None
        slope = torch.randn(rows, length, heads, 64).to(dtype)
        seconds: dict[str, list[float]] = {"kernel": [], "direct": []}
        for turn in range(TURNS + 1):
            for way, taken in seconds.items():
                began = time.perf_counter()
                if way == "direct":
                    found = attend_directly(*inputs, mask, None)
                else:
                    found = sdpa_attention_forward(module, *inputs, mask)[0]
                found.backward(slope)
                if turn:
                    taken.append(time.perf_counter() - began)
        kernel, direct = (statistics.median(taken) for taken in seconds.values())
        cells = (str(dtype).removeprefix("torch."), f"{rows} × {length}", "bool" if masked else "causal")
        print(f"| {' | '.join(cells)} | {1e3 * kernel:.1f} | {direct / kernel:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="|".join(SHAPES), help="shapes of layers to time")
    parser.add_argument("--short", action="store_true", help="torch's kernel and direct attention for short rows")
    given = parser.parse_args()
    if given.short:
        return short()
    models = given.models or [name for name in SHAPES if name == ON_CPU or torch.cuda.is_available()]
    columns = (
        "layers",
        "sequences × tokens",
        "batch, ms",
        *(f"{case} / batch" for case in ("each", "dense", "at once")),
    )
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in models:
        for count, length in SHAPES[name]:
            found = measure(name, count, length)
            base = found.pop("batch")
            ratios = (f"{found[case] / base:.2f}" if case in found else "" for case in ("each", "dense", "at once"))
            print(f"| {name} | {count} × {length} | {1e3 * base:.1f} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
