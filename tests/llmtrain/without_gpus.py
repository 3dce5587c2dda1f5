"""vLLM's transfers of weights without GPUs.

nccl    tensors go through the TCP store where the processes meet
ipc     both ends are in one process, and a handle of GPU memory is a tensor's place in a list;
        or in several processes, a GPU is a folder, and a handle the name of a file there that both ends map
"""

import os
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import torch
from torch.multiprocessing import reductions
from vllm.distributed.utils import StatelessProcessGroup
from vllm.distributed.weight_transfer import nccl_engine, packed_tensor


class Stream:
    def synchronize(self) -> None: ...


class Store:
    """Stands for vLLM's communicator."""

    def __init__(self, info, rank: int) -> None:
        self.rank = rank
        self.group = StatelessProcessGroup.create(info.master_address, info.master_port, rank, info.world_size)

    def broadcast(self, tensor: torch.Tensor, src: int, stream: object = None) -> None:
        found = self.group.broadcast(tensor, src)
        if self.rank != src:
            tensor.copy_(found)
            if "SPOIL" in os.environ:
                tensor[0] ^= 1

    def destroy(self) -> None: ...


class Alone:
    """A trainer's communicator, whose workers never come."""

    def broadcast(self, tensor: torch.Tensor, src: int, stream: object = None) -> None:
        Event().wait()


def install_nccl(put=setattr, trainer=lambda info: Store(info, 0)) -> None:
    """In a trainer's process or a worker's; put: monkeypatch.setattr where it is to end with a test."""
    put(nccl_engine, "open_trainer_endpoint", trainer)
    put(nccl_engine, "worker_init_process_group", lambda info, mine: Store(info, mine.rank + info.rank_offset))
    put(packed_tensor, "_get_streams", lambda device, count: [Stream()] * count)
    put(torch.accelerator, "current_device_index", lambda: 0)
    put(torch.cuda, "stream", nullcontext)


def start(folder, config, stops):
    """In an actor: a vLLM engine that waits for broadcasts."""
    from llmtrain.rollout.vllm.vllm_engine import VLLMEngine

    engine = VLLMEngine(folder, config, stops, transport="nccl")
    install_nccl()
    return engine


def spoil(actor) -> None:
    """In an actor: change a bit of what arrives from now on."""
    os.environ["SPOIL"] = "1"


def install_ipc(put) -> list[torch.Tensor]:
    """The tensors whose handles were given away; put: monkeypatch.setattr."""
    empty, gpu, given = torch.empty, SimpleNamespace(uuid="GPU-0"), list[torch.Tensor]()

    def give(tensor):
        given.append(tensor)
        return None, (len(given) - 1, *[None] * 6)

    put(torch, "empty", lambda *size, device=None, **rest: empty(*size, device="cpu", **rest))
    put(packed_tensor, "reduce_tensor", give)
    put(reductions, "rebuild_cuda_tensor", lambda handle, *rest: given[handle])
    put(torch.accelerator, "current_device_index", lambda: 0)
    put(torch.cuda, "get_device_properties", lambda device: gpu)
    put(torch.cuda, "current_stream", Stream)
    put(torch.cuda, "ipc_collect", lambda: None)
    return given


def install_mapped_ipc(put, folder: str, own: int = 0) -> None:
    """In a trainer's process: memory of GPU i is files in `folder`/GPU-i, whose names are its handles.

    own: the GPU of the process.
    """
    empty, gpu = torch.empty, [own]

    @contextmanager
    def device(index):
        gpu[0] = index
        yield

    def allocate(*size, device=None, **rest):
        if device != "cuda":
            return empty(*size, device=device, **rest)
        place = Path(folder, f"GPU-{gpu[0]}")
        place.mkdir(exist_ok=True)
        path = str(place / f"{len(list(place.iterdir()))}")
        mapped = torch.from_file(path, shared=True, size=size[0], dtype=torch.uint8)
        mapped.handle = path
        return mapped

    put(torch, "empty", allocate)
    put(packed_tensor, "reduce_tensor", lambda tensor: (None, (tensor.handle, len(tensor), *[None] * 5)))
    put(torch.accelerator, "current_device_index", lambda: own)
    put(torch.cuda, "synchronize", lambda: None)
    put(torch.cuda, "device", device)
    put(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=f"GPU-{index}"))
    put(torch.cuda, "current_stream", Stream)
    put(torch.cuda, "ipc_collect", lambda: None)


def map_ipc(worker) -> int:
    """In a worker of vLLM: open such handles, as the GPU of its rank; return its process."""

    open_handles_of(worker.rank)
    return os.getpid()


def open_handles_of(gpu: int) -> None:
    def rebuild(path, size, *rest):
        assert f"GPU-{gpu}/" in path, "a handle of another GPU"
        return torch.from_file(path, shared=True, size=size, dtype=torch.uint8)

    reductions.rebuild_cuda_tensor = rebuild
    torch.cuda.get_device_properties = lambda index: SimpleNamespace(uuid=f"GPU-{gpu}")


def start_on_gpu(folder, config, stops):
    """In an actor: a vLLM engine on the GPU that its environment names, which waits for handles of memory there."""
    from llmtrain.rollout.vllm.vllm_engine import VLLMEngine

    engine = VLLMEngine(folder, config, stops, transport="ipc")
    open_handles_of(int(os.environ["ON_GPU"]))
    return engine
