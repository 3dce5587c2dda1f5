"""Products of a model's body in bf16, by autocast, with fp32 weights.

Processors differ: an AMD EPYC with AVX512-BF16 multiplied matrices of 2,048 at 204 GFLOP/s in bf16 and at 91 in fp32,
an Intel Xeon with it at 152 and at 291; `python benchmarks/trainer.py --model smollm2` compares them. The output layer
stays in fp32, because bf16 would round logits to 8 bits, and so do norms, gradients and the optimizer.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from transformers import PreTrainedModel


def compute_in_bf16(model: PreTrainedModel) -> None:
    """Make the body of an fp32 model, everything but its output layer, multiply in bf16; its states are fp32."""
    body = model.base_model
    forward = body.forward

    def in_bf16(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(model.device.type, torch.bfloat16):
            output = forward(*args, **kwargs)
        output.last_hidden_state = output.last_hidden_state.float()
        return output

    body.forward = in_bf16
    vars(body)["casts"] = True


def keeping_casts(model: PreTrainedModel) -> AbstractContextManager:
    """Return a context that keeps the bf16 weights of a body from one pass to the next; a no-op for other models.

    Weights must not change inside.
    """
    casts = "casts" in vars(model.base_model)
    return torch.autocast(model.device.type, enabled=False) if casts else nullcontext()
