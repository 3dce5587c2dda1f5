"""Weights as published: under the names and in the shapes of checkpoints, which transformers may change on loading.

mlp.experts.gate_up_proj (E, 2I, D)     ◄──  block_sparse_moe.experts.0.w1.weight (I, D), .w3.weight, ...
model.language_model.layers.0...        ◄──  language_model.model.layers.0...
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby

from torch import Tensor
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import revert_weight_conversion

LAYER = re.compile(r"^\D*\.\d+\.")
"""Beginning of the names of a layer's parameters. A checkpoint joins weights of one layer, never those of several."""


def published(model: PreTrainedModel, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Yield weights, named and shaped as the parameters of `model`, as a published checkpoint has them.

    Buffers of the checkpoint follow. Layers are converted one after the other, so that no more than the weights of one
    are copied.
    """
    weights = chain(weights, buffers(model))
    known = getattr(model, "_weight_conversions", None)
    if not (get_model_conversion_mapping(model, add_legacy=False) if known is None else known):
        yield from weights
        return
    for _, layer in groupby(weights, key=lambda item: found.group() if (found := LAYER.match(item[0])) else ""):
        yield from revert_weight_conversion(model, {name: weight.clone() for name, weight in layer}).items()


def buffers(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Yield the buffers that a checkpoint has, such as the bias of a router."""
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set:
                yield f"{prefix}.{name}".lstrip("."), buffer
