"""A GPU as a ledger of bytes, shared by a trainer and a vLLM engine, and an engine that books what vLLM would.

    trainer     live bytes, and what torch's pool has reserved of the GPU and keeps until its cache is emptied
    engine      allocations with tags (weights, kv_cache), unmapped while it sleeps; mapping fails where the GPU is full

Sizes are GiB. Events are kept in their order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch


class OutOfMemory(torch.OutOfMemoryError):
    """The GPU is full."""


@dataclass
class GPU:
    """One GPU, and its trainer's pool."""

    total: float
    live: float = 0.0
    """Bytes of the trainer's tensors."""
    reserved: float = 0.0
    """Bytes that the trainer's pool has of the GPU."""
    engine: dict[str, float] = field(default_factory=dict)
    """Mapped bytes of the engine by tag."""
    host: float = 0.0
    """Bytes of host memory that the sleeping engine holds."""
    events: list[str] = field(default_factory=list)
    peak: float = 0.0

    @property
    def free(self) -> float:
        return self.total - self.reserved - sum(self.engine.values())

    def allocate(self, size: float) -> None:
        """In the trainer. Like torch, empty the cache and try again before failing."""
        if self.live + size > self.reserved:
            if self.live + size - self.reserved > self.free:
                self.reserved = self.live
            self._need(self.live + size - self.reserved)
            self.reserved = self.live + size
        self.live += size
        self._note_peak()

    def drop(self, size: float) -> None:
        """In the trainer: the pool keeps what the tensors had."""
        self.live -= size

    @contextmanager
    def working(self, size: float, event: str) -> Iterator[None]:
        """In the trainer: memory for the time of some work."""
        self.events.append(event)
        self.allocate(size)
        yield
        self.drop(size)

    def empty_cache(self) -> None:
        self.events.append("empty_cache")
        self.reserved = self.live

    def map(self, tag: str, size: float) -> None:
        """In the engine: `cuMemCreate` takes free bytes or fails; it cannot ask another process for its cache."""
        self._need(size)
        self.engine[tag] = size
        self._note_peak()

    def _need(self, size: float) -> None:
        if size > self.free + 1e-9:
            raise OutOfMemory(f"{size:.1f} GiB wanted, {self.free:.1f} free")

    def _note_peak(self) -> None:
        self.peak = max(self.peak, self.total - self.free)


def fake_llm(gpu: GPU, weights: float, residual: float = 1.0, meanwhile=lambda: None):
    """Return a stand-in for vllm.LLM whose memory is on `gpu`.

    weights: GiB of the model. residual: GiB that sleeping does not give back: context, CUDA graphs.
    meanwhile: called while the engine measures what its start takes.
    """

    class LLM:
        def __init__(self, model, *, gpu_memory_utilization=0.5, enable_sleep_mode=False, **options) -> None:
            budget = gpu_memory_utilization * gpu.total
            if gpu.free < budget:  # vLLM's request_memory
                raise ValueError(f"Free memory ({gpu.free:.1f}/{gpu.total:.1f} GiB) on startup is less than desired")
            gpu.events.append("start")
            before = gpu.free
            gpu.map("residual", residual)
            gpu.map("weights", weights)
            meanwhile()
            cache = budget - (before - gpu.free)  # what others took meanwhile is charged to the engine, too
            if cache <= 0:
                raise ValueError("No available memory for the cache blocks")
            gpu.map("kv_cache", cache)
            self.sizes = {"weights": weights, "kv_cache": cache}
            self.sleeping, self.version = False, "0"
            assert enable_sleep_mode

        def sleep(self, level=1) -> None:
            gpu.events.append(f"sleep {level}")
            assert not self.sleeping
            for tag in self.sizes:
                del gpu.engine[tag]
            self.sleeping = True
            gpu.host = weights if level == 1 else 0.0
            if level == 2:
                self.version = None

        def wake_up(self, tags=None) -> None:
            gpu.events.append(f"wake {'+'.join(tags or ['all'])}")
            for tag in tags or self.sizes:
                gpu.map(tag, self.sizes[tag])
            self.sleeping = len(gpu.engine) < 3
            gpu.host = 0.0

        def generate(self, prompts, sampling, **rest) -> list:
            gpu.events.append("generate")
            assert not self.sleeping, "asked while it sleeps"
            assert self.version is not None, "asked without weights"
            return [SimpleNamespace(outputs=[self._response(i) for i in range(one.n)]) for one in sampling]

        def _response(self, i: int) -> SimpleNamespace:
            ids = [3 + i % 2] * (1 + i % 3) + [1]
            logprobs = SimpleNamespace(token_ids=ids, logprobs=[-0.5] * len(ids))
            versions = [SimpleNamespace(version=self.version)]
            return SimpleNamespace(
                index=i, token_ids=ids, logprobs=logprobs, finish_reason="stop", weight_versions=versions
            )

        def update_weight_version(self, version) -> None:
            self.version = version

        def get_weight_version(self):
            return self.version

        def finish_weight_update(self, version) -> None:
            self.version = version

        def collective_rpc(self, call, *args) -> list[dict]:
            return [{}]

        def reset_prefix_cache(self) -> bool:
            return True

        llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: gpu.engine.clear()))

    return LLM


class Sender:
    """Stands for vLLM's sender in the trainer's process: a buffer on the GPU while weights are sent."""

    def __init__(self, gpu: GPU, client, source, buffer: float) -> None:
        self.gpu, self.client, self.source, self.buffer = gpu, client, source, buffer

    def send_weights(self) -> None:
        assert "weights" in self.gpu.engine, "weights are sent into memory that the engine has not mapped"
        with self.gpu.working(self.buffer, "send"):
            assert dict(self.source.weights)
        self.client.finish_weight_update()
