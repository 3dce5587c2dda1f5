"""Sizes of layers that benchmarks time, and their clock."""

import time
from typing import Any

import torch

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4},
    "smollm2-135m": {"hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9, "num_key_value_heads": 3},
    "qwen2.5-0.5b": {
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
    "qwen2.5-7b": {
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
    },
}
"""Settings of a LlamaConfig by model; tiny is the demo's."""


def now(device: torch.device) -> float:
    """Return CPU seconds, or elapsed seconds once the GPU is idle."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
