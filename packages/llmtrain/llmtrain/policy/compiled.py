"""Layers of a model compiled by torch, for the learner's passes; rollouts with the same model stay eager.

A layer is compiled once for all lengths. Attention by sequence stays eager: it depends on the lengths of the row.
"""

from contextlib import AbstractContextManager

import torch
from torch import nn
from transformers import PreTrainedModel


def layers_of(model: PreTrainedModel) -> nn.ModuleList:
    """Return the layers of a model: the outermost list of modules. Raises ValueError if there is none."""
    for module in model.base_model.modules():
        if isinstance(module, nn.ModuleList):
            return module
    raise ValueError("engine.torch_compile: this model has no list of layers")


def compile_layers(model: PreTrainedModel) -> None:
    """Compile each layer at its first call. Results differ from eager layers by rounding."""
    for layer in layers_of(model):
        layer.compile(dynamic=True)


def eager() -> AbstractContextManager[object]:
    """Return a context in which compiled layers run as written: decoding has a new length at every token."""
    return torch.compiler.set_stance("force_eager")
