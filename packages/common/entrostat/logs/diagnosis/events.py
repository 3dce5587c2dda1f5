"""Events of a run, each with its step: entropy falls or explodes, numbers are lost, the reward dies, evaluations fall.

    happened = look([{"step": 0, "entropy": .5, "reward": .2}, ...])
    happened.told      "Entropy fell from 0.256 nats to 0.053 by step 60, then exploded from step 140 (6.36 nats); ..."

Both ends count: a collapse that is over by the end of the log is told, and so is an entropy that rises without bound.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..runlog import is_evaluation
from .entropy_course import LASTS, Fall, Peak, entropy_course
from .numbers import Array, last_third, numbers, running_median, to_the_end
from .signal import READ, without_signal

ALIVE = 0.05
"""Share of the way from the reward's floor to its best running median, at or below which a running median is dead."""
HALF = 0.5
"""The same at or below which it has dropped."""
BLOWN = 10.0
"""Factor by which the norm of the gradient grows that is told."""
BELOW_ZERO = -0.1
"""Running median of rewards from which down, if all lie from −1 to 1, their floor is −1: penalties may be smaller."""
PAUSES = 2
"""Factor by which a dead reward, or a metric that ended, must outlast the longest pause before."""
LONGER = 1.75
"""Factor by which responses grow or shrink that is told."""
DECLINED = 0.8
"""Share of its best running median at or below which an evaluation has fallen, if by more than NOISE."""
NOISE = 3.0
"""Standard deviations of an evaluation, by its successive differences, and standard errors of a reward that died."""
FEWEST_EVALUATIONS = 6
EVALUATION = re.compile(r"(?:eval|val|test)[/_-].*(?:pass@|avg@|maj@|acc|reward|score)", re.IGNORECASE)
"""Names of evaluations that are better the higher they are, unless they have one of SPREADS in them."""
SPREADS = {"low", "high", "std", "min", "max"}
CERTAIN = 0.01
"""Entropy (nats) at or below which nearly every token is certain: e^H, the number of choices, is 1.01."""
LEVELS = {
    "mismatch/logp_gap": (0.05, "engine and trainer differ by {:.2g} nats a token"),
    "mismatch/probs_diff": (0.05, "engine and trainer differ by {:.2g} in the probability of a token"),
    "groups/no_signal": (0.9, "{:.0%} of the groups have one reward and no signal"),
    "tokens/no_signal": (0.9, "{:.0%} of the tokens have no advantage"),
    "steps/no_signal": (0.5, "no response has an advantage in {:.0%} of the steps"),
    "steps/unsolved": (0.9, "no task is solved in {:.0%} of the steps"),
    "reward/same": (0.9, "the reward is the same in {:.0%} of the steps and gives no signal"),
    "entropy/certain": (
        0.5,
        f"the entropy is below {CERTAIN:g} nats in {{:.0%}} of the steps, so nearly every token is certain",
    ),
    "truncated": (0.5, "{:.0%} of the responses are cut off"),
    "clip_fraction": (0.2, "{:.0%} of the tokens are clipped"),
}
"""Metrics whose mean over the last third is told from this value on, and how.

Two are no metrics: `reward/same`, the share of steps with the most frequent reward, told where no_signal is not logged;
`entropy/certain`, told where the entropy did not fall to it. `steps/no_signal`: see signal.py. `truncated` is also told
where the mean length has grown to a limit.
"""
FEWEST_REWARDS = 15
"""Logged rewards below which equal ones may be chance."""
GUARDED = ("entropy", "reward", "loss", "grad_norm")
"""Metrics that are not a number in a run that is lost."""
REGULAR = 0.8
"""Share of the distances between values of a sparse metric that are alike if blanks between them are no loss."""
OFTEN = 0.9
"""Share of the steps of training from which on a metric belongs to each, so that blanks between values are a loss."""


class Gap(NamedTuple):
    """Steps at which a metric had no number, though it had one later."""

    steps: int
    """Number of them."""
    first: int
    last: int
    blank: bool
    """True if nothing is logged there, False if NaN or infinity is."""


class Death(NamedTuple):
    """Reward that died: when, its best running median before, and the floor at which it is."""

    step: int
    best: float
    floor: float
    """Lowest reward that there can be: −1 or 0."""


class Change(NamedTuple):
    """Metric that changed for good: from which step, from which value to which."""

    step: int
    before: float
    after: float


class Decline(NamedTuple):
    """Evaluation that fell after its best value, while the training reward did not."""

    metric: str
    best: float
    best_step: int
    last: float


class Happened(NamedTuple):
    """Events of a run; None or empty for what did not happen."""

    first: float | None
    """First logged entropy (nats); in a noisy run the first running median."""
    fell: Fall | None
    exploded: tuple[int, float] | None
    """Step from which the entropy exploded, and its highest value (nats)."""
    peaked: Peak | None
    """Rise and fall of the entropy that `fell` does not tell, because it ends above a third of the first value."""
    lost: dict[str, int]
    """Metrics that are NaN or infinite until the end, and the step from which they are."""
    gaps: dict[str, Gap]
    """Metrics without a number at some steps before their last number."""
    ended: dict[str, int]
    """Metrics that are not logged any more where others are, and the first step without them."""
    steps: int
    """Number of steps up to the last one that the log has."""
    died: Death | None
    dropped: Change | None
    """Reward that lost half of its best running median above its floor for good, and has not died."""
    grown: Change | None
    """Norm of the gradient that is BLOWN times that of the first half of the run until the end, and its highest."""
    levels: dict[str, float]
    """Metrics of LEVELS that are beyond their limit, and their mean over the last third."""
    length: tuple[float, float] | None
    """Mean response length at the start and at the end, if they differ by LONGER."""
    declined: Decline | None
    read: tuple[str, ...]
    """Metrics that were looked at."""

    @property
    def marks(self) -> list[tuple[int, str]]:
        """Steps of the events and a word for each, in their order."""
        found = [(self.fell.step, "fell")] if self.fell else []
        found += [(self.exploded[0], "exploded")] if self.exploded else []
        found += [(self.peaked.step, "fell from its peak")] if self.peaked else []
        lost = {*self.lost.values(), *(gap.first for gap in self.gaps.values() if not gap.blank)}
        found += [(step, "NaN") for step in sorted(lost)]
        found += [(step, "not logged") for step in sorted(set(self.ended.values()))]
        found += [(self.died[0], "reward dead")] if self.died else []
        found += [(self.dropped.step, "reward halved")] if self.dropped else []
        found += [(self.grown.step, "gradient grew")] if self.grown else []
        found += [(self.declined.best_step, "best evaluation")] if self.declined else []
        return sorted(found)

    @property
    def told(self) -> str:
        """All events in a sentence; empty if there are none."""
        parts = []
        if self.fell:
            step, low, low_step = self.fell
            early = f" (below a third from step {step})" if step < low_step else ""
            parts.append(f"entropy fell from {self.first:.3g} nats to {low:.3g} by step {low_step}{early}")
        if self.exploded:
            step, high = self.exploded
            came = f"exploded from step {step} (up to {high:.3g} nats)"
            before = self.fell and self.fell.step < step
            parts.append(f"then {came}" if before else f"entropy starts at {self.first:.3g} nats and {came}")
        if self.peaked:
            high, high_step, step, low, low_step = self.peaked
            early = f" (below a third of the peak from step {step})" if step < low_step else ""
            if self.exploded:
                course = f"fell from its peak of {high:.3g} nats at step {high_step}"
            else:
                low_before = self.fell.low if self.fell else self.first
                course = f"rose from {low_before:.3g} nats to {high:.3g} by step {high_step} and then fell"
            parts.append(f"entropy {course} to {low:.3g} by step {low_step}{early}")
        if self.lost:
            parts.append(f"not a number: {', '.join(f'{names} from step {at}' for at, names in _since(self.lost))}")
        parts += [_gap(_listed(names), len(names), gap, self.steps) for gap, names in _alike(self.gaps).items()]
        for at, names in _since(self.ended):
            verb = "are" if " and " in names else "is"
            parts.append(f"{names} {verb} not logged from step {at} of {self.steps}")
        if self.died:
            step, best, floor = self.died
            least = f", and is now within {ALIVE:.0%} of the lowest there can be, {floor:.0f}" if floor else ""
            parts.append(f"the reward is dead since step {step} (it was {best:.3g}{least})")
        if self.dropped:
            step, best, last = self.dropped
            parts.append(f"the reward fell from {best:.3g} to {last:.3g} (below half from step {step})")
        if self.grown:
            step, usual, high = self.grown
            parts.append(f"the gradient's norm grew from {usual:.3g} to {high:.3g} from step {step}")
        if self.declined:
            name, best, step, last = self.declined
            parts.append(f"{name} fell from {best:.3g} at step {step} to {last:.3g} while the training reward did not")
        parts += [LEVELS[name][1].format(value) for name, value in self.levels.items()]
        if self.length:
            grew = "grew" if self.length[1] > self.length[0] else "shrank"
            parts.append(f"responses {grew} from {self.length[0]:.0f} to {self.length[1]:.0f} tokens")
        said = "; ".join(parts).replace("; then ", ", then ")
        return f"{said[:1].upper()}{said[1:]}." if said else ""


def _since(steps: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return each step with its metrics in words, in the order of the metrics."""
    since: dict[int, list[str]] = {}
    for name, step in steps.items():
        since.setdefault(step, []).append(name)
    return [(step, _listed(names)) for step, names in since.items()]


def _alike(gaps: Mapping[str, Gap]) -> dict[Gap, list[str]]:
    """Return the metrics that have each gap."""
    found: dict[Gap, list[str]] = {}
    for name, gap in gaps.items():
        found.setdefault(gap, []).append(name)
    return found


def _gap(names: str, metrics: int, gap: Gap, of: int) -> str:
    """Return a gap in words. names, metrics: its metrics and their number. of: number of steps."""
    verb = "are" if metrics > 1 else "is"
    what = "not logged" if gap.blank else "not a number"
    where = f"step {gap.first}" if gap.first == gap.last else f"{gap.steps} steps from {gap.first} to {gap.last}"
    return f"{names} {verb} {what} at {where} of {of}, and {verb} again later"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def look(metrics: Sequence[Mapping[str, Any]], target: float | None = None) -> Happened:
    """Return the events of a run.

    metrics: a mapping for each step, with `step` and metrics under entrostat's names; None or NaN where a value is no
    number. target: target entropy (nats), near which an entropy does not count as exploded.
    """
    course = entropy_course(*numbers(metrics, "entropy"), target)
    lost = {name: step for name in GUARDED if (step := _lost(metrics, name)) is not None}
    ended = {name: step for name in GUARDED if name not in lost and (step := _ended(metrics, name)) is not None}
    gaps = {name: gap for name in GUARDED if (gap := _interrupted(metrics, name)) is not None}
    died = _died(*numbers(metrics, "reward"))
    late = {name: last_third(values) for name in LEVELS if len(values := numbers(metrics, name)[1])}
    late |= {name: last_third(values) for name, values in without_signal(metrics).items()}
    entropy, reward, length = (numbers(metrics, name)[1] for name in ("entropy", "reward", "response_length"))
    if course.fell is None and course.peaked is None and len(entropy) >= LASTS:
        few = last_third(entropy)
        late["entropy/certain"] = ((few > 0) & (few <= CERTAIN)).astype(np.float64)
    if "groups/no_signal" not in late and died is None and len(reward) >= FEWEST_REWARDS:
        values, often = np.unique(last_third(reward), return_counts=True)
        late["reward/same"] = (last_third(reward) == values[often.argmax()]).astype(np.float64)
    if "truncated" not in late and _at_its_limit(length):
        late["truncated"] = np.ones(1)
    levels = {name: float(values.mean()) for name, values in late.items() if values.mean() >= LEVELS[name][0]}
    if "reward/same" in levels:
        levels.pop("steps/no_signal", None)
    return Happened(
        *course,
        lost,
        gaps,
        ended,
        steps=metrics[-1]["step"] + (metrics[0]["step"] == 0) if metrics else 0,
        died=died,
        dropped=None if died else _dropped(*numbers(metrics, "reward")),
        grown=_grown(*numbers(metrics, "grad_norm")),
        levels=levels,
        length=_length(length),
        declined=_declined(metrics),
        read=tuple(sorted(name for name in set[str]().union(*metrics) if looks_at(name))),
    )


def _clearly_higher(before: Array, after: Array) -> bool:
    """Return True if the mean of the first values lies above that of the others by NOISE standard errors."""
    spread = sum(float(values.var()) / len(values) for values in (before, after) if len(values))
    return len(after) > 0 and float(before.mean() - after.mean()) > NOISE * np.sqrt(spread)


def looks_at(name: str) -> bool:
    """Return True if `look` reads a metric."""
    return name in (*GUARDED, *LEVELS, *READ, "response_length") or _is_evaluation(name)


def _is_evaluation(name: str) -> bool:
    return EVALUATION.match(name) is not None and SPREADS.isdisjoint(re.split("[^a-z0-9]+", name.lower()))


def _length(length: Array) -> tuple[float, float] | None:
    if len(length) < 2 * LASTS:
        return None
    ends = length[:LASTS], length[-LASTS:]
    means, medians = ((float(of(ends[0])), float(of(ends[1]))) for of in (np.mean, np.median))
    # The medians too: one response of a small batch may double a mean.
    return means if all(max(pair) >= LONGER * min(pair) > 0 for pair in (means, medians)) else None


def _at_its_limit(length: Array) -> bool:
    """Return True if the mean length grew to a value that it then keeps exactly: the limit of every response."""
    return (
        len(length) >= FEWEST_REWARDS
        and float(length[:LASTS].mean()) <= HALF * float(length.max())
        and bool((last_third(length) == length.max()).all())
    )


def _declined(metrics: Sequence[Mapping[str, Any]]) -> Decline | None:
    """Return the evaluation that fell most, by running medians of three; None if none fell."""
    at, reward = numbers(metrics, "reward")
    found = []
    for name in sorted(filter(_is_evaluation, set[str]().union(*metrics))):
        steps, values = numbers(metrics, name)
        if len(values) < FEWEST_EVALUATIONS:
            continue
        medians = running_median(values, 3)
        best, last = int(medians.argmax()), medians[-1]
        noise = np.median(np.abs(np.diff(values))) / (0.6745 * np.sqrt(2))
        fell = medians[best] > 0 and last <= min(DECLINED * medians[best], medians[best] - NOISE * noise)
        then, now = reward[at <= steps[best + 1]][-LASTS:], reward[at > steps[best + 1]][-LASTS:]
        if fell and len(then) and len(now) and now.mean() >= then.mean():
            found.append(Decline(name, float(medians[best]), int(steps[best + 1]), float(last)))
    return min(found, key=lambda one: one.last / one.best, default=None)


def _lost(metrics: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Return the first step after the last number of a metric at which it is none; None if it ends as a number.

    A table may fill the steps between sparse values with NaN: such a metric is lost if it is for longer than between
    any two values.
    """
    told = [(int(line["step"]), line[name]) for line in metrics if name in line]
    there = [at for at, (_, value) in enumerate(told) if isinstance(value, int | float) and np.isfinite(value)]
    if not told or not there:
        return told[0][0] if told else None
    between = np.diff(there)
    sparse = len(between) > 0 and np.median(between) > 1
    after = len(told) - 1 - there[-1]
    return told[there[-1] + 1][0] if after > (between.max() - 1 if sparse else 0) else None


def _interrupted(metrics: Sequence[Mapping[str, Any]], name: str) -> Gap | None:
    """Return the steps without a number of a metric that has one later; None if there are none.

    Lines of evaluations do not count. NaN that fills the steps between sparse values of a table is no loss, nor are
    blanks of a metric that is not logged at OFTEN of the steps, or at steps without the other metrics of GUARDED.
    """
    trained = [line for line in metrics if not _only_evaluates(line)]
    there = [at for at, line in enumerate(trained) if _is_finite(line.get(name))]
    if not there:
        return None
    before = range(there[-1])
    between = np.diff(there)
    sparse = len(between) > 0 and np.median(between) > 1
    filled = sparse and (between == np.median(between)).mean() >= REGULAR
    nan = [] if filled else [at for at in before if name in trained[at] and not _is_finite(trained[at][name])]
    often = len(there) + len(nan) >= OFTEN * (there[-1] + 1)
    alone = [at for at in before if at > there[0] and name not in trained[at]] if often and not nan else []
    blank = [at for at in alone if any(_is_finite(trained[at].get(other)) for other in GUARDED)]
    steps = [int(trained[at]["step"]) for at in nan or blank]
    return Gap(len(steps), steps[0], steps[-1], not nan) if steps else None


def _only_evaluates(line: Mapping[str, Any]) -> bool:
    """Return True if all numbers of a line are of evaluations, and there are some."""
    return is_evaluation({name: value for name, value in line.items() if name == "step" or _is_finite(value)})


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def _ended(metrics: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Return the first step after the last value of a metric, if steps of training go on; None if it does not end.

    It ends if the steps without it are LASTS or more, and PAUSES times as many as between any two values.
    """
    trained = [line for line in metrics if not is_evaluation(line)]
    there = [at for at, line in enumerate(trained) if name in line]
    after = len(trained) - 1 - there[-1] if there else 0
    if len(there) < 2 or after < max(LASTS, PAUSES * (np.diff(there).max() - 1)):
        return None
    return int(trained[there[-1] + 1]["step"])


def _floor(reward: Array, medians: Array) -> float:
    """Return the lowest reward that there can be: −1 or 0."""
    return -1.0 if medians.min() <= BELOW_ZERO and np.abs(reward).max() <= 1 + 1e-6 else 0.0


def _dropped(at: NDArray[np.int64], reward: Array) -> Change | None:
    """Return the reward that lost half of its best running median for good; None if it did not."""
    length = max(LASTS, len(reward) // 20)
    if len(reward) < 2 * length:
        return None
    medians = running_median(reward, length)
    floor = _floor(reward, medians)
    best = float(medians.max())
    start = to_the_end(medians - floor <= HALF * (best - floor), LASTS // 2 + 1)
    if start is None or medians.min() < floor or best <= floor or medians.argmax() > start:
        return None
    middle = start + length // 2
    changed = _clearly_higher(reward[:middle], reward[middle:])
    return Change(int(at[middle]), best, float(medians[-1])) if changed else None


def _grown(at: NDArray[np.int64], norm: Array) -> Change | None:
    """Return the norm of the gradient that grew for good; None if it did not."""
    if len(norm) < 4 * LASTS:
        return None
    medians, usual = running_median(norm, LASTS), float(np.median(norm[: len(norm) // 2]))
    start = to_the_end(medians >= BLOWN * usual, LASTS) if usual > 0 else None
    return Change(int(at[start + LASTS // 2]), usual, float(medians[start:].max())) if start else None


def _died(at: NDArray[np.int64], reward: Array) -> Death | None:
    if len(reward) < 2 * LASTS:
        return None
    medians = running_median(reward, LASTS)
    floor = _floor(reward, medians)
    best = float(medians.max())
    alive = np.flatnonzero(medians - floor > ALIVE * (best - floor))
    if best <= floor:
        return None
    dead = int(alive[-1]) + 1 + LASTS // 2
    if not _clearly_higher(reward[:dead], reward[dead:]):
        return None
    longest = int((np.diff(alive, prepend=-1) - 1).max())
    return Death(int(at[dead]), best, floor) if len(reward) - dead >= max(LASTS, PAUSES * longest) else None
