"""How fast the simulator is, and how much faster than the same simulation written run by run in NumPy.

    python benchmarks/simulator.py [--runs 8] [--states 48] [--rollouts 150]

A step is one rollout of one run: sampling and 8 passes of GRPO. Both programs simulate environment `noisy`; the NumPy
one is vectorised over the states, arms and samples of a run and loops over runs, as one would write it at first.
Prints steps/s of each, their ratio, and the mean final entropies, which agree up to the luck of different draws. Both
use one thread. The ratio grows with the number of runs, as the cost of calling torch is paid once for all of them.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from toybandit import Config, Environment, simulate
from toybandit.problem import draw_problem

CLIP = 0.2


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def entropy(p: np.ndarray) -> float:
    return float(-(p * np.log(p)).sum(-1).mean())


def run_in_numpy(env: Environment, z: np.ndarray, q: np.ndarray, seed: int) -> list[float]:
    """GRPO on one run, z and q (S, K); mean entropy before each rollout and at the end."""
    rng, group = np.random.default_rng(seed), env.group or 1
    state = np.arange(env.states)[:, None]
    entropies = []
    for _ in range(env.rollouts):
        old = softmax(z)
        entropies.append(entropy(old))
        arm = (rng.random((env.states, group, 1)) > old.cumsum(-1)[:, None]).sum(-1).clip(max=env.arms - 1)
        reward = (rng.random(arm.shape) < q[state, arm]).astype(float)
        advantage = (reward - reward.mean(-1, keepdims=True)) / (reward.std(-1, ddof=1, keepdims=True) + 1e-6)
        for _ in range(env.passes):
            p = softmax(z)
            ratio = p[state, arm] / old[state, arm]
            stopped = np.where(advantage > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
            weight = np.where(stopped, 0.0, ratio * advantage) / group
            gradient = -p * weight.sum(-1, keepdims=True)
            np.add.at(gradient, (state, arm), weight)
            z = z + env.lr * gradient
    return [*entropies, entropy(softmax(z))]


def timed(work: Callable[[], np.ndarray]) -> tuple[float, float]:
    """Seconds of the faster of two calls, and the mean final entropy."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        entropies = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), float(entropies[:, -1].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("runs", 8), ("states", 48), ("rollouts", 150)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    config = Config(env="noisy", states=given.states, rollouts=given.rollouts)
    env, seeds = config.environment(), torch.arange(given.runs)
    logits, success = (x.numpy() for x in draw_problem(env, seeds, torch.float64))

    def in_numpy() -> np.ndarray:
        return np.array([run_in_numpy(env, logits[i], success[i], i) for i in range(given.runs)])

    steps = given.runs * given.rollouts
    print(f"{given.runs} runs, {given.states} states, {given.rollouts} rollouts")
    ours, ours_end = timed(lambda: simulate(config, range(given.runs)).entropy)
    plain, plain_end = timed(in_numpy)
    for name, seconds, end in (("toybandit", ours, ours_end), ("NumPy, run by run", plain, plain_end)):
        print(f"{name:18} {seconds:7.2f} s {steps / seconds:9,.0f} steps/s   final entropy {end:.3f}")
    print(f"ratio {plain / ours:.1f}")


if __name__ == "__main__":
    main()
