"""Speed of the simulator compared with the same simulation in NumPy and JAX.

    python benchmarks/simulator.py [--runs 8,32,512] [--rollouts 20] [--sweep] [--features]

An update is one pass of one run over a rollout of environment `noisy` (64 states, 16 arms, 16 responses, 8 passes),
including its share of sampling. toybandit runs plain GRPO and two chains, each eager and compiled. NumPy runs plain
GRPO in two forms: vectorised over the states and responses of a run with a loop over runs (the straightforward form),
and vectorised over runs too; the latter also with Clip-Higher and STEER's weights. If JAX is installed (`pip install
jax`), it runs plain GRPO too, one compiled program for all rollouts (jit of vmap): with arms from `random.categorical`,
and from the inverse of the cumulative distribution, as NumPy and toybandit draw them. All use one thread and take
turns; times are CPU seconds of the fastest of several calls. "of bandwidth" is the time in which one thread of this
machine moves the minimum data of a pass (arms, advantages and old log-probabilities read, logits read and written),
divided by the measured time. "first" is the extra wall time of the first call (seconds) for compilation, shorter if
torch's cache has the machine code of an earlier process.

--sweep: also 512 runs of 300 rollouts, eager and compiled, with the peak memory of the process.
--features: only shared features against the table, at the same number of tokens.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from toybandit import Config, Environment, simulate
from toybandit.problem import draw_problem

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
try:
    import jax
    from jax import numpy as jnp
except ImportError:
    jax = None

CLIP = 0.2
CONTROLLERS = ("grpo", "clip_higher+entropic", "clip_higher+steer")
NEEDED = 5
"""Numbers of 8 bytes that a pass must move per token."""


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def in_numpy(env: Environment, z: np.ndarray, q: np.ndarray, seed: int, steer: bool = False) -> np.ndarray:
    """Run GRPO on logits z with success probabilities q, (..., S, K); return the final mean entropy, (...,).

    steer: clip at .2 and .28, and weight tokens by STEER's exponential mapping with λ_min = .7, in each run.
    """
    upper = 0.28 if steer else CLIP
    rng, group, shape = np.random.default_rng(seed), env.group or 1, z.shape
    row = np.arange(z[..., 0].size)[:, None] * env.arms
    for _ in range(env.rollouts):
        old = softmax(z)
        arm = (rng.random((*shape[:-1], group, 1)) > old.cumsum(-1)[..., None, :]).sum(-1).clip(max=env.arms - 1)
        reward = (rng.random(arm.shape) < np.take_along_axis(q, arm, -1)).astype(float)
        advantage = (reward - reward.mean(-1, keepdims=True)) / (reward.std(-1, ddof=1, keepdims=True) + 1e-6)
        old_p, flat = np.take_along_axis(old, arm, -1), (row + arm.reshape(-1, group)).ravel()
        for _ in range(env.passes):
            p = softmax(z)
            ratio = np.take_along_axis(p, arm, -1) / old_p
            stopped = np.where(advantage > 0, ratio > 1 + upper, ratio < 1 - CLIP)
            weight = np.where(stopped, 0.0, ratio * advantage) / group
            if steer:
                taken, log = np.take_along_axis(p, arm, -1), np.log(p)
                flow = taken * (1 - taken) * (np.log(taken) - (p * log).sum(-1, keepdims=True))
                omega = np.abs(np.where(stopped, 0.0, advantage / old_p) * flow)
                weight *= np.exp(np.log(0.7) * omega / omega.max((-2, -1), keepdims=True))
            pushed = np.bincount(flat, weight.ravel(), minlength=z.size).reshape(shape)
            z = z + env.lr * (pushed - p * weight.sum(-1, keepdims=True))
    p = softmax(z)
    return -(p * np.log(p)).sum(-1).mean(-1)


def in_jax(env: Environment, categorical: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a compiled function like `in_numpy`, of logits z and success probabilities q of all runs, (runs, S, K).

    categorical: draw arms by `jax.random.categorical`, instead of from the cumulative distribution.
    """
    jax.config.update("jax_enable_x64", True)
    row, group = jnp.arange(env.states)[:, None], env.group or 1

    def rollout(z: Any, key: Any, q: Any) -> Any:
        first, second = jax.random.split(key)
        old = jax.nn.softmax(z)
        if categorical:
            arm = jax.random.categorical(first, z[:, None], shape=(env.states, group))
        else:
            draw = jax.random.uniform(first, (env.states, group, 1))
            arm = (draw > old.cumsum(-1)[:, None]).sum(-1).clip(max=env.arms - 1)
        reward = (jax.random.uniform(second, arm.shape) < jnp.take_along_axis(q, arm, -1)).astype(z.dtype)
        advantage = (reward - reward.mean(-1, keepdims=True)) / (reward.std(-1, ddof=1, keepdims=True) + 1e-6)
        old_p = jnp.take_along_axis(old, arm, -1)

        def update(_: Any, z: Any) -> Any:
            p = jax.nn.softmax(z)
            ratio = jnp.take_along_axis(p, arm, -1) / old_p
            stopped = jnp.where(advantage > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
            weight = jnp.where(stopped, 0.0, ratio * advantage) / group
            return z + env.lr * (jnp.zeros_like(z).at[row, arm].add(weight) - p * weight.sum(-1, keepdims=True))

        return jax.lax.fori_loop(0, env.passes, update, z), None

    def run(key: Any, z: Any, q: Any) -> Any:
        keys = jax.random.split(key, env.rollouts)
        p = jax.nn.softmax(jax.lax.scan(lambda z, key: rollout(z, key, q), z, keys)[0])
        return -(p * jnp.log(p)).sum(-1).mean()

    compiled = jax.jit(jax.vmap(run))
    return lambda z, q: np.asarray(compiled(jax.random.split(jax.random.key(0), len(z)), z, q))


def fastest(work: dict[str, Callable[[], object]], calls: int) -> dict[str, tuple[float, float]]:
    """Return CPU seconds of the fastest of `calls` calls, made in turn, and wall seconds of a first call."""
    seconds, first = dict.fromkeys(work, np.inf), {}
    for name, function in work.items():
        start = time.perf_counter()
        function()
        first[name] = time.perf_counter() - start
    for _ in range(calls):
        for name, function in work.items():
            start = time.process_time()
            function()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return {name: (seconds[name], first[name]) for name in work}


def bandwidth() -> float:
    """Return the bytes per second that one thread copies, counting reads and writes."""
    torch.set_num_threads(1)
    source = torch.ones(1 << 25)
    target = torch.empty_like(source)
    best = min(timed_copy(target, source) for _ in range(5))
    return 2 * source.nbytes / best


def timed_copy(target: torch.Tensor, source: torch.Tensor) -> float:
    start = time.process_time()
    target.copy_(source)
    return time.process_time() - start


def compare(runs: int, rollouts: int, limit: float) -> None:
    """Print the speeds for a number of runs. limit: memory bandwidth of one thread (bytes/s)."""
    config = Config(env="noisy", rollouts=max(rollouts * 8 // runs, 24))
    env = config.environment()
    z, q = (x.numpy() for x in draw_problem(env, torch.arange(runs), torch.float64))
    work: dict[str, Callable[[], object]] = {
        "NumPy, run by run": lambda: np.array([in_numpy(env, z[i], q[i], i) for i in range(runs)]),
        "NumPy, all runs": lambda: in_numpy(env, z, q, 0),
        "NumPy, all runs, STEER": lambda: in_numpy(env, z, q, 0, steer=True),
    }
    if jax is not None:
        for label, categorical in (("JAX, categorical", True), ("JAX, inverse CDF", False)):
            work[label] = partial(in_jax(env, categorical), z, q)
    for controller in CONTROLLERS:
        chain = Config(env="noisy", rollouts=config.rollouts, controller=controller)
        for label, fast in ((controller, False), (f"{controller}, compiled", True)):
            work[label] = partial(simulate, chain, range(runs), compile=fast)
    found = fastest(work, 5)
    updates = runs * env.rollouts * env.passes
    each, all_runs = (found[name][0] for name in list(work)[:2])
    print(f"\n{runs} runs, {env.rollouts} rollouts")
    head = f"{'updates/s':>12}{'µs per run':>11}{'x run by run':>14}{'x all runs':>12}{'of bandwidth':>14}{'first':>8}"
    print(f"{'':32}{head}")
    for name, (seconds, first) in found.items():
        least = NEEDED * 8 * env.states * (env.group or 1) * updates / limit
        print(
            f"{name:32}{updates / seconds:12,.0f}{seconds / updates * 1e6:11.1f}{each / seconds:14.2f}"
            f"{all_runs / seconds:12.2f}{least / seconds:14.1%}"
            f"{max(first - seconds, 0):8.1f}"
        )


def sweep() -> None:
    """Print time and peak memory of 512 runs of 300 rollouts."""
    for compiled in (False, True):
        start = time.perf_counter()
        simulate(Config(controller="clip_higher+entropic", target=0.6), range(512), compile=compiled)
        seconds, held = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        name = "compiled" if compiled else "eager"
        print(f"\n512 runs of 300 rollouts, {name}: {seconds:.0f} s, peak memory {held:.2f} GiB")


def shared(rollouts: int) -> None:
    """Print the time of shared features, prompts that take turns and held-out prompts, over that of `noisy`."""
    print(f"32 runs, {rollouts} rollouts, 64 states, 16 arms, 16 responses\n{'':24}{'8 passes':>10}{'1 pass':>10}")
    times = []
    for passes in (8, 1):
        table = Config(env="noisy", rollouts=rollouts, passes=passes)
        work: dict[str, Callable[[], object]] = {"table": partial(simulate, table, range(32))}
        for d in (4, 16, 64, 256):
            config = Config(**{**table.resolved(), "env": "noisy", "features": d, "pool": 2048, "held_out": 128})
            work[f"{d} features"] = partial(simulate, config, range(32))
        times.append({name: seconds for name, (seconds, _) in fastest(work, 3).items()})
    for name in times[0]:
        print(f"{name:24}" + "".join(f"{of[name] / of['table']:10.2f}" for of in times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="8,32,512")
    parser.add_argument("--rollouts", type=int, default=40, help="rollouts with 8 runs; fewer with more runs")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--features", action="store_true")
    given = parser.parse_args()
    if given.features:
        return shared(given.rollouts)
    limit = bandwidth()
    print(f"one thread moves {limit / 2**30:.1f} GiB/s")
    for runs in map(int, given.runs.split(",")):
        compare(runs, given.rollouts, limit)
    if given.sweep:
        sweep()


if __name__ == "__main__":
    main()
