"""The start and the first steps of a run, as the numbers that an environment is fitted to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrostat.logs.doubts import heated

from ..trajectory import Array, Trajectory

WINDOWS = 8
"""Windows of the entropy."""
CORRECT = re.compile(r"acc|correct|reward(?!.*std)|score(?!.*std)", re.IGNORECASE)
SCALE = 0.05
"""Difference that counts 1, in nats, reward and pass@k."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Numbers of a run, which may be the mean of several seeds. NaN where nothing was logged."""

    steps: int
    """Rollout steps that the numbers cover."""
    total: int
    """Rollout steps of the whole run."""
    entropy: Array
    """Mean in WINDOWS equal windows of the steps, (WINDOWS,), nats."""
    reward: Array
    """Mean in the first and the last third of the steps, (2,)."""
    evaluated: Array
    """Shares of the steps at which held-out problems were evaluated, (n,)."""
    mean: Array
    """avg@k there, (n,)."""
    k: int
    passed: Array
    """pass@k there, (n,)."""

    @property
    def numbers(self) -> Array:
        """All numbers in a row."""
        return np.concatenate([self.entropy, self.reward, self.mean, self.passed])

    def distance(self, trajectory: Trajectory) -> float:
        """Return the sum of squared differences of the known numbers from a simulation's, over SCALE squared."""
        difference = (self.of(trajectory) - self.numbers) / SCALE
        return float(np.nansum(difference**2))

    def of(self, trajectory: Trajectory) -> Array:
        """Return the same numbers of a simulation of the whole run, as means over its runs."""
        assert trajectory.held_out is not None
        rollouts = trajectory.reward.shape[1]
        seen = max(round(rollouts * self.steps / self.total), 1)
        at = np.searchsorted(trajectory.held_out.rollouts, np.round(self.evaluated * seen))
        at = at.clip(max=len(trajectory.held_out.rollouts) - 1)
        return np.concatenate(
            [
                windows(trajectory.entropy[:, :seen].mean(0), WINDOWS),
                thirds(trajectory.reward[:, :seen].mean(0)),
                trajectory.held_out.pass_at(1).mean(0)[at],
                trajectory.held_out.pass_at(self.k).mean(0)[at],
            ]
        )


def windows(values: Array, count: int) -> Array:
    """Return the means of `values` (n,) in equal windows, (count,). A window without values has its neighbour's."""
    edges = np.linspace(0, len(values), count + 1)
    low = np.floor(edges[:-1]).astype(int).clip(max=len(values) - 1)
    high = np.maximum(np.ceil(edges[1:]).astype(int), low + 1)
    return np.array([values[a:b].mean() for a, b in zip(low, high, strict=True)])


def thirds(values: Array) -> Array:
    """Return the mean of the first third and of the last, (2,)."""
    third = len(values) // 3 or 1
    return np.array([values[:third].mean(), values[-third:].mean()])


def observe(metrics: Sequence[Mapping[str, Any]], *, total: int | None = None, first: int | None = None) -> Observed:
    """Return what a run's log says of its start and its first steps.

    metrics: a line for each step, with entrostat's names. total: steps of the whole run, by default those logged.
    first: steps to look at, by default all.
    Raises ValueError without an entropy, without a reward, if rewards are not between 0 and 1, or if the sampling
    temperature moved.
    """
    steps = [line["step"] for line in metrics if known(line, "entropy")]
    if len(steps) < WINDOWS:
        raise ValueError(f"the log has an entropy at {len(steps)} steps: a forecast needs {WINDOWS}")
    start = steps[0]
    end = steps[-1] + 1 if first is None else min(start + first, steps[-1] + 1)
    lines = [line for line in metrics if start <= line["step"] <= end]
    trained = [line for line in lines if line["step"] < end]
    entropy = np.array([line["entropy"] for line in trained if known(line, "entropy")], dtype=np.float64)
    reward = np.array([line["reward"] for line in trained if known(line, "reward")], dtype=np.float64)
    if not len(reward):
        raise ValueError("the log has no reward: name it with --reward")
    if reward.min() < 0 or reward.max() > 1:
        raise ValueError(
            f"rewards are between {reward.min():g} and {reward.max():g}: a forecast needs the share of right answers; "
            f"name it with --reward{such_as(trained)}"
        )
    if moved := heated([line["temperature"] for line in trained if known(line, "temperature")]):
        raise ValueError(moved)
    k = max((int(n.removeprefix("eval/pass@")) for line in lines for n in line if is_passed(n)), default=0)
    shown = [line for line in lines if k and known(line, f"eval/pass@{k}")]
    spent = end - start
    return Observed(
        steps=spent,
        total=max(total or steps[-1] + 1 - start, spent),
        entropy=windows(entropy, WINDOWS),
        reward=thirds(reward),
        evaluated=np.array([(line["step"] - start) / spent for line in shown], dtype=np.float64).clip(0, 1),
        mean=np.array([number(line, f"eval/avg@{k}") for line in shown], dtype=np.float64),
        k=k or 8,
        passed=np.array([number(line, f"eval/pass@{k}") for line in shown], dtype=np.float64),
    )


def together(runs: Sequence[Observed]) -> Observed:
    """Return the mean of runs that differ in their seed alone. Raises ValueError if they cover different steps."""
    one = runs[0]
    if any(
        (x.steps, x.total, x.k, x.evaluated.tolist()) != (one.steps, one.total, one.k, one.evaluated.tolist())
        for x in runs
    ):
        raise ValueError("the runs cover different steps: give runs that differ in their seed alone")
    entropy, reward, mean, passed = (
        np.mean([getattr(run, name) for run in runs], 0) for name in ("entropy", "reward", "mean", "passed")
    )
    return Observed(
        steps=one.steps, total=one.total, k=one.k, evaluated=one.evaluated,
        entropy=entropy, reward=reward, mean=mean, passed=passed,
    )  # fmt: skip


def such_as(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the logged metrics that may be the share of right answers, as the end of a sentence; "" if none may."""
    names = dict.fromkeys(name for line in lines for name in line if CORRECT.search(name) and name != "reward")
    values = {name: [number(line, name) for line in lines if known(line, name)] for name in names}
    fit = [name for name, of in values.items() if of and 0 <= min(of) < max(of) <= 1]
    return f", such as {' or '.join(fit)}" if fit else ""


def known(line: Mapping[str, Any], name: str) -> bool:
    """Return True if a metric is a finite number."""
    return bool(np.isfinite(number(line, name)))


def number(line: Mapping[str, Any], name: str) -> float:
    """Return a metric of a line; NaN if it is missing."""
    value = line.get(name)
    return float("nan") if value is None else float(value)


def is_passed(name: str) -> bool:
    """Return True for eval/pass@k with k > 1."""
    found = name.removeprefix("eval/pass@")
    return found != name and found.isdecimal() and int(found) > 1
