"""Products of a model's body in bf16, by autocast, with fp32 weights.

Processors differ: an AMD EPYC with AVX512-BF16 multiplied matrices of 2,048 at 204 GFLOP/s in bf16 and at 91 in fp32,
an Intel Xeon with it at 152 and at 291, one without it matrices of 512 at 32 and at 108, so that a step of SmolLM2-135M
took 31 s for 12; `python benchmarks/trainer.py --model smollm2` compares them. The output layer stays in fp32, because
bf16 would round logits to 8 bits, and so do norms, gradients and the optimizer.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel

SIZE = 512
"""Rows and columns of the matrices whose product is timed."""


def slow_bf16(device: str) -> str:
    """Return a sentence if products in bf16 take longer on this machine than in fp32; "" if not, or for a GPU."""
    rates = {dtype: rate(dtype) / 1e9 for dtype in (torch.bfloat16, torch.float32)} if device == "cpu" else {}
    return advice(*rates.values()) if rates else ""


def rate(dtype: torch.dtype) -> float:
    """Return the FLOP/s of products of this process, the best of three."""
    a = torch.ones(SIZE, SIZE, dtype=dtype)
    times = []
    for _ in range(4):  # the first prepares the others
        begun = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - begun)
    return 2 * SIZE**3 / min(times[1:])


def advice(bf16: float, fp32: float) -> str:
    """Return what to do with these rates (GFLOP/s); "" if bf16 is the faster one."""
    if bf16 >= fp32:
        return ""
    slower = f"multiplies at {bf16:.0f} GFLOP/s in bf16 and at {fp32:.0f} in fp32"
    return f"this processor {slower}: training is faster without engine.bf16"


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
