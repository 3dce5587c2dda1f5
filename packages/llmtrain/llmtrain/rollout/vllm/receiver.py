"""Transfer engines for vLLM's workers, which compute checksums of arriving weights.

checked_direct    tensors of the same process, or a file
checked_adapter   the same for a LoRA adapter
checked_ipc       vLLM's ipc
checked_nccl      vLLM's nccl
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCWeightTransferEngine
from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferEngine
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from .vllm_adapter import use_adapter

AT_ONCE = {"cpu": 1 << 17, "cuda": 1 << 24}
"""Words of 8 bytes per step of a checksum: on a CPU as many as stay in its cache."""


def checksum(name: str, tensor: Tensor) -> int:
    """Return 64 bits that change with any bit of the tensor, with bit positions, and with name, dtype and shape."""
    total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
    for start, part in enumerate(words(tensor).split(AT_ONCE[tensor.device.type])):
        first = 2 * start * AT_ONCE[tensor.device.type] + 1
        odd = torch.arange(first, first + 2 * len(part), 2, device=part.device)
        total += int(odd.mul_(part).sum())  # modulo 2⁶⁴, where odd numbers have inverses
    return total % (1 << 64)


def words(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor as 8-byte integers, padded with zero bytes."""
    data = tensor.detach().reshape(-1).contiguous().view(torch.uint8)
    if len(data) % 8 or data.storage_offset() % 8:
        data = torch.cat([data, data.new_zeros(-len(data) % 8)])
    return data.view(torch.int64)


class Arriving:
    """Wrapper of a model that computes checksums of weights while they are loaded."""

    def __init__(self, model: Any, arrived: dict[str, int]) -> None:
        self.model, self.arrived = model, arrived

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> Any:
        held = list(weights)
        self.arrived.update((name, checksum(name, tensor)) for name, tensor in held)
        return self.model.load_weights(held)


class Checked:
    """Mixin of a worker's transfer engine: checksums of arriving weights, and an output head that follows them."""

    model: Any

    def start_weight_update(self) -> None:
        self.arrived: dict[str, int] = {}
        forget_packed_experts(self.model)
        super().start_weight_update()  # type: ignore[misc]

    def receive_weights(self, update_info: Any) -> None:
        model = self.model
        self.model = Arriving(model, self.arrived)
        try:
            super().receive_weights(update_info)  # type: ignore[misc]
        finally:
            self.model = model

    def finish_weight_update(self) -> None:
        super().finish_weight_update()  # type: ignore[misc]
        repack_head(self.model)


def forget_packed_experts(model: Any) -> None:
    """Let a mixture of experts on a CPU pack its weights at the next update too; vLLM would use them unpacked."""
    for layer in model.modules():
        weight = getattr(layer, "w13_weight", None)
        if isinstance(weight, Tensor) and weight.device.type == "cpu":
            layer.quant_method.moe_kernel = None


def packed_head(model: Any) -> Any:
    """Return the output head of a model on a CPU, else None. A head tied to the embedding uses a packed copy."""
    head = getattr(model, "lm_head", None)
    weight = getattr(head, "weight", None)
    return head if isinstance(weight, Tensor) and weight.device.type == "cpu" else None


def repack_head(model: Any) -> None:
    """Pack the head's copy of the embedding again; reloading weights does not."""
    if (head := packed_head(model)) is not None:
        head.quant_method.process_weights_after_loading(head)


def check_head(model: Any) -> None:
    """Raise RuntimeError if the output head computes with weights other than its own; compares only some columns."""
    if (head := packed_head(model)) is None:
        return
    columns = torch.linspace(0, head.weight.shape[1] - 1, 32).long()
    unit = torch.zeros(len(columns), head.weight.shape[1], dtype=head.weight.dtype)
    unit[torch.arange(len(columns)), columns] = 1
    if not torch.allclose(head.quant_method.apply(head, unit), head.weight[:, columns].T, rtol=1e-6, atol=1e-12):
        raise RuntimeError("the output head uses weights of an earlier version")


@dataclass
class DirectInit(WeightTransferInitInfo):
    """Initial settings: none are needed."""


@dataclass
class DirectUpdate(WeightTransferUpdateInfo):
    names: list[str] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    path: str | None = None
    """Path of a safetensors file, used instead of tensors."""

    def weights(self) -> dict[str, Tensor]:
        return load_file(self.path) if self.path else dict(zip(self.names, self.tensors, strict=True))


class Direct(WeightTransferEngine[DirectInit, DirectUpdate]):
    """Transfer engine that loads tensors of the same process, or a file."""

    init_info_cls = DirectInit
    update_info_cls = DirectUpdate

    def init_transfer_engine(self, init_info: DirectInit) -> None: ...

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def receive_weights(self, update_info: DirectUpdate) -> None:
        self.model.load_weights(update_info.weights().items())

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None: ...


class CheckedDirect(Checked, Direct): ...


class CheckedAdapter(Direct):
    """Transfer engine that keeps an adapter until the update ends, when vLLM drops the old one."""

    def start_weight_update(self) -> None:
        self.adapter: dict[str, Tensor] = {}
        self.arrived: dict[str, int] = {}

    def receive_weights(self, update_info: DirectUpdate) -> None:
        for name, tensor in update_info.weights().items():
            self.arrived[name] = checksum(name, tensor)
            self.adapter[name] = tensor.clone()  # the tensor may belong to the trainer

    def finish_weight_update(self) -> None: ...


class CheckedIPC(Checked, IPCWeightTransferEngine): ...


class CheckedNCCL(Checked, NCCLWeightTransferEngine): ...


class Extension:
    """Extension of vLLM's workers; importing this module for it registers the backends."""

    def use_adapter(self) -> None:
        """Answer adapter requests with the adapter of the last update."""
        engine: CheckedAdapter = self.weight_transfer_engine  # type: ignore[attr-defined]
        use_adapter(engine.model, engine.adapter, engine.vllm_config.lora_config.lora_dtype)

    def arrived_weights(self) -> dict[str, int]:
        """Return checksums of the last update by name. Raises RuntimeError if the output head does not follow it."""
        engine: Checked | CheckedAdapter = self.weight_transfer_engine  # type: ignore[attr-defined]
        check_head(engine.model)
        return engine.arrived


ENGINES = {"direct": CheckedDirect, "adapter": CheckedAdapter, "ipc": CheckedIPC, "nccl": CheckedNCCL}
for name, engine in ENGINES.items():
    WeightTransferEngineFactory.register_engine(f"checked_{name}", engine)
