"""Cost of attending to each sequence of a packed row in a call of its own.

    OMP_NUM_THREADS=1 python -m benchmarks.attention_calls

Two layers of a Llama of SmolLM2-135M's shape, forward and backward, on sequences of equal lengths: packed into one
row, with a call for each sequence (as llmtrain does) or with one call and a dense mask (as transformers does), and as
a batch, with one call and no mask. The batch is the lower bound of what one call of variable-length attention could
take. Cases take turns; CPU seconds, median of the turns.
"""

import statistics
import time
from collections.abc import Callable

import torch
from transformers import LlamaConfig, LlamaModel

from llmtrain.policy.attention import attend_by_sequence

SHAPES = ((64, 32), (16, 128), (8, 256), (4, 512))
"""Numbers of sequences, and their lengths in tokens."""
TURNS = 7
COLUMNS = ("sequences × tokens", "call for each, s", "relative to a batch", "dense mask, relative to a batch")


def model_of(by_sequence: bool) -> LlamaModel:
    """Return two layers with fixed weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=2,
        num_attention_heads=9,
        num_key_value_heads=3,
        attn_implementation="sdpa",
    )
    model = LlamaModel(config)
    if by_sequence:
        attend_by_sequence(model)
    return model


def cases(count: int, length: int) -> dict[str, Callable[[], torch.Tensor]]:
    """Return functions that compute the last states, (count·length, D), by name."""
    ids = torch.randint(64, (count, length), generator=torch.Generator().manual_seed(0))
    row = {"input_ids": ids.reshape(1, -1), "position_ids": torch.arange(length).repeat(count)[None]}
    one, other = model_of(True), model_of(False)
    return {
        "each": lambda: one(**row, use_cache=False).last_hidden_state[0],
        "dense": lambda: other(**row, use_cache=False).last_hidden_state[0],
        "batch": lambda: other(input_ids=ids, use_cache=False).last_hidden_state.flatten(0, 1),
    }


def row(count: int, length: int) -> str:
    """Return the row of the table for so many sequences; raises AssertionError if the cases differ."""
    work = cases(count, length)
    with torch.no_grad():
        expected = work["batch"]()
        for name, states in work.items():
            torch.testing.assert_close(states(), expected, rtol=1e-4, atol=1e-4, msg=name)
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(TURNS):
        for name, states in work.items():
            began = time.process_time()
            states().square().mean().backward()
            seconds[name].append(time.process_time() - began)
    each, dense, batch = (statistics.median(seconds[name]) for name in ("each", "dense", "batch"))
    return f"| {count} × {length} | {each:.2f} | {each / batch:.2f} | {dense / batch:.2f} |"


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for count, length in SHAPES:
        print(row(count, length), flush=True)


if __name__ == "__main__":
    main()
