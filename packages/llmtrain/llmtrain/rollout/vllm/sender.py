"""Transfer of weights to vLLM, through its weight-transfer API.

    transport   vLLM's workers are                       data sent
    value       in the trainer's process                 the tensors themselves
    file        other processes of this machine          a safetensors file in shared memory
    ipc         other processes on GPUs seen from here   handles of GPU memory
    nccl        on GPUs of their own                     a broadcast from the first trainer rank

    Parameters ► sender ► Client ► vLLM ► a worker's transfer engine ► model.load_weights
        └─ checksums before sending       └─ checksums on arrival (receiver.py)

`ipc` and `nccl` are vLLM's own backends with checksums added; they need GPUs. The tests run them with
stand-ins for NCCL and for handles of GPU memory.
A LoRA adapter, which is small, is sent by value or as a file.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, PretrainedConfig
from vllm.distributed.weight_transfer.base import ParamMeta, TrainerInitInfo, TrainerWeightTransferEngine, WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo, IPCTrainerWeightTransferEngine
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
from vllm.distributed.weight_transfer.packed_tensor import (
    DEFAULT_PACKED_BUFFER_SIZE_BYTES,
    PackedIpcChunk,
    packed_ipc_producer,
)

from ...policy.published import published
from .receiver import checksum

BACKENDS = {"value": "checked_direct", "file": "checked_direct", "ipc": "checked_ipc", "nccl": "checked_nccl"}
"""vLLM's name of the worker backend for each transport."""


class Parameters(WeightSource):
    """Current weights in the engine's dtype and on its kind of device, each with a checksum taken when it is read.

    A vector that is neither a layer's weight nor its bias, such as the correction of a router, keeps its own dtype:
    bf16 would choose other experts.

    known: all weights by name, without data; `nccl` announces them before they are read.
    """

    def __init__(self, dtype: torch.dtype, device: str, known: Mapping[str, Tensor] | None = None) -> None:
        self.dtype, self.device, self.known = dtype, device, known or {}
        self.weights: Iterable[tuple[str, Tensor]] = ()
        self.sent: dict[str, int] = {}

    def hold(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Send these weights from now on, under transformers' names."""
        self.weights, self.sent = weights, {}
        if self.device == "cuda":
            torch.cuda.synchronize()  # they will be read on other streams

    def metadata(self) -> list[ParamMeta]:
        return [ParamMeta(name, self._dtype(name, it), tuple(it.shape)) for name, it in self.known.items()]

    def _dtype(self, name: str, weight: Tensor) -> torch.dtype:
        """Return the dtype in which a weight is sent."""
        own = weight.dim() < 2 and not name.endswith((".weight", ".bias"))
        return weight.dtype if own else self.dtype

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        for name, weight in self.weights:
            tensor = weight.detach().to(self.device, self._dtype(name, weight)).contiguous()
            self.sent[name] = checksum(name, tensor)
            yield name, tensor


class Client:
    """Interface of an engine for a sender; `version` labels the update when it ends."""

    def __init__(self, llm: Any) -> None:
        self.llm = llm
        self.version = 0

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self.llm.init_weight_transfer_engine({"init_info": init_info})

    def start_weight_update(self) -> None:
        self.llm.start_weight_update()

    def update_weights(self, update_info: Any) -> None:
        self.llm.update_weights({"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.llm.finish_weight_update(weight_version or str(self.version))


@dataclass
class DirectTrainerInit(TrainerInitInfo):
    backend: ClassVar[str] = "checked_direct"
    folder: str | None = None
    """Folder for weight files of the workers; None passes them the tensors."""


class DirectSender(TrainerWeightTransferEngine[DirectTrainerInit]):
    """Sender by value or by file, in one piece."""

    init_info_cls = DirectTrainerInit
    folder: str | None = None

    @classmethod
    def trainer_init(cls, init_info: DirectTrainerInit, *, client: Any, source: WeightSource | None = None) -> Any:
        sender = cls(client=client, source=source)
        sender.folder = init_info.folder
        client.init_weight_transfer_engine({})
        return sender

    def send_weights(self) -> None:
        weights = dict(self.source)
        self.client.start_weight_update()
        if self.folder is None:
            self.client.update_weights({"names": list(weights), "tensors": list(weights.values())})
        else:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="llmtrain-") as folder:
                path = str(Path(folder, "weights.safetensors"))
                save_file(weights, path)
                self.client.update_weights({"path": path})
        self.client.finish_weight_update()


class SpreadIPC(IPCTrainerWeightTransferEngine):
    """Sender of GPU memory handles to all workers of a tensor-parallel engine.

    vLLM's own sender expects a trainer process on each of their GPUs. This one holds all weights in one process and
    copies each piece to every GPU of the engine.
    """

    workers = 1
    """Number of GPUs of the engine: the first ones visible to this process."""

    def _send_packed(self, source: WeightSource) -> None:
        weights = tee(source, self.workers)
        for pieces in zip(*(self._pieces(gpu, weights[gpu]) for gpu in range(self.workers)), strict=True):
            handles = {uuid: handle for piece in pieces for uuid, handle in piece.ipc_handle.items()}
            first = pieces[0]
            self._do_send(first.names, first.dtype_names, first.shapes, handles, first.tensor_sizes)
        torch.cuda.ipc_collect()

    def _pieces(self, gpu: int, weights: Iterable[tuple[str, Tensor]]) -> Iterator[PackedIpcChunk]:
        """Yield the weights in pieces that are stored on one GPU."""
        uuid, size = str(torch.cuda.get_device_properties(gpu).uuid), self.packed_buffer_size_bytes
        producer = packed_ipc_producer(iter(weights), uuid, lambda item: item[1], size)
        while True:
            with torch.cuda.device(gpu):
                piece = next(producer, None)
            if piece is None:
                return
            yield piece


def make_sender(
    transport: str,
    client: Any,
    source: Parameters,
    *,
    address: str = "",
    port: int = 0,
    workers: int = 1,
    buffer: int = DEFAULT_PACKED_BUFFER_SIZE_BYTES,
    first: bool = True,
) -> TrainerWeightTransferEngine:
    """Return the trainer's end of a transport; its `send_weights` is one full update.

    Args:
        client: `Client`, or an object with its methods for engines in other processes.
        address, port: nccl: meeting point of this process and the workers.
        workers: nccl: number of workers of all engines; ipc: number of the engine's workers.
        buffer: ipc: bytes packed at a time, see `packed_bytes`.
        first: ipc: True in the process that calls the engines, whose client is used; each other process of a group
            only adds the handles of its GPU, and all iterate over the weights.
    """
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    info = {
        "value": lambda: DirectTrainerInit(rank=0),
        "file": lambda: DirectTrainerInit(shared, rank=0),
        "ipc": lambda: IPCTrainerInitInfo(packed=True, packed_buffer_size_bytes=buffer, rank=int(not first)),
        "nccl": lambda: NCCLTrainerInitInfo(address, port, 1 + workers, rank=0),
    }[transport]()
    if transport == "ipc" and workers > 1:
        sender = SpreadIPC.trainer_init(info, client=client, source=source)
        sender.workers = workers
        return sender
    return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)


def packed_bytes(config: PretrainedConfig, dtype: torch.dtype, trust_remote_code: bool = False) -> int:
    """Return the size of vLLM's ipc buffer in bytes: room for the largest weight of a model, sent in this dtype."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
    largest = max(weight.numel() for _, weight in published(model, model.named_parameters()))
    return max(DEFAULT_PACKED_BUFFER_SIZE_BYTES, largest * dtype.itemsize)


WeightTransferTrainerFactory.register_engine("checked_direct", DirectSender)
