"""Rollout engines in actors of a Ray cluster, called by rank 0 for all ranks.

    rank 0 ── request, split by prompts ──► actor 0, actor 1, ...  ── responses ──► rank 0 ── share of each ──► ranks
           ── weights, put into the object store once, or broadcast ──► all actors

Only rank 0 calls, and an actor runs its calls in order: requests made before new weights are answered with the old
ones, so that staleness is exact and runs repeat. No rank waits for weights in the object store; for a broadcast the
learners wait until all engines have answered earlier requests.

Elastic engines wait for room on the cluster. One that has started gets the newest weights and shares the next requests;
one that is lost leaves its open requests to the others, with the weights that they were made with.
"""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

import ray
import torch
from torch import Tensor

from ...process.gpu_memory import empty_cache
from ...process.ranks import Ranks
from ...sequences.rollouts import Rollouts, merge
from ...settings.config import RolloutConfig, TrainConfig
from ..engine_names import engine_class, start_engine
from ..rollout_engine import Pending, Request, RolloutEngine, RolloutError, Start, Weights
from ..vllm.vllm_start import dtype_of
from .direct_weights import Direct, DirectWeights, Engines
from .packed_weights import pack
from .places import Seat, elastic_seats, seats
from .remote_actor import NeverRanError, Part, RemoteActor
from .rollout_actor import RolloutActor

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
    direct = None
    if config.topology.weight_sync != "object":
        dtype = dtype_of(config.rollout, config.device)
        way, trusted = config.topology.weight_sync, start.trust_remote_code
        direct = Direct(way, dtype, config.device, folder=start.folder, trust_remote_code=trusted)
    each = replace(start, folder=start.folder.resolve(), rank=0, transport=direct.transport if direct else None)
    make = partial(start_here, each, config.threads)
    places = seats(config), elastic_seats(config)
    engine = RemoteEngine(make, config.rollout, ranks, *places, restarts=config.topology.restarts, direct=direct)
    engine.published = engine_class(config.rollout.name).published
    if config.topology.placement == "colocated" and config.device != "cpu":
        engine.share(config.sleep_level)
    return engine


@dataclass(eq=False)
class Job:
    """Request split over the engines."""

    request: Request
    version: int
    """Version of the weights that must answer."""
    parts: list[Part]


class RemoteEngine(RolloutEngine):
    """Rollout engines in other processes. All ranks make the same calls; every rank raises errors of an answer.

    An engine that crashes, gives no answer within `config.timeout` seconds or returns invalid output is killed and
    restarted, up to `restarts` times in total, and the request is repeated with its original weights. After that such a
    failure raises RolloutError. An elastic engine that fails is killed, and its requests are repeated by the others.

    make: makes an engine in its actor, with the weights of version 0.
    seats: placement of each engine.
    elastic: placement of each elastic engine.
    direct: way of weights besides the object store; not possible with restarts or elastic engines.
    """

    def __init__(
        self,
        make: Callable[[], RolloutEngine],
        config: RolloutConfig,
        ranks: Ranks,
        seats: Sequence[Seat],
        elastic: Sequence[Seat] = (),
        restarts: int = 0,
        direct: Direct | None = None,
    ) -> None:
        self.make, self.config, self.ranks, self.seats = make, config, ranks, seats
        self.restarts, self.sent = restarts, 0
        self.places = list(elastic)
        """Places of elastic engines that are neither running nor asked for."""
        self.sleep_level, self.released = 0, False
        self.direct = direct
        self.sender: DirectWeights | None = None
        self.known: dict[str, Tensor] = {}
        """All weights by name, without data, once they were read."""
        self.jobs: deque[Job] = deque()
        self.weights: dict[int, Any] = {}
        """Weights by version that another engine would need; empty without restarts and elastic engines."""
        self.is_elastic = len(elastic) > 0
        self.starts = len(seats)  # later ones are known to rank 0
        self.engines = [self._start(i) for i in range(len(seats))] if ranks.rank == 0 else []
        self.elastic: dict[RemoteActor, Seat] = {}
        """Elastic engines that share requests, with their places."""
        self.coming: dict[RemoteActor, Seat] = {}
        """Elastic engines that wait for room, or start."""
        self.arrivals = 0

    def share(self, sleep_level: int) -> None:
        """Share the learners' GPUs in turns; wait until the engines have started there.

        vLLM measures free memory when it starts, and would count learners' allocations meanwhile as its own.
        sleep_level: vLLM's sleep level, see `VLLMEngine`; 0 for engines that keep their memory.
        """
        self.sleep_level = sleep_level
        self._together(lambda: [engine.wait_for_start() for engine in self.engines])

    # Calls --------------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int | None:
        return None if self.released else self.sent

    def submit(self, request: Request) -> Pending:
        if self.ranks.rank:
            return lambda: self._receive(None)
        self._welcome()
        engines = [*self.engines, *self.elastic]
        shares = [list(range(i, len(request.prompt_ids), len(engines))) for i in range(len(engines))]
        asked = [(engine, share) for engine, share in zip(engines, shares, strict=True) if share]
        job = Job(request, self.sent, [engine.ask(replace(request, shares=[share])) for engine, share in asked])
        self.jobs.append(job)
        return lambda: self._receive(self._answer(job))

    def metrics(self) -> dict[str, float]:
        return {"rollout/engines": float(len(self.engines) + len(self.elastic))} if self.is_elastic else {}

    def update(self, weights: Weights, version: int) -> None:
        self.sent, self.released = version, False
        if self.direct:
            self._send_directly(weights, version, self.direct)
            return
        if self.ranks.rank:
            read(weights)
        else:
            packed = ray.put(pack(weights))
        self._make_room()
        if self.ranks.rank:
            return
        if self.restarts or self.is_elastic:
            self.weights[version] = packed
        for engine in (*self.engines, *self.elastic):
            engine.send(packed, version)

    def _make_room(self) -> None:
        """Free the learners' unused GPU memory, if engines that share their GPUs wake up for new weights."""
        if self.sleep_level:
            empty_cache()
            self.ranks.barrier()

    def _send_directly(self, weights: Weights, version: int, way: Direct) -> None:
        """Send the weights from GPU to GPU, or within each: all ranks read them.

        Raises RolloutError on all ranks if an engine is not ready, and on rank 0 alone if sending fails: the others may
        still wait for it in a collective.
        """
        if way.transport == "nccl":
            self.known = self.known or {name: torch.empty_like(weight, device="meta") for name, weight in weights}
        self._together(self._wait_until_idle)
        self._make_room()
        if way.transport == "nccl" and self.ranks.rank:
            read(weights)
            return
        if self.sender is None:
            actors, workers = [engine.actor for engine in self.engines], self.config.tensor_parallel_size
            engines = None if self.ranks.rank else Engines(actors, workers, self.config.timeout)
            self.sender = DirectWeights(way, engines, self.known)
        self.sender.send(weights, version)
        self._make_room()

    def release(self) -> None:
        """Put engines that share the learners' GPUs to sleep; return on all ranks when they sleep."""
        if self.sleep_level:
            self._together(self._release)
            self.released = self.sleep_level == 2

    def _release(self) -> None:
        calls, limit = [(engine, engine.actor.release.remote()) for engine in self.engines], self.config.timeout
        for engine, call in calls:
            engine.result(call, limit, f"did not sleep within rollout.timeout {limit:g} s")

    def _wait_until_idle(self) -> None:
        """Wait until all engines have answered earlier requests. Raises RolloutError."""
        began = time.monotonic()
        for engine in self.engines:
            engine.wait_until_idle(began)

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

    def close(self) -> None:
        """Let engines end their processes and free shared memory, then kill the remaining ones."""
        engines = [*self.engines, *self.elastic]
        if leaving := [engine.actor.close.remote() for engine in engines]:
            ray.wait(leaving, num_returns=len(leaving), timeout=LEAVE)
        for engine in (*engines, *self.coming):
            ray.kill(engine.actor)
        self.engines, self.elastic, self.coming = [], {}, {}

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
        """Return the answer to a part of a job; another engine repeats it as often as allowed."""
        lost = math.inf
        while True:
            part = job.parts[i]
            try:
                return part.engine.answer(part, job.version, max(began, part.repeated_at))
            except RolloutError as error:
                never_ran = isinstance(error, NeverRanError) and part.engine not in self.elastic
                if never_ran and time.monotonic() < lost + self.config.timeout:
                    lost = min(lost, time.monotonic())
                    time.sleep(1.0)  # Ray needs some seconds to see that a node is lost
                    self._start_anew(self.engines.index(part.engine))
                    continue
                if part.engine in self.elastic:
                    self._dismiss(part.engine)
                    print(f"{error}; rollout engines: {len(self.engines) + len(self.elastic)}", flush=True)
                elif self.restarts:
                    self.restarts -= 1
                    print(f"{error}; restarted, {self.restarts} restarts left", flush=True)
                    self._start_anew(self.engines.index(part.engine))
                else:
                    raise

    # Engines ------------------------------------------------------------------------------------------------------

    def _start(self, i: int) -> RemoteActor:
        return self._start_at(self.seats[i], f"rollout engine {i}")

    def _start_at(self, seat: Seat, name: str) -> RemoteActor:
        kind: Any = ray.remote(RolloutActor)
        actor = kind.options(**seat.options).remote(self.make, seat.environment)
        return RemoteActor(name, actor, self.config.timeout)

    def _start_anew(self, i: int) -> None:
        """Replace engine i by a new one, and repeat its open requests with the same weights."""
        old, self.engines[i] = self.engines[i], self._start(i)
        self.starts += 1
        ray.kill(old.actor)
        self._hand_over(old, [self.engines[i]])

    def _hand_over(self, lost: RemoteActor, others: Sequence[RemoteActor]) -> None:
        """Repeat the open requests of a lost engine on others, with their weights; then send these the newest ones."""
        turn = cycle(others)
        for job in self.jobs:
            for i, part in enumerate(job.parts):
                if part.engine is lost:
                    other = next(turn)
                    self._bring(other, job.version)
                    job.parts[i] = replace(other.ask(part.request), repeated_at=time.monotonic())
        for other in others:
            self._bring(other, self.sent)

    def _bring(self, engine: RemoteActor, version: int) -> None:
        """Send weights of this version to an engine that holds others."""
        if engine.holds != version and version in self.weights:
            engine.send(self.weights[version], version)

    # Elastic engines ----------------------------------------------------------------------------------------------

    def _welcome(self) -> None:
        """Let elastic engines that have started share the next requests, and ask for those that are missing.

        Neither happens before weights were sent: the other engines have started by then, and the weights can be sent
        again to an engine that takes over.
        """
        if not self.weights:
            return
        for engine, seat in [*self.coming.items()]:
            try:
                if not engine.has_started():
                    continue
                self._bring(engine, self.sent)
                self.elastic[engine] = seat
                self.starts += 1
                print(f"{engine.name} joins; rollout engines: {len(self.engines) + len(self.elastic)}", flush=True)
            except RolloutError as error:
                print(f"{error}", flush=True)
                self.places.append(seat)
            del self.coming[engine]
        while self.places:
            seat = self.places.pop()
            self.coming[self._start_at(seat, f"elastic rollout engine {self.arrivals}")] = seat
            self.arrivals += 1

    def _dismiss(self, engine: RemoteActor) -> None:
        """Kill an elastic engine; engines that stay repeat its open requests. Its place is free for another one."""
        self.places.append(self.elastic.pop(engine))
        ray.kill(engine.actor)
        self._hand_over(engine, self.engines)


def read(weights: Iterable[Any]) -> None:
    """Read all weights: reading may be a collective."""
    for _ in weights:
        pass
