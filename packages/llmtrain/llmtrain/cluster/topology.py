"""Training on a Ray cluster, where learners and rollout engines are actors.

`train_on_ray` starts the learners, shows the run and waits. The learner of rank 0 starts the rollout engines. An actor
ends with the process that started it.
"""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from entrostat.logs.runlog import read_metrics

from ..policy.checkpoint import last_saved, latest, step_of
from ..process.exit_code import ExitCodes, exit_codes, unknown
from ..process.family import ends_with_family
from ..process.local_ranks import GRACE, LostRankError, how_it_ended
from ..process.text import one_line
from ..rollout.ray.places import Place, environments, layout, options, placement
from ..settings.config import TrainConfig
from ..training.display import TrainDisplay
from ..training.rules import make_controller
from .learner_actor import INTERRUPT, Learner, send_signal

KNOCK = 5.0
"""Timeout for a connection to the cluster (seconds)."""
HEAD, HEAD_HERE = 45.0, 5.0
"""Seconds without the head of a cluster, or of this machine's own, after which the run ends."""
POLL = 0.5
"""Interval of checks on the run (seconds)."""
CRASHED = "its process crashed"
"""End of a process whose exit code is unknown."""


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Run a block with Ray: joined at `address`, started on this machine with loopback ports, or already initialised.

    Keeps the present handler of SIGTERM, because Ray's handler exits without a message. Raises ValueError if no cluster
    answers at `address`.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not address:  # Ray's variable for a local cluster, on any system; read when Ray is imported
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    if ray.is_initialized():
        yield
        return
    answer = signal.getsignal(signal.SIGTERM)
    with nullcontext() if address else ends_with_family():
        try:
            try:
                _knock(address)
                ray.init(
                    address=address or "local",
                    dashboard_host="127.0.0.1",
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except OSError as error:
                raise ValueError(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from None
            signal.signal(signal.SIGTERM, answer)
            yield
        finally:
            ray.shutdown()


def _knock(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT, where Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK).close()


def head_check(config: TrainConfig) -> Callable[[], None]:
    """Return a function that ends this process with one line once Ray's head has been gone for a while.

    Ray would end it without a word of the run after a minute; until then its calls wait.
    """
    import ray

    address, limit = ray.get_runtime_context().gcs_address, HEAD if config.topology.address else HEAD_HERE
    seen = asked = time.monotonic()

    def check() -> None:
        nonlocal seen, asked
        if time.monotonic() - asked < limit / 5:
            return
        asked = time.monotonic()
        try:
            _knock(address)
            seen = asked
        except OSError as error:
            if asked - seen > limit:
                said = f"the Ray head at {address} is gone: {error.strerror or error}; {last_saved(config.out)}"
                print(f"error: {said}", file=sys.stderr, flush=True)
                os._exit(2)

    return check


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Run a block; raise LostRankError on SIGTERM, from `ray job stop` or a scheduler, even if Ray handles it first."""

    terminated: list[int] = []

    def end(number: int, frame: Any) -> None:
        terminated.append(number)
        raise KeyboardInterrupt  # the only exception that gets through Ray's calls

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        if not terminated and isinstance(error, KeyboardInterrupt):
            raise
        raise LostRankError("the run was stopped by SIGTERM") from None
    finally:
        signal.signal(signal.SIGTERM, previous)


def train_on_ray(config: TrainConfig, resuming: bool = False) -> tuple[int, str]:
    """Train on the cluster and show progress; return exit code and last message of rank 0, or of a learner that failed.

    Raises ValueError if the cluster has no room or a node lacks the folder, LostRankError if a learner is lost or
    SIGTERM ends the run.
    """
    with ended_by_sigterm(), cluster(config.topology.address), placement(config) as group:
        import ray

        plan, gpu = layout(config), int(config.device == "cuda")
        actor: Any = ray.remote(Learner)
        learners = [actor.options(**options(group, home, gpu)).remote() for home in plan.learners]
        try:
            try:
                places = ray.get([learner.settle.remote(os.getcwd()) for learner in learners])
            except ray.exceptions.RayError as error:
                raise _reason({0: error}) from None
            variables = environments(config, places)
            runs = [learner.run.remote(variables[rank], config, resuming) for rank, learner in enumerate(learners)]
            check, here = head_check(config), ray.get_runtime_context().get_node_id()
            pids = {rank: place.pid for rank, place in enumerate(places) if place.node == here}
            with exit_codes(pids) as code_of, progress(config, resuming) as look:
                return follow(runs, places[0], lambda: check() or look(), code_of)
        except ray.exceptions.RpcError as error:  # a cluster that is too busy to answer
            said = f"Ray did not answer: {one_line(error)}; {last_saved(config.out)}"
            raise LostRankError(said) from error
        finally:
            for learner in learners:
                ray.kill(learner)


def follow(runs: list[Any], first: Place, look: Callable[[], bool], code_of: ExitCodes = unknown) -> tuple[int, str]:
    """Wait for the learners, or until GRACE seconds after one has failed; return its result, or else that of rank 0.

    look: function that shows new steps of the run and returns True if a step has been trained.
    code_of: function that returns the exit code of a rank whose process has ended, None if it is unknown.
    The first Ctrl-C is sent to the learner of rank 0, which stops the others; a second one ends this process. Raises
    LostRankError if a learner's process ended, whatever the others say, or else the error of one that failed.
    """
    import ray

    pressed: list[int] = []

    def press(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    previous, told, end = signal.signal(signal.SIGINT, press), False, float("inf")
    results: dict[int, tuple[int, str]] = {}
    failures: dict[int, Exception] = {}
    waiting = list(runs)
    try:
        while waiting and time.monotonic() < end:
            done, waiting = ray.wait(waiting, timeout=POLL)
            for ref in done:
                try:
                    code, _ = results[runs.index(ref)] = ray.get(ref)
                    if code == 1:  # the others may wait for it in a collective
                        end = min(end, time.monotonic() + GRACE)
                except ray.exceptions.RayError as error:
                    failures[runs.index(ref)] = error
                    end = min(end, time.monotonic() + GRACE)
            if pressed and not told:
                _send(first, INTERRUPT)
                told = True
            look()
    finally:
        signal.signal(signal.SIGINT, previous)
    if pressed and isinstance(failures.get(0), ray.exceptions.TaskCancelledError) and not look():
        return 130, "stopped before the first step was trained"
    reason = _reason(failures, code_of) if failures else None
    stopped = [result for _, result in sorted(results.items()) if result[0] == 1]
    if isinstance(reason, LostRankError):  # whatever the others say: a learner that stops keeps its process
        raise reason
    if stopped:
        return stopped[0]
    if reason:
        raise reason
    return results[0]


def _send(place: Place, number: int) -> None:
    """Send a signal to the process of an actor, on any node."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(place.node, soft=False)
    ray.remote(send_signal).options(num_cpus=0, scheduling_strategy=there).remote(place.pid, int(number))


def _reason(failures: dict[int, Exception], code_of: ExitCodes = unknown) -> Exception:
    """Return the loss of the first rank that was lost, or else the error of the lowest rank."""
    import ray

    for rank, error in failures.items():
        if isinstance(error, ray.exceptions.RayActorError):
            code = code_of(rank)
            return LostRankError(f"rank {rank} was lost: {how_it_ended(code) if code is not None else CRASHED}")
    _, error = min(failures.items())
    cause = getattr(error, "cause", None)
    return ValueError(str(cause)) if isinstance(cause, ValueError) else error


@contextmanager
def progress(config: TrainConfig, resuming: bool) -> Iterator[Callable[[], bool]]:
    """Hold a display of a run that trains elsewhere; yield a function that updates it from the run log.

    The function returns True if a step has been trained.
    """
    start = step_of(latest(config.out)) if resuming else 0
    told: set[str] = set()
    shown, log = start, Path(config.out) / "metrics.jsonl"
    stamp = _changed(log)  # until it changes, the log belongs to another run or has lines that will be dropped
    with TrainDisplay(config.controller, config.steps, start, controller=make_controller(config)) as display:

        def look() -> bool:
            nonlocal shown, stamp
            now = _changed(log)
            if now != stamp:
                stamp = now
                for line in read_metrics(config.out):
                    if shown <= line["step"] < config.steps:
                        for said in guarded(line, told):
                            display.say(said)
                        display(line["step"], {key: value for key, value in line.items() if key != "step"})
                        shown = line["step"] + 1
            return shown > start

        yield look
        look()


def guarded(line: Mapping[str, float], told: set[str]) -> Iterator[str]:
    """Yield a line for each guard that has acted in a step for the first time; add it to `told`.

    The learner's own words stay in its process, whose output Ray does not pass on.
    """
    goes_on = "the update is left out" if line.get("guard/skipped") else "training goes on"
    for name, value in line.items():
        guard = name.removeprefix("guard/")
        if guard != name and value and guard not in {"skipped", "roll_backs", *told}:
            told.add(guard)
            yield f"guard: {guard} in step {line['step']:.0f}; {goes_on}"


def _changed(path: Path) -> int:
    """Return the time of a file's last write (ns); 0 if it is missing."""
    return path.stat().st_mtime_ns if path.exists() else 0
