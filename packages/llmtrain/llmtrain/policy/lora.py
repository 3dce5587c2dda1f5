"""LoRA: trains low-rank updates of frozen weights, with peft's layers.

The model keeps its class and parameter names. Checkpoints and weights for rollout engines are whole weights with the
updates added, so other code needs no change; a rollout engine that takes adapters gets only the updates.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from entrostat.settings.installation import missing

from ..settings.config import ModelConfig

ADAPTER = "policy"
Gather = Callable[[Iterable[nn.Parameter]], AbstractContextManager]
"""Function that returns a context in which this rank holds these parameters whole; a collective if they are split."""


def attach(model: PreTrainedModel, config: ModelConfig, seed: int) -> None:
    """Add updates of rank `config.lora_rank`, initially 0, to linear layers of the body; freeze all other weights.

    Raises ValueError if peft is missing, or if `lora_target_modules` names a layer that does not exist or is not a
    linear layer of the body.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise ValueError(f"model.lora_rank needs peft; {missing('peft')}") from None
    known = linear_layers(model)
    for name in config.lora_target_modules:  # peft only checks that one of several names exists
        if not any(f".{path}".endswith(f".{name}") for path, _ in model.named_modules()):
            raise ValueError(f"model.lora_target_modules: no layer is called {name}; choose from {', '.join(known)}")
    names = list(config.lora_target_modules) or known
    alpha = cast(int, config.lora_alpha)  # peft only divides it
    settings = LoraConfig(r=config.lora_rank, lora_alpha=alpha, target_modules=names, lora_dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(settings, model, adapter_name=ADAPTER)
    model.requires_grad_(False)
    linear = {name for name, layer in layers(model) if layer is not model.get_output_embeddings()}
    for name, parameter in updates(model).items():
        layer = name.partition(".lora_")[0]
        if layer not in linear:
            raise ValueError(f"model.lora_target_modules: {layer} is not a linear layer of the body; leave it out")
        parameter.requires_grad_(True)


def linear_layers(model: PreTrainedModel) -> list[str]:
    """Return the name suffixes of all linear layers except the output layer."""
    head = model.get_output_embeddings()
    found = {name for name, module in model.named_modules() if isinstance(module, nn.Linear) and module is not head}
    return sorted({name.rsplit(".", 1)[-1] for name in found})


def layers(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the name and module of every layer that has an update."""
    for name, module in model.named_modules():
        if hasattr(module, "lora_A") and ADAPTER in module.lora_A:
            yield name, module


def has_updates(model: nn.Module) -> bool:
    """Return True if some layer has an update."""
    return next(layers(model), None) is not None


def updates(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trained parameters, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if ".lora_" in name}


def whole_weights(model: PreTrainedModel, gather: Gather = nullcontext) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter as in a model without LoRA: its name, and its value with the update added.

    They are gathered one by one, so that no rank has to hold all of them; all ranks must iterate to the end.
    """
    updated = {f"{name}.base_layer.weight": layer for name, layer in layers(model)}
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        layer = updated.get(name)
        factors = [] if layer is None else [layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight]
        with gather([parameter, *factors]):
            value = parameter.detach()
            if layer is not None:
                value = value + layer.get_delta_weight(ADAPTER).detach().to(value)
            yield name.replace(".base_layer.", "."), value


def adapter_weights(model: PreTrainedModel, gather: Gather = nullcontext) -> Iterator[tuple[str, Tensor]]:
    """Yield the factors A and B of every update, named as in an adapter that peft saves; B is scaled, so B·A is added.

    They are gathered as in `whole_weights`.
    """
    for name, layer in layers(model):
        factors = layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight
        with gather(factors):
            a, b = (factor.detach() for factor in factors)
            yield f"base_model.model.{name}.lora_A.weight", a
            yield f"base_model.model.{name}.lora_B.weight", b * layer.scaling[ADAPTER]


def adapter_state(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return copies of the trained parameters on the CPU, by name."""
    return {name: parameter.detach().cpu().clone() for name, parameter in updates(model).items()}


def load_adapter_state(model: PreTrainedModel, state: dict[str, Tensor]) -> None:
    """Restore the values from `adapter_state`. Raises ValueError if they belong to other layers."""
    mine = updates(model)
    if mine.keys() != state.keys():
        raise ValueError("the checkpoint has other LoRA layers than the configuration")
    with torch.no_grad():
        for name, value in state.items():
            mine[name].copy_(value)
