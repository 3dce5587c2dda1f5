"""Execution of calls in this process, in several processes or on a Ray cluster. The rows are the same everywhere."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

from entrostat.settings.installation import missing

from .cells import Call
from .measure import Row, measure

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Environment variables to set before Ray is imported, so that it is a single node at 127.0.0.1 on any system: without
them, Ray replaces its node address by a public one, even if an address was set."""

CRASHED = (
    "a process of the sweep crashed, perhaps out of memory: "
    "use fewer --workers or a smaller --batch; the same command resumes the sweep"
)
"""Error of a sweep with a process that ended early."""
Given = TypeVar("Given")
Made = TypeVar("Made")


def run_calls(calls: Sequence[Call], workers: str = "1") -> Iterator[list[Row]]:
    """Return an iterator over the rows of each call, in the order in which calls end.

    workers: number of processes, or "ray". Raises ValueError on anything else, and if Ray is needed but not installed.
    """
    if workers == "ray":
        return _on_ray(calls)
    if not workers.isdigit() or int(workers) < 1:
        raise ValueError(f"workers must be a positive number or ray, not {workers!r}")
    if workers == "1" or len(calls) < 2:
        return map(measure, calls)
    return (rows for _, rows in in_processes(measure, calls, int(workers), CRASHED))


def in_processes(
    function: Callable[[Given], Made], given: Sequence[Given], workers: int, crashed: str
) -> Iterator[tuple[int, Made]]:
    """Yield the place and the result of the function for each of `given`, computed in new processes, as they end.

    The function must be importable: a new process imports it. Raises the function's errors, and ValueError with the
    text `crashed` if a process ends early.
    """
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(min(workers, len(given)), mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = {pool.submit(function, one): place for place, one in enumerate(given)}
        try:
            for task in as_completed(tasks):
                yield tasks[task], task.result()
        except BrokenProcessPool:
            raise ValueError(crashed) from None
        except BaseException:  # Ctrl-C: stop the processes without waiting for their calls
            for process in set(multiprocessing.active_children()) - set(others):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _on_ray(calls: Sequence[Call]) -> Iterator[list[Row]]:
    with ray_cluster() as ray:
        task = ray.remote(measure)
        pending = [task.remote(call) for call in calls]
        while pending:
            done, pending = ray.wait(pending)
            yield from ray.get(done)


@contextmanager
def ray_cluster() -> Iterator[ModuleType]:
    """Run the block with Ray in the cluster that this process has joined or that RAY_ADDRESS names.

    Without either, start a cluster on this machine alone, which listens on the loopback interface only and ends with
    the block.
    """
    alone = not os.environ.get("RAY_ADDRESS")
    if alone:
        for name, value in LOOPBACK.items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise ValueError(missing("ray")) from error
    if ray.is_initialized():
        yield ray
        return
    ray.init(address="local" if alone else None, include_dashboard=False if alone else None, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()
