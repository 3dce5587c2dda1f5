"""Products of a model's body in bf16, by autocast, with fp32 weights.

Processors differ: an AMD EPYC with AVX512-BF16 multiplied matrices of 2,048 at 204 GFLOP/s in bf16 and at 91 in fp32,
an Intel Xeon with it at 152 and at 291, one without it matrices of 512 at 32 and at 108, an EPYC without AVX-512 at 1.3
and at 78. The last two do the products of layers and attention in fp32, of the same rounded numbers: sums are fp32 in
both cases. What a layer gives is rounded as before, scores of attention are not, as in kernels of GPUs.
`python benchmarks/trainer.py --model smollm2` compares a step in both precisions. The output layer stays in fp32,
because bf16 would round logits to 8 bits, and so do norms, gradients and the optimizer.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

SIZE = 512
"""Rows and columns of the matrices whose product is timed."""
SLOW = 0.4
"""Share of the rate of fp32 under which products in bf16 are done in fp32: they must pay for the rounding."""


@cache
def rates() -> tuple[float, float]:
    """Return the FLOP/s of products of this process on the CPU in bf16 and in fp32."""
    return rate(torch.bfloat16), rate(torch.float32)


def rate(dtype: torch.dtype) -> float:
    """Return the FLOP/s of products of this process, the best of three."""
    a = torch.ones(SIZE, SIZE, dtype=dtype)
    times = []
    for _ in range(4):  # the first prepares the others
        begun = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - begun)
    return 2 * SIZE**3 / min(times[1:])


def multiplies_in_fp32(device: str) -> bool:
    """Return True if products in bf16 are done in fp32 on this device, of numbers rounded to bf16."""
    bf16, fp32 = rates() if device == "cpu" else (1.0, 0.0)
    return bf16 < SLOW * fp32


def slow_bf16(device: str, casts: bool = True) -> str:
    """Return a sentence if products in bf16 take longer on this machine than in fp32; "" if not, or for a GPU.

    casts: weights are fp32, so that products may be done in fp32.
    """
    return advice(*rates(), casts) if device == "cpu" else ""


def advice(bf16: float, fp32: float, casts: bool = True) -> str:
    """Return what to do with these rates (FLOP/s); "" if bf16 is the faster one."""
    if bf16 >= fp32:
        return ""
    slower = f"this processor multiplies at {bf16 / 1e9:.0f} GFLOP/s in bf16 and at {fp32 / 1e9:.0f} in fp32"
    instead = ", so that numbers are rounded to bf16 and multiplied in fp32" if casts and bf16 < SLOW * fp32 else ""
    return f"{slower}{instead}: training is faster without engine.bf16"


def dtype_of_products(device: str, autocast: torch.dtype) -> torch.dtype:
    """Return the dtype in which attention multiplies under this autocast: fp32 if that is done instead of bf16."""
    return torch.float32 if autocast == torch.bfloat16 and multiplies_in_fp32(device) else autocast


class RoundedLinear(nn.Linear):
    """torch's layer; under autocast on a CPU it rounds its numbers to bf16 and multiplies them in fp32."""

    kept: Tensor | None = None
    """Its rounded weight for many passes; None: rounded in each pass."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x (…, in) times the weight (out, in), bf16 under autocast."""
        return multiply(x, weight_of(self), self.bias) if is_cast(x) else super().forward(x)


class RoundedConv1D(Conv1D):
    """The same of GPT-2's layer, whose weight is (in, out)."""

    kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return x (…, in) times the weight (in, out), bf16 under autocast."""
        if is_cast(x):
            return multiply(x, weight_of(self).T, self.bias)
        found: Tensor = super().forward(x)
        return found


def is_cast(x: Tensor) -> bool:
    """Return True if x is on the CPU and autocast would multiply it in bf16."""
    casts = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    return casts and torch.get_autocast_dtype("cpu") == torch.bfloat16


def weight_of(layer: RoundedLinear | RoundedConv1D) -> Tensor:
    """Return the rounded weight of a layer."""
    return rounded(layer.weight) if layer.kept is None else layer.kept


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x (…, in) times a rounded weight (out, in), in bf16, by sums in fp32 of rounded numbers."""
    with torch.autocast("cpu", enabled=False):
        return nn.functional.linear(rounded(x), weight, None if bias is None else rounded(bias)).to(torch.bfloat16)


def rounded(x: Tensor) -> Tensor:
    """Return x rounded to bf16, in fp32; so is its gradient."""
    return x.to(torch.bfloat16).float()


ROUNDED = {nn.Linear: RoundedLinear, Conv1D: RoundedConv1D}
"""Layers by those that take their place where bf16 is slow; experts that a model holds as one tensor have none."""


def compute_in_bf16(model: PreTrainedModel) -> None:
    """Make the body of an fp32 model, everything but its output layer, multiply in bf16; its states are fp32.

    Raises ValueError if the model does not tell its body from its output layer.
    """
    body = body_of(model)
    forward, own = body.forward, vars(model.base_model)

    def in_bf16(*args: Any, **kwargs: Any) -> Any:
        own["casts"] += 1
        with torch.autocast(model.device.type, torch.bfloat16):
            output = forward(*args, **kwargs)
        output.last_hidden_state = output.last_hidden_state.float()
        return output

    body.forward, own["casts"] = in_bf16, 0
    if multiplies_in_fp32(model.device.type):
        for layer in body.modules():
            layer.__class__ = ROUNDED.get(type(layer), type(layer))


def body_of(model: PreTrainedModel) -> nn.Module:
    """Return the part of a model that both it and its base model call: all layers but the output layer.

    OPT and decoders of translators call a decoder inside of their base model; Llama 4 is its own base model; what
    ModernBERT calls its decoder is the output layer. Raises ValueError if there is none.
    """
    named = model.get_decoder()
    body = named if isinstance(named, PreTrainedModel) else model.base_model
    inner = [part for part in model.children() if isinstance(part, PreTrainedModel)] if body is model else [body]
    if len(inner) != 1:
        raise ValueError(f"engine.bf16 cannot tell the layers of {type(model).__name__} from its output layer")
    return inner[0]


def casts(model: PreTrainedModel) -> bool:
    """Return True if the body of the model multiplies in bf16."""
    return "casts" in vars(model.base_model)


def is_reached(model: PreTrainedModel, ids: Tensor) -> bool:
    """Return True if a pass over token ids (rows, tokens) goes through the body that multiplies in bf16."""
    before = vars(model.base_model)["casts"]
    with torch.no_grad():
        model(input_ids=ids.to(model.device), use_cache=False)
    return bool(vars(model.base_model)["casts"] > before)


@contextmanager
def without_gradients(model: PreTrainedModel) -> Iterator[None]:
    """Make many passes without gradient inside; the bf16 weights of a body are cast once for all of them.

    Weights must not change inside.
    """
    if not casts(model):
        with torch.inference_mode():
            yield
        return
    layers = [layer for layer in model.modules() if isinstance(layer, RoundedLinear | RoundedConv1D)]
    # Autocast keeps no casts in inference mode; outside of it, until the outermost autocast ends.
    with torch.no_grad(), torch.autocast(model.device.type, enabled=False):
        try:
            for layer in layers:
                layer.kept = rounded(layer.weight)
            yield
        finally:
            for layer in layers:
                layer.kept = None
