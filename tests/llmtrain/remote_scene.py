"""Remote engines in real Ray actors, and requests to them, for the tests of engines on a cluster."""

import os
import time
from dataclasses import replace

import ray
import ray_engines
import torch

from llmtrain.process.ranks import Ranks
from llmtrain.rollout.ray.places import Seat
from llmtrain.rollout.ray.remote_engine import RemoteEngine
from llmtrain.rollout.rollout_engine import Request
from llmtrain.settings.config import RolloutConfig
from llmtrain.settings.sampling import Sampling

ray.cloudpickle.register_pickle_by_value(ray_engines)  # Ray's processes cannot import tests
QUICK = RolloutConfig(max_new_tokens=4, timeout=2.0)
SEAT = Seat({"num_cpus": 0.1})


def remote(engine, count=1, ranks=None, restarts=0, elastic=(), timeout=QUICK.timeout):
    """Return a remote engine of so many actors."""
    return RemoteEngine(engine, replace(QUICK, timeout=timeout), ranks or Ranks(), [SEAT] * count, elastic, restarts)


def request(prompts=5, n=2, shares=None, seed=7):
    return Request(
        [[i] for i in range(prompts)], Sampling(samples=n, max_new_tokens=4), shares or [list(range(prompts))], seed
    )


def weights(value):
    return [("w", torch.tensor(value))]


def tokens(prompts, n=2, seed=7, weight=0):
    return [[p, i, seed, weight][: 1 + p % 4] for p in prompts for i in range(n)]


def gone(pid):
    """Return True if a process ends within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def pid_of(engine, i=0):
    return ray.get(engine.engines[i].actor.__ray_call__.remote(lambda self: os.getpid()))
