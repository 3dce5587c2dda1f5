"""vLLM's broadcast of weights without NCCL and GPUs: tensors go through the TCP store where its processes meet."""

import os
from contextlib import nullcontext
from threading import Event

import torch
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


def install(put=setattr, trainer=lambda info: Store(info, 0)) -> None:
    """In a trainer's process or a worker's; put: monkeypatch.setattr where it is to end with a test."""
    put(nccl_engine, "open_trainer_endpoint", trainer)
    put(nccl_engine, "worker_init_process_group", lambda info, mine: Store(info, mine.rank + info.rank_offset))
    put(packed_tensor, "_get_streams", lambda device, count: [Stream()] * count)
    put(torch.accelerator, "current_device_index", lambda: 0)
    put(torch.cuda, "stream", nullcontext)


def start(folder, config, stops):
    """In an actor: a vLLM engine that waits for broadcasts."""
    from llmtrain.rollout.vllm_engine import VLLMEngine

    engine = VLLMEngine(folder, config, stops, transport="nccl")
    install()
    return engine


def spoil(actor) -> None:
    """In an actor: change a bit of what arrives from now on."""
    os.environ["SPOIL"] = "1"
