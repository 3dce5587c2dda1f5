"""Steps per second of `toybandit/SoftmaxBandit-v0`.

    python benchmarks/gym_env.py [--steps 300000] [--num_envs 1024] [--repeats 5]

scalar: the bare environment, and the result of `gymnasium.make` with its wrappers. vector: steps of all copies, from
`gymnasium.make_vec`, and for comparison gymnasium's own SyncVectorEnv around scalar environments. Actions are drawn in
advance; resets are included, one after each episode of the registered length. Rates are medians of the repeats, by wall
time and by CPU time, which other processes affect less; the targets are for CPU time.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch

import toybandit

NAME = "toybandit/SoftmaxBandit-v0"
ARMS = toybandit.Config().environment().arms
SCALAR_BAR, VECTOR_BAR = 0.3e6, 10e6


def step_scalar(env: gymnasium.Env[Any, Any], actions: list[int]) -> None:
    """Take a step for each action, with a reset after each episode."""
    episode = gymnasium.spec(NAME).max_episode_steps or len(actions)
    env.reset(seed=0)
    for i, action in enumerate(actions, start=1):
        env.step(action)
        if i % episode == 0:
            env.reset()


def step_vector(envs: gymnasium.vector.VectorEnv[Any, Any, Any], actions: np.ndarray) -> None:
    """Take a step for each row of actions (steps, num_envs)."""
    envs.reset(seed=0)
    for row in actions:
        envs.step(row)


def report(name: str, work: Callable[[], None], steps: int, repeats: int, bar: float | None) -> None:
    """Print the median rates of `work`, which takes `steps` steps."""
    rates = []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        work()
        rates.append((steps / (time.perf_counter() - start[0]), steps / (time.process_time() - start[1])))
    clock, cpu = (statistics.median(column) for column in zip(*rates, strict=True))
    against = "" if bar is None else f"   bar {bar / 1e6:g}: {'met' if cpu >= bar else 'missed'}"
    print(f"{name:32} {clock / 1e6:8.3f} {cpu / 1e6:8.3f}{against}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("steps", 300_000), ("num_envs", 1024), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    env = gymnasium.make(NAME)
    one = rng.integers(ARMS, size=given.steps).tolist()
    print(f"{'10⁶ steps/s':32} {'clock':>8} {'CPU':>8}")
    report("scalar, bare", partial(step_scalar, env.unwrapped, one), given.steps, given.repeats, SCALAR_BAR)
    report("scalar, gymnasium.make", partial(step_scalar, env, one), given.steps, given.repeats, SCALAR_BAR)
    for mode, rows, bar in (("vector_entry_point", 5000, VECTOR_BAR), ("sync", 20, None)):
        envs = gymnasium.make_vec(NAME, num_envs=given.num_envs, vectorization_mode=mode)
        many = rng.integers(ARMS, size=(rows, given.num_envs))
        report(f"{given.num_envs} copies, {mode}", partial(step_vector, envs, many), many.size, given.repeats, bar)


if __name__ == "__main__":
    main()
