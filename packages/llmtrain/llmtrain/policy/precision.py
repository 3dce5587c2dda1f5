"""Products of a model's body in bf16, by autocast, with fp32 weights.

Processors differ: an AMD EPYC with AVX512-BF16 multiplied matrices of 2,048 at 204 GFLOP/s in bf16 and at 91 in fp32,
an Intel Xeon with it at 152 and at 291; `python benchmarks/trainer.py --model smollm2` compares them. The output layer
stays in fp32, because bf16 would round logits to 8 bits, and so do norms, gradients and the optimizer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
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


def casts(model: PreTrainedModel) -> bool:
    """Return True if the body of the model multiplies in bf16."""
    return "casts" in vars(model.base_model)


@contextmanager
def without_gradients(model: PreTrainedModel) -> Iterator[None]:
    """Make many passes without gradient inside; the bf16 weights of a body are cast once for all of them.

    Weights must not change inside.
    """
    if not casts(model):
        with torch.inference_mode():
            yield
        return
    # Autocast keeps no casts in inference mode; outside of it, until the outermost autocast ends.
    with torch.no_grad(), torch.autocast(model.device.type, enabled=False):
        yield
