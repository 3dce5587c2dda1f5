"""Rollout engines in actors of a Ray cluster, called by rank 0 for all ranks.

    rank 0 ── request, split by prompts ──► actor 0, actor 1, ...  ── responses ──► rank 0 ── share of each ──► ranks
           ── weights, put into the object store once, or broadcast ──► all actors

Only rank 0 calls, and an actor runs its calls in order: requests made before new weights are answered with the old
ones, so that staleness is exact and runs repeat. No rank waits for weights in the object store; for a broadcast the
learners wait until all engines have answered earlier requests.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import ray
import torch
from ray.exceptions import GetTimeoutError, RayError

from ...process.gpu_memory import empty_cache
from ...process.ranks import Ranks
from ...sequences.rollouts import Rollouts, merge
from ...settings.config import RolloutConfig, TrainConfig
from ..make import start_engine
from ..rollout_engine import Pending, Request, RolloutEngine, RolloutError, Start, Weights, check_answer
from .broadcast import Broadcast, Engines
from .causes import cause
from .packed_weights import pack
from .places import Seat, seats
from .rollout_actor import RolloutActor

START = 600.0
"""Seconds allowed for an engine to start; rollout.timeout if larger."""
LEAVE = 2.0
"""Seconds allowed for engines to close by themselves."""


def start_here(start: Start, threads: int) -> RolloutEngine:
    """Start an engine in an actor. threads: number of torch threads; 0 for OMP_NUM_THREADS."""
    threads = threads or int(os.environ.get("OMP_NUM_THREADS", 0))  # torch was imported before it was set
    if threads:
        torch.set_num_threads(threads)
    return start_engine(start)


def remote_engine(config: TrainConfig, start: Start, ranks: Ranks) -> "RemoteEngine":
    """Start the rollout engines of a run from a learner.

    Engines that share the learners' GPUs have started when this returns.
    """
    nccl = (torch.bfloat16, config.device) if config.topology.weight_sync == "nccl" else None
    each = replace(start, folder=start.folder.resolve(), rank=0, transport="nccl" if nccl else None)
    make = partial(start_here, each, config.threads)
    engine = RemoteEngine(make, config.rollout, ranks, seats(config), config.topology.restarts, nccl)
    if config.topology.placement == "colocated" and config.device != "cpu":
        engine.share(config.sleep_level)
    return engine


@dataclass
class Remote:
    """Actor, and the updates sent to it that are not confirmed yet."""

    actor: Any
    started: Any
    since: float | None = None
    """Time when it was first known to run."""
    updates: list[tuple[int, Any]] = field(default_factory=list)
    """Versions sent since the last answer, and the calls that will report the engine's version."""


@dataclass(eq=False)
class Job:
    """Request split over the engines."""

    request: Request
    version: int
    """Version of the weights that must answer."""
    parts: list[Request]
    answers: list[Any] = field(default_factory=list)


class RemoteEngine(RolloutEngine):
    """Rollout engines in other processes. All ranks make the same calls; every rank raises errors of an answer.

    An engine that crashes, gives no answer within `config.timeout` seconds or returns invalid output is killed and
    restarted, up to `restarts` times in total, and the request is repeated with its original weights. After that such a
    failure raises RolloutError.

    make: makes an engine in its actor, with the weights of version 0.
    seats: placement of each engine.
    nccl: dtype and device type of broadcast weights; not possible with restarts.
    """

    def __init__(
        self,
        make: Callable[[], RolloutEngine],
        config: RolloutConfig,
        ranks: Ranks,
        seats: Sequence[Seat],
        restarts: int = 0,
        nccl: tuple[torch.dtype, str] | None = None,
    ) -> None:
        self.make, self.config, self.ranks, self.seats = make, config, ranks, seats
        self.restarts, self.sent = restarts, 0
        self.sleep_level, self.released = 0, False
        self.nccl = nccl
        self.broadcast: Broadcast | None = None
        self.shapes: dict[str, torch.Size] = {}
        self.jobs: deque[Job] = deque()
        self.weights: dict[int, Any] = {}
        """Weights by version that a restarted engine would need; empty without restarts."""
        self.engines = [self._start(i) for i in range(len(seats))] if ranks.rank == 0 else []

    def share(self, sleep_level: int) -> None:
        """Share the learners' GPUs in turns; wait until the engines have started there.

        vLLM measures free memory when it starts, and would count learners' allocations meanwhile as its own.
        sleep_level: vLLM's sleep level, see `VLLMEngine`; 0 for engines that keep their memory.
        """
        self.sleep_level = sleep_level
        self._together(lambda: [self._wait_for_start(i) for i in range(len(self.engines))])

    # Calls --------------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int | None:
        return None if self.released else self.sent

    def submit(self, request: Request) -> Pending:
        if self.ranks.rank:
            return lambda: self._receive(None)
        count = len(self.seats)
        shares = [list(range(i, len(request.prompt_ids), count)) for i in range(count)]
        parts = [replace(request, shares=[share]) for share in shares if share]
        job = Job(request, self.sent, parts)
        job.answers = [self.engines[i].actor.answer.remote(part) for i, part in enumerate(parts)]
        self.jobs.append(job)
        return lambda: self._receive(self._answer(job))

    def update(self, weights: Weights, version: int) -> None:
        self.sent, self.released = version, False
        if self.nccl:
            self._broadcast(weights, version, *self.nccl)
            return
        if self.ranks.rank:
            read(weights)
        else:
            packed = ray.put(pack(weights))
        if self.sleep_level:  # engines wake up on new weights: free the GPU memory of gathered weights first
            empty_cache()
            self.ranks.barrier()
        if self.ranks.rank:
            return
        if self.restarts:
            self.weights[version] = packed
        for engine in self.engines:
            self._send(engine, packed, version)

    def _broadcast(self, weights: Weights, version: int, dtype: torch.dtype, device: str) -> None:
        """Broadcast the weights: all ranks read them, rank 0 sends them.

        Raises RolloutError on all ranks if an engine is not ready, and on rank 0 alone if sending fails: the others may
        still wait for it in a collective.
        """
        self.shapes = self.shapes or {name: weight.shape for name, weight in weights}
        self._together(self._wait_until_idle)
        if self.ranks.rank:
            read(weights)
            return
        if self.broadcast is None:
            actors = [engine.actor for engine in self.engines]
            engines = Engines(actors, self.config.tensor_parallel_size, self.config.timeout)
            self.broadcast = Broadcast(engines, self.shapes, dtype, device)
        self.broadcast.send(weights, version)

    def release(self) -> None:
        """Put engines that share the learners' GPUs to sleep; return on all ranks when they sleep."""
        if self.sleep_level:
            self._together(self._release)
            self.released = self.sleep_level == 2

    def _release(self) -> None:
        calls, limit = [engine.actor.release.remote() for engine in self.engines], self.config.timeout
        for i, call in enumerate(calls):
            self._result(i, call, limit, f"did not sleep within rollout.timeout {limit:g} s")

    def _wait_until_idle(self) -> None:
        """Wait until all engines have answered earlier requests. Raises RolloutError."""
        began, limit = time.monotonic(), self.config.timeout
        for i, engine in enumerate(self.engines):
            left = max(began, self._wait_for_start(i)) + limit - time.monotonic()
            self._result(i, engine.actor.version.remote(), left, f"gave no answer within rollout.timeout {limit:g} s")

    def _together(self, work: Callable[[], object]) -> None:
        """Run `work` on rank 0 while the others wait; all ranks raise its RolloutError, if any."""
        error: RolloutError | None = None
        if self.ranks.rank == 0:
            try:
                work()
            except RolloutError as found:
                error = found
        error = self.ranks.deal([error] * self.ranks.size if self.ranks.rank == 0 else None)
        if error is not None:
            raise error

    def _result(self, i: int, call: Any, seconds: float, failed: str) -> Any:
        """Return the result of a call to engine i. Raises RolloutError; `failed` describes a timeout."""
        try:
            return ray.get(call, timeout=max(seconds, 0.0))
        except GetTimeoutError:
            raise RolloutError(f"rollout engine {i} hangs: it {failed}") from None
        except RayError as error:
            raise RolloutError(f"rollout engine {i} {cause(error)}") from None

    def close(self) -> None:
        """Let engines end their processes and free shared memory, then kill the remaining ones."""
        if leaving := [engine.actor.close.remote() for engine in self.engines]:
            ray.wait(leaving, num_returns=len(leaving), timeout=LEAVE)
        for engine in self.engines:
            ray.kill(engine.actor)
        self.engines = []

    # Answers ------------------------------------------------------------------------------------------------------

    def _receive(self, shares: Sequence[Rollouts | RolloutError] | None) -> Rollouts:
        """Return this rank's share; only rank 0 passes the shares."""
        mine = self.ranks.deal(shares)
        if isinstance(mine, RolloutError):
            raise mine
        return mine

    def _answer(self, job: Job) -> Sequence[Rollouts | RolloutError]:
        """Return the share of each rank, or the error."""
        began = time.monotonic()
        try:
            whole = merge([self._part(i, job, began) for i in range(len(job.parts))])
        except RolloutError as error:
            return [error] * self.ranks.size
        finally:
            self.jobs.remove(job)
        needed = min([self.sent, *(job.version for job in self.jobs)])
        self.weights = {version: packed for version, packed in self.weights.items() if version >= needed}
        return [whole.answering(torch.tensor(share, dtype=torch.long)) for share in job.request.shares]

    def _part(self, i: int, job: Job, began: float) -> Rollouts:
        """Return the answer of engine i, restarting it as often as allowed."""
        while True:
            try:
                return self._await(i, job, began)
            except RolloutError as error:
                if not self.restarts:
                    raise
                self.restarts -= 1
                print(f"{error}; restarted, {self.restarts} restarts left", flush=True)
                self._start_anew(i)

    def _await(self, i: int, job: Job, began: float) -> Rollouts:
        """Return the answer of engine i. Raises RolloutError if it is late or invalid."""
        engine, name, limit = self.engines[i], f"rollout engine {i}", self.config.timeout
        left = max(began, self._wait_for_start(i)) + limit - time.monotonic()
        before = [update for update in engine.updates if update[0] <= job.version]
        sent = [version for version, _ in before]
        calls = [*(report for _, report in before), job.answers[i]]
        *told, rollouts = self._result(i, calls, left, f"gave no answer within rollout.timeout {limit:g} s")
        engine.updates = engine.updates[len(sent) :]
        if told != sent:
            raise RolloutError(f"{name} reports weights {told} instead of {sent}")
        try:
            check_answer(rollouts, job.parts[i], job.version, rank=0)
        except RolloutError as error:
            raise RolloutError(f"{name}: {error}") from None
        return rollouts

    # Engines ------------------------------------------------------------------------------------------------------

    def _wait_for_start(self, i: int) -> float:
        """Return the time when engine i was first known to run. Raises RolloutError if it does not start."""
        engine, limit = self.engines[i], max(START, self.config.timeout)
        if engine.since is None:
            self._result(i, engine.started, limit, f"did not start within {limit:g} s")
            engine.since = time.monotonic()
        return engine.since

    def _start(self, i: int) -> Remote:
        seat = self.seats[i]
        kind: Any = ray.remote(RolloutActor)
        actor = kind.options(**seat.options).remote(self.make, seat.environment)
        return Remote(actor, actor.version.remote())

    def _send(self, engine: Remote, packed: Any, version: int) -> None:
        engine.updates.append((version, engine.actor.update.remote(packed, version)))

    def _start_anew(self, i: int) -> None:
        """Replace engine i by a new one, and repeat its open requests with the same weights."""
        ray.kill(self.engines[i].actor)
        engine = self.engines[i] = self._start(i)
        held = None
        for job in self.jobs:
            if job.version != held and job.version in self.weights:
                self._send(engine, self.weights[job.version], job.version)
                held = job.version
            if i < len(job.parts):
                job.answers[i] = engine.actor.answer.remote(job.parts[i])
        if self.sent != held and self.sent in self.weights:
            self._send(engine, self.weights[self.sent], self.sent)


def read(weights: Iterable[Any]) -> None:
    """Read all weights: reading may be a collective."""
    for _ in weights:
        pass
