"""New weights from learners' GPUs to those of all rollout engines, by vLLM's senders, without the object store.

    nccl, GPUs of their own     learner 0 ─────── Parameters ► sender ══ broadcast ══► workers of engine 0, 1, ...
    ipc, the learners' GPUs     each learner ──── Parameters ► sender ══ handles ════► worker on the learner's GPU
                                                                 └─ Engines: learner 0's calls, to all actors at once

An engine takes weights after it has answered earlier requests, and the learners wait for that.
"""

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import ray
import torch
from ray.exceptions import RayError
from torch import Tensor

from ...process.local_ranks import free_port
from ..rollout_engine import RolloutError, Weights
from .causes import cause

SLACK = 1.0
"""Extra seconds to wait for a call's own error, which names the engine."""


class Engines:
    """All engines, presented to vLLM's sender as one.

    workers: workers per engine.
    timeout: seconds for an update.
    """

    def __init__(self, actors: Sequence[Any], workers: int, timeout: float) -> None:
        self.actors, self.workers, self.timeout = actors, workers, timeout

    def begin(self, version: int) -> None:
        """Start the update to this version."""
        self.version, self.end = version, time.monotonic() + self.timeout
        self.failed: Future[None] = Future()
        """Error of a failed call, which the sender does not see while it waits in a broadcast."""

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        each = [dict(init_info) for _ in self.actors]
        if "rank_offset" in init_info:  # nccl, where workers have ranks
            for i, own in enumerate(each):
                own["rank_offset"] += i * self.workers
        self._transfer("init_weight_transfer_engine", each)

    def start_weight_update(self) -> None:
        self._transfer("start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._transfer("update_weights", [update_info] * len(self.actors))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._transfer("finish_weight_update", [str(self.version)] * len(self.actors))

    def accept(self, sent: dict[str, int]) -> None:
        """Raise RolloutError unless every engine reports this version and received weights with these checksums."""
        for i, told in enumerate(self._all([actor.accept.remote(self.version, sent) for actor in self.actors])):
            if told != self.version:
                raise RolloutError(f"rollout engine {i} reports weights {told} instead of {self.version}")

    def _transfer(self, call: str, arguments: Sequence[Any] | None = None) -> None:
        each = [(argument,) for argument in arguments] if arguments else [()] * len(self.actors)
        try:
            self._all([actor.transfer.remote(call, *own) for actor, own in zip(self.actors, each, strict=True)])
        except RolloutError as error:
            self.failed.set_exception(error)
            raise

    def _all(self, calls: list[Any]) -> list[Any]:
        """Return the results of the engines. Raises RolloutError if a call fails or takes too long."""
        waiting = list(calls)
        while waiting:
            done, waiting = ray.wait(waiting, timeout=max(self.end - time.monotonic(), 0.0))
            if not done:
                engine = calls.index(waiting[0])
                raise RolloutError(
                    f"rollout engine {engine} hangs: it took no weights within rollout.timeout {self.timeout:g} s"
                )
            for call in done:
                try:
                    ray.get(call)
                except RayError as error:
                    raise RolloutError(f"rollout engine {calls.index(call)} {cause(error)}") from None
        return ray.get(calls)


@dataclass(frozen=True)
class Direct:
    """Way of weights to the engines."""

    transport: Literal["ipc", "nccl"]
    dtype: torch.dtype
    """Dtype of the engines."""
    device: str = "cuda"
    """Device of learners and engines."""
    buffer: int = 0
    """ipc: bytes sent at a time, see `packed_bytes`."""
    folder: Path | None = None
    """ipc without a `buffer`: folder of the model, whose largest weight fits into one."""
    trust_remote_code: bool = False
    """Run the Python code in `folder`."""

    def piece(self) -> int:
        """Return the bytes sent at a time."""
        if self.buffer or self.folder is None:
            return self.buffer
        from transformers import AutoConfig

        from ..vllm.sender import packed_bytes

        config = AutoConfig.from_pretrained(self.folder, trust_remote_code=self.trust_remote_code)
        return packed_bytes(config, self.dtype, self.trust_remote_code)


class DirectWeights:
    """Sender of weights to all engines.

    By nccl learner 0 sends while the others read the weights equally often; by ipc all learners send.

    engines: None on learners other than 0.
    known: nccl: all weights by name, without data.
    """

    def __init__(self, way: Direct, engines: Engines | None, known: Mapping[str, Tensor]) -> None:
        from ..vllm.sender import Parameters

        self.way, self.engines, self.source = way, engines, Parameters(way.dtype, way.device, known)
        self.sender: Any = None

    def send(self, weights: Weights, version: int) -> None:
        """Send the weights. Raises RolloutError if that fails or exceeds the engines' timeout."""
        if self.engines is None:
            sent: Future[None] = Future()
            self._send(weights, sent)
            return sent.result()
        self.engines.begin(version)
        sent = Future()
        Thread(target=self._send, args=(weights, sent), daemon=True).start()
        limit = self.engines.timeout
        done, _ = wait([self.engines.failed, sent], timeout=limit + SLACK, return_when=FIRST_COMPLETED)
        if not done:
            raise RolloutError(f"sending weights {version} hangs: it took more than rollout.timeout {limit:g} s")
        for future in done:
            future.result()
        self.engines.accept(self.source.sent)

    def _send(self, weights: Weights, sent: Future[None]) -> None:
        """Send, on learner 0 in a thread of its own: a broadcast that an engine does not join cannot be interrupted."""
        try:
            self.source.hold(weights)
            if self.sender is None:
                self.sender = self._make_sender()
            self.sender.send_weights()
            self.source.weights = ()
            sent.set_result(None)
        except RolloutError as error:
            sent.set_exception(error)
        except Exception as error:
            said = (str(error).strip() or "no reason given").splitlines()[0]
            sent.set_exception(RolloutError(f"sending weights failed: {type(error).__name__}: {said}"))

    def _make_sender(self) -> Any:
        """Return a sender that is connected to the workers of all engines."""
        from ..vllm.sender import make_sender

        if self.way.transport == "ipc":
            first, size = self.engines is not None, self.way.piece()
            return make_sender("ipc", self.engines, self.source, first=first, buffer=size)
        assert self.engines is not None
        workers = self.engines.workers * len(self.engines.actors)
        address, port = os.environ["MASTER_ADDR"], free_port()
        return make_sender("nccl", self.engines, self.source, address=address, port=port, workers=workers)
