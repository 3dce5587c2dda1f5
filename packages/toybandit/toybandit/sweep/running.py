"""Execution of calls in this process, in several processes or on a Ray cluster. The rows are the same everywhere."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType

from entrostat.settings.installation import missing

from .cells import Call
from .measure import Row, measure

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Environment variables to set before Ray is imported, so that it is a single node at 127.0.0.1 on any system: without
them, Ray replaces its node address by a public one, even if an address was set."""


def run_calls(calls: Sequence[Call], workers: str = "1") -> Iterator[list[Row]]:
    """Return an iterator over the rows of each call, in the order in which calls end.

    workers: number of processes, or "ray". Raises ValueError on anything else, and if Ray is needed but not installed.
    """
    if workers == "ray":
        return _on_ray(calls)
    if not workers.isdigit() or int(workers) < 1:
        raise ValueError(f"workers must be a positive number or ray, not {workers!r}")
    return map(measure, calls) if workers == "1" or len(calls) < 2 else _in_processes(calls, int(workers))


def _in_processes(calls: Sequence[Call], workers: int) -> Iterator[list[Row]]:
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(min(workers, len(calls)), mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = [pool.submit(measure, call) for call in calls]
        try:
            for task in as_completed(tasks):
                yield task.result()
        except BrokenProcessPool:
            raise ValueError(
                "a process of the sweep crashed, perhaps out of memory: "
                "use fewer --workers or a smaller --batch; the same command resumes the sweep"
            ) from None
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
