"""The start and the first steps of a run, as the numbers that an environment is fitted to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrostat import list_controllers
from entrostat.logs.doubts import heated, of_kept_groups

from ..run import PLAIN, SAME
from ..trajectory import Array, Trajectory

WINDOWS = 8
"""Windows of the entropy."""
CORRECT = re.compile(r"acc|correct|reward(?!.*std)|score(?!.*std)", re.IGNORECASE)
PART = re.compile(r"rewards/(?!.*(?:std|min|max)$).+", re.IGNORECASE)
"""Metric of one reward function, as TRL and ms-swift log each beside the weighted sum."""
ENTROPY = re.compile(r"ent|^h$", re.IGNORECASE)
EVALUATED = re.compile(r"eval/(avg|pass)@([2-9]|[1-9]\d{1,5})")
BONUS = "entropy_coef"
"""Coefficient of TRL's own entropy bonus."""
PENALTIES = ("actor/kl_coef", "actor/reward_kl_penalty_coeff")
"""Coefficients of verl's KL penalties, in the loss and in the reward."""
MOST_ENTROPY = 13.0
"""Greatest mean entropy of a token, nats: a uniform draw from 440,000 tokens."""
LOST = 5
"""Steps without a number from which on an entropy is lost, unless they are as many between two numbers."""
MOST_SPREAD = 0.5**0.5 + 1e-3
"""Greatest standard deviation of numbers from 0 to 1: that of two, which are 0 and 1."""
ROUNDED = 1e-3
"""Difference between two metrics that are one number, rounded in the log."""
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
    """Share of right answers there, (n,): avg@k, whose k may be another."""
    k: int
    passed: Array
    """pass@k there, (n,)."""
    doubts: tuple[str, ...] = ()
    """Sentences that the reader of a forecast must know."""

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


def observe(
    metrics: Sequence[Mapping[str, Any]], *, total: int | None = None, first: int | None = None, named: bool = False
) -> Observed:
    """Return what a run's log says of its start and its first steps.

    metrics: a line for each step, or for each of several steps, with entrostat's names. total: steps of the whole run,
    by default those logged. first: steps to look at, by default all. named: somebody says which metric the reward is.
    Evaluations need not be at steps of the training.
    Raises ValueError on a log that begins late, that has fewer than WINDOWS entropies or loses them, whose entropies,
    rewards or evaluations are no numbers of that kind, whose reward adds up several or never changes, whose
    temperature moved, or that was under a controller.
    """
    steps = np.array([line["step"] for line in metrics if known(line, "entropy")])
    if not len(steps):
        raise ValueError(f"the log has no entropy: name it with --entropy{such_as(metrics, ENTROPY, 0, MOST_ENTROPY)}")
    start, end = span(steps)
    if total is not None and total < end - start:
        raise ValueError(f"--total {total} is less than the {end - start} steps of the log: --first reads fewer")
    last = end if first is None else min(start + first, end)
    nan = [line["step"] for line in metrics if "entropy" in line and not known(line, "entropy") and line["step"] >= end]
    if first is None and nan and nan[-1] - end >= max(LOST, 2 * int(np.diff(steps).max(initial=1))):
        raise ValueError(f"the entropy is NaN from step {nan[0]} on: --first {end - start} reads the steps before")
    counted = start == steps[0]  # a line is of the step from its number on, not of those up to it
    trained = [line for line in metrics if start <= line["step"] < last + (not counted)]
    entropy = numbers_in(trained, "entropy")
    if len(entropy) < WINDOWS:
        raise ValueError(
            f"the log has an entropy at {len(entropy)} of {last - start} steps: a forecast needs {WINDOWS}"
        )
    require_between(entropy, 0, MOST_ENTROPY, "entropies", "the mean entropy of a token, nats")
    refuse_controlled(trained)
    kept = "" if named else of_kept_groups(trained)
    reward = np.full(2, np.nan) if kept else thirds(shares(trained, named))
    if moved := heated(numbers_in(trained, "temperature")):
        raise ValueError(moved)
    k, at, mean, passed = evaluations([line for line in metrics if line["step"] <= last], start)
    if kept and not np.isfinite(mean).any():
        raise ValueError(
            f"{kept}: a forecast needs evaluations (eval/avg@k), or the share of right answers among all responses; "
            f"name it with --reward{such_as(trained)}"
        )
    return Observed(
        steps=last - start,
        total=total or end - start,
        entropy=windows(entropy, WINDOWS),
        reward=reward,
        evaluated=(at - start).clip(0) / (last - start),
        mean=mean,
        k=k,
        passed=passed,
        doubts=tuple(doubts(trained, kept)),
    )


def refuse_controlled(lines: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if a run logged the numbers of a controller, or has an entropy bonus of TRL's own."""
    rules = {*list_controllers()} - {*SAME}
    names = dict.fromkeys(name for line in lines for name in line)
    found = [name for name in names if rules & {*name.split("/")[:-1]}]
    found += [BONUS] if numbers_in(lines, BONUS).any() else []
    if found:
        raise ValueError(
            f"the log has {', '.join(found[:3])}, so the run was under a controller: a forecast starts from one "
            f"under plain {PLAIN}"
        )


def doubts(lines: Sequence[Mapping[str, Any]], kept: str) -> Iterator[str]:
    """Yield what the reader of a forecast must know of a log. kept: result of `of_kept_groups`."""
    if kept:
        yield f"warning: {kept}, so it is not used; name that of all groups with --reward{such_as(lines)}"
    for name in PENALTIES:
        if (coefficient := numbers_in(lines, name).max(initial=0)) > 0:
            yield f"warning: the run has a KL penalty ({name} {coefficient:g}), which GRPO in the environments lacks"


def shares(lines: Sequence[Mapping[str, Any]], named: bool) -> Array:
    """Return the rewards of lines. Raises ValueError unless they may be shares of right answers, which change.

    named: somebody says which metric they are, so that those beside the logged reward say nothing about them.
    """
    reward, wanted = numbers_in(lines, "reward"), f"the share of right answers; name it with --reward{such_as(lines)}"
    if not len(reward):
        raise ValueError(f"the log has no reward: name it with --reward{such_as(lines)}")
    beside = () if named else ("critic/score/min", "critic/score/max")
    require_between(np.concatenate([reward, *(numbers_in(lines, name) for name in beside)]), 0, 1, "rewards", wanted)
    parts = [] if named else parts_of(lines)
    if len(parts) > 1 or any(not same(lines, name, "reward") for name in parts):
        raise ValueError(f"the reward is made of {', '.join(parts)}: a forecast needs {wanted}")
    spread = 0 if named else numbers_in(lines, "reward/std").max(initial=0)
    if spread > MOST_SPREAD:
        said = f"reward/std is up to {spread:.2f}, so rewards are not all from 0 to 1"
        raise ValueError(f"{said}: a forecast needs {wanted}")
    if reward.min() == reward.max():
        raise ValueError(f"the reward is {reward[0]:g} at every step: groups without a signal tell no rule apart")
    return reward


def span(steps: NDArray[np.int64]) -> tuple[int, int]:
    """Return the first step of a log and the step after its last, from the steps that have an entropy.

    A line of several steps, as at 10, 20, 30, is their mean. Raises ValueError if the log begins late.
    """
    every = round(float(np.median(np.diff(steps)))) if len(steps) > 1 else 1
    if every > 1 and steps[0] == every:
        return 0, int(steps[-1])
    if steps[0] > 1:
        raise ValueError(f"the log begins at step {steps[0]}: a forecast needs the start of a run")
    return int(steps[0]), int(steps[-1]) + 1


def evaluations(lines: Sequence[Mapping[str, Any]], start: int) -> tuple[int, Array, Array, Array]:
    """Return k, and the steps, the mean and pass@k of evaluations: the last before the start, and those after it.

    The mean is avg@k of the largest k that is logged, since all avg@k have one expectation; pass@k has its own k.
    Raises ValueError on numbers that are no shares, and if avg@k is above pass@k.
    """
    ks = {"avg": 0, "pass": 0}
    for found in filter(None, map(EVALUATED.fullmatch, dict.fromkeys(name for line in lines for name in line))):
        ks[found[1]] = max(ks[found[1]], int(found[2]))
    k = ks["pass"] or ks["avg"]
    names = f"eval/avg@{ks['avg']}", f"eval/pass@{ks['pass']}"
    shown = [line for line in lines if any(known(line, name) for name in names)]
    later = [*(line["step"] for line in shown[1:]), start + 1]
    shown = [line for line, after in zip(shown, later, strict=False) if line["step"] >= start or after > start]
    mean, passed = (np.array([number(line, name) for line in shown], dtype=np.float64) for name in names)
    for name, values in zip(names, (mean, passed), strict=True):
        require_between(values[np.isfinite(values)], 0, 1, name, "shares of right answers")
    if ks["avg"] == ks["pass"] and (mean > passed + 1e-6).any():
        raise ValueError(f"eval/avg@{k} is above eval/pass@{k}, which cannot be: one of them has another meaning")
    return k or 8, np.array([line["step"] for line in shown], dtype=np.float64), mean, passed


def require_between(values: Array, low: float, high: float, name: str, wanted: str) -> None:
    """Raise ValueError unless all values, if there are any, are between two numbers."""
    if len(values) and (values.min() < low or values.max() > high):
        raise ValueError(f"{name} are between {values.min():g} and {values.max():g}: a forecast needs {wanted}")


def together(runs: Sequence[Observed]) -> Observed:
    """Return the mean of runs that differ in their seed alone. Raises ValueError if they cover different steps."""
    one = runs[0]
    if any(
        (x.steps, x.total, x.k, x.evaluated.tolist()) != (one.steps, one.total, one.k, one.evaluated.tolist())
        for x in runs
    ):
        raise ValueError(
            "the runs cover different steps or evaluations: give runs that differ in their seed alone, and --total "
            "and --first if one was stopped"
        )
    entropy, reward, mean, passed = (
        np.mean([getattr(run, name) for run in runs], 0) for name in ("entropy", "reward", "mean", "passed")
    )
    said = dict.fromkeys(doubt for run in runs for doubt in run.doubts)
    return replace(one, entropy=entropy, reward=reward, mean=mean, passed=passed, doubts=tuple(said))


def parts_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the metrics of the reward functions that are logged."""
    names = dict.fromkeys(name for line in lines for name in line if PART.fullmatch(name))
    return [name for name in names if len(numbers_in(lines, name))]


def same(lines: Sequence[Mapping[str, Any]], name: str, other: str) -> bool:
    """Return True if two metrics are equal wherever both are known."""
    both = [line for line in lines if known(line, name) and known(line, other)]
    return bool(both) and np.allclose(numbers_in(both, name), numbers_in(both, other), rtol=0, atol=ROUNDED)


def such_as(
    lines: Sequence[Mapping[str, Any]], pattern: re.Pattern[str] | None = None, low: float = 0, high: float = 1
) -> str:
    """Return the logged metrics that may be meant, as the end of a sentence; "" if none may.

    pattern: of their names, by default those of the share of right answers. low, high: between these their values lie.
    """
    pattern = pattern or CORRECT
    names = dict.fromkeys(name for line in lines for name in line if pattern.search(name) and name != "reward")
    values = {name: numbers_in(lines, name) for name in names}
    fit = [name for name, of in values.items() if len(of) and low <= of.min() < of.max() <= high]
    return f", such as {' or '.join(fit)}" if fit else ""


def numbers_in(lines: Sequence[Mapping[str, Any]], name: str) -> Array:
    """Return the known values of a metric."""
    return np.array([number(line, name) for line in lines if known(line, name)], dtype=np.float64)


def known(line: Mapping[str, Any], name: str) -> bool:
    """Return True if a metric is a finite number."""
    return bool(np.isfinite(number(line, name)))


def number(line: Mapping[str, Any], name: str) -> float:
    """Return a metric of a line; NaN if it is missing."""
    value = line.get(name)
    return float("nan") if value is None else float(value)
