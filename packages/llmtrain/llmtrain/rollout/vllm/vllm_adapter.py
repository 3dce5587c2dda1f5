"""LoRA adapter in a vLLM worker, made from tensors instead of a folder."""

from typing import Any

from torch import Tensor
from vllm.lora.lora_model import LoRAModel
from vllm.lora.peft_helper import PEFTHelper
from vllm.lora.request import LoRARequest

REQUEST = LoRARequest("policy", 1, "sent by the trainer")
"""Adapter name in requests; the last field is a folder, which vLLM reads only if it does not hold the adapter."""


def use_adapter(model: Any, tensors: dict[str, Tensor], dtype: Any) -> None:
    """Make `model` answer adapter requests with these factors, named as peft does; B includes the scale.

    The tensors are kept. Raises ValueError for a layer without LoRA support in vLLM.
    """
    rank = next(len(tensor) for name, tensor in tensors.items() if ".lora_A." in name)
    mapper = getattr(model, "hf_to_vllm_mapper", None)
    adapter = LoRAModel.from_lora_tensors(
        REQUEST.lora_int_id,
        tensors,
        PEFTHelper(r=rank, lora_alpha=rank, target_modules=[]),
        device="cpu",
        dtype=dtype,
        weights_mapper=mapper and mapper.get_rename_mapper(),
    )
    model.lora_manager.remove_adapter(adapter.id)
    model.lora_manager.add_adapter(adapter)
    model.lora_manager.activate_adapter(adapter.id)
    unknown = sorted(set(adapter.loras) - set(model.lora_manager.modules))
    if unknown:
        raise ValueError(f"vllm has no LoRA support for {unknown[0]}: use --rollout.lora-sync merged")
