"""Quantities of one run, measured from its metrics: collapse, clipping, the law, control and pass@k.

    facts = measure([{"step": 0, "entropy": .5, "reward": .2}, ...])
    facts.entropy.collapse           first step of the collapse, None if there is none
    facts.conditions                 {"collapsed", "no target", ...}: names of CONDITIONS that rules ask for

Nothing here says what to do.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...by_name import REGISTRY, hyperparameters  # all controllers are registered there
from ...numbers.draws import generator_seed
from ...registry import ALIASES
from .. import laws
from ..doubts import doubts, heated, of_kept_groups
from ..foreign.metric_names import LOOKS_LIKE, candidates
from ..runlog import HOLDS_WITHIN, moving_target, target_of, trained_steps
from .entropy_course import smoothing
from .events import Happened, look, looks_at
from .numbers import Array, last_third, numbers, running_median
from .signal import NO_SIGNAL

Metrics = Sequence[Mapping[str, Any]]

WINDOW = 5
"""Number of logged entropies in a running median; more in a noisy run."""
ROUNDING = 1e-3
"""Entropy (nats) below 0 that rounding explains."""
FEWEST = 10
"""Lower limit for the logged entropies that a collapse is sought in."""
COLLAPSED = 1 / 3
"""Share of the entropy at the start at or below which it counts as collapsed."""
ROSE = 1.5
"""The same for an entropy that rose."""
HARDLY = 0.001
"""Share of clipped tokens below which clipping has hardly any effect."""
PINNED = 0.9
"""Share of the last third that a coefficient at its bound is there."""
MOST_NATS = 13.0
"""Entropy (nats) above which none is a mean over tokens: ln 262,144 is 12.5."""
MOST_POINTS = 1500
"""Upper limit for the points of a law; a longer run is thinned evenly."""
MOST_OTHERS = 3
"""Upper limit for the names that are suggested instead of one."""
CLIPPING = ("clip_fraction", "clip/high", "clip/low", "ratio/max", "kl_to_rollout")
"""Metrics of the distance between the policy and that of the rollout."""
ENGINES = ("mismatch/kl", "mismatch/ratio_max", "mismatch/logp_gap", "mismatch/probs_diff")
"""Metrics of the distance between the rollout engine's probabilities and the trainer's."""
COEFFICIENTS = (
    "adaptive_entropy/coef",
    "adaptive_entropy_trl/coef",
    "aer/coef",
    "entropic/alpha",
    "entropy_coef",
    "stare/negative_weight",
    "stare/positive_weight",
    "thermostat/anchor",
    "thermostat/bonus",
)
"""Coefficients that closed loops move; `entropy_coef` is TRL's own."""
TARGET = "target"
"""Hyperparameter of controllers that hold an entropy."""
TEMPERATURE = "temperature"
"""Sampling temperature of a step, where it moves."""
PASSED = re.compile(r"eval/(?:.+/)?pass@(\d{1,6})")


class Entropy(NamedTuple):
    """Course of the entropy, nats, by running medians over WINDOW logged values."""

    start: float
    """First running median."""
    late: float
    """Mean of the last third of the values."""
    low: float
    """Lowest and highest value of the last third."""
    high: float
    collapse: int | None
    """First step from which the running median stays at or below COLLAPSED times the start; None if there is none."""


class Level(NamedTuple):
    """Size of a metric."""

    late: float
    """Mean of the last third of its values."""
    most: float
    """Largest value."""


class Lawful(NamedTuple):
    """Law R = −a·e^H + b of the run, beside its null: that the step alone predicts the reward."""

    law: laws.Law
    gain: float
    """R² of the law minus that of the null, a parabola in the step."""
    gain_interval: tuple[float, float]
    """Its 95% interval, by resampled blocks of steps."""
    prediction: laws.Prediction | None
    """Forecast of the rest from the first points, beside a constant; None if these are too few."""
    doubts: tuple[str, ...]

    @property
    def predicts(self) -> bool:
        """True if, beyond both intervals, reward rises as entropy falls, and the law explains more than the null."""
        return self.law.a_interval[0] > 0 and self.gain_interval[0] > 0


class Control(NamedTuple):
    """Target of the entropy, and the coefficients that were moved towards it."""

    target: float | None
    """Target (nats), of one that moves the mean over the last third; None without one."""
    error: float
    """Mean entropy over the last third minus the target; NaN without one."""
    coefficients: dict[str, Level]
    pinned: dict[str, float]
    """Coefficients that stand at their largest or smallest value over the last third, and that value."""

    @property
    def held(self) -> bool | None:
        """True if the error is within HOLDS_WITHIN of the target; None if either is unknown."""
        if self.target is None or np.isnan(self.error):
            return None
        return abs(self.error) <= HOLDS_WITHIN * self.target


class Breadth(NamedTuple):
    """Held-out pass@k of the first and the last evaluation."""

    metric: str
    first: float
    last: float
    steps: tuple[int, int]
    intervals: tuple[tuple[float, float], tuple[float, float]] | None
    """95% intervals of both; None if they were not logged."""

    @property
    def fell(self) -> bool:
        """True if the intervals tell that the last value is lower."""
        return self.intervals is not None and self.intervals[1][1] < self.intervals[0][0]


@dataclass(frozen=True)
class Facts:
    """Quantities of a run."""

    steps: int
    """Number of steps with a metric of training."""
    entropies: int
    """Number of steps with an entropy."""
    unmeasured: int
    """Number of entropies of 0 before the first other one, which are left out."""
    controller: str
    """Controller of the run; empty if its log does not say."""
    entropy: Entropy | None
    """None if fewer than FEWEST entropies were logged, or the first are not positive."""
    clipping: dict[str, Level]
    law: Lawful | None
    no_law: str
    """Reason that there is no law; empty if there is one."""
    control: Control
    breadth: Breadth | None
    happened: Happened
    candidates: Mapping[str, tuple[str, ...]]
    """Logged metrics that may be one that is missing under a known name, by entrostat's name."""
    incomparable: str = ""
    """Reason that entropies of different steps cannot be compared, and none is read; empty if they can."""
    impossible: str = ""
    """Reason that the entropy is no mean over tokens, a sentence; empty if it may be one."""

    @property
    def clipped(self) -> float | None:
        """Share of tokens clipped from above, or of all clipped, over the last third; None if neither is logged."""
        found = self.clipping.get("clip/high", self.clipping.get("clip_fraction"))
        return None if found is None else found.late

    @property
    def conditions(self) -> frozenset[str]:
        """Names in CONDITIONS that hold."""
        return frozenset(name for name, holds in CONDITIONS.items() if holds(self))


def measure(metrics: Metrics, config: Mapping[str, Any] | None = None, target: float | None = None) -> Facts:
    """Return the facts of a run.

    Args:
        metrics: one mapping per step, with `step` and metrics under entrostat's names (docs/metrics.md).
        config: configuration of the run; None if it is unknown.
        target: target entropy (nats) instead of that in `config`.

    Raises ValueError if `target` is negative or not a number.
    """
    if target is not None and not target >= 0:
        raise ValueError(f"a target is an entropy in nats, 0 or more, not {target:g}")
    logged, steps = set[str]().union(*metrics), trained_steps(metrics)
    controller = str((config or {}).get("controller") or "")
    incomparable, kept = heated(numbers(metrics, TEMPERATURE)[1]), of_kept_groups(metrics)
    if incomparable:
        metrics = [{name: x for name, x in line.items() if name != "entropy"} for line in metrics]
    metrics, unmeasured = _measured(metrics)
    whole, names = metrics, {name for name in logged if reads(name)}
    metrics = [{name: line[name] for name in ("step", *names) if name in line} for line in metrics]
    at, entropy = numbers(metrics, "entropy")
    if target is None:
        target = _target(metrics, config or {}, controller)
    law, no_law = (None, kept) if kept else _law(metrics, target)
    no_law = incomparable or no_law
    return Facts(
        steps=steps,
        entropies=len(entropy),
        unmeasured=unmeasured,
        controller=controller,
        entropy=_course(at, entropy),
        clipping={name: level for name in (*CLIPPING, *ENGINES) if (level := _level(metrics, name))},
        law=law,
        no_law=no_law,
        control=_control(metrics, entropy, target),
        breadth=_breadth(metrics),
        happened=look(whole, target),
        candidates={ours: found for ours in LOOKS_LIKE if ours not in logged and (found := candidates(ours, logged))},
        incomparable=incomparable,
        impossible=_impossible(entropy, candidates("entropy", logged - {"entropy"})),
    )


def parts(controller: str) -> list[str]:
    """Return the names that a run's controller joins by +; nothing is imported, because it comes from a file."""
    return [ALIASES.get(name, name) for word in controller.split("+") if (name := word.strip())]


def reads(name: str) -> bool:
    """Return True if `measure` reads a metric."""
    known = looks_at(name) or name in (TEMPERATURE, *CLIPPING, *ENGINES, *COEFFICIENTS) or name.endswith("/target")
    return known or PASSED.fullmatch(name.removesuffix("/low").removesuffix("/high")) is not None


def _measured(metrics: Metrics) -> tuple[Metrics, int]:
    """Return metrics without the entropies of 0 before the first other one, and the number of these.

    A policy without entropy keeps none, so those were not measured.
    """
    at, entropy = numbers(metrics, "entropy")
    zeros = int((entropy != 0).argmax()) if entropy.any() else 0
    if not zeros:
        return metrics, 0
    first = at[zeros]
    kept = [{name: x for name, x in line.items() if name != "entropy" or line["step"] >= first} for line in metrics]
    return kept, zeros


def _course(at: NDArray[np.int64], entropy: Array) -> Entropy | None:
    if len(entropy) < FEWEST:
        return None
    window = max(WINDOW, smoothing(entropy))
    medians = running_median(entropy, window)
    if medians[0] <= 0:
        return None
    above = np.flatnonzero(medians > COLLAPSED * medians[0])
    first = above[-1] + 1
    collapse = int(at[first + window // 2]) if first < len(medians) else None
    late = last_third(entropy)
    return Entropy(float(medians[0]), float(late.mean()), float(late.min()), float(late.max()), collapse)


def _impossible(entropy: Array, others: Sequence[str]) -> str:
    """Return why an entropy (n,) is no mean over tokens; empty if it may be one. others: names that look like one."""
    above = int((entropy > MOST_NATS).sum())
    if above and above >= min(len(entropy), WINDOW):
        steps = "throughout" if above == len(entropy) else f"in {above} of {len(entropy)} steps"
        return (
            f"The entropy is above {MOST_NATS:.0f} nats {steps}, more than any vocabulary allows for a token "
            "(ln 262,144 = 12.5): it is a sum over tokens, or in other units."
        )
    named = " or ".join(f"--entropy {name}" for name in others[:MOST_OTHERS]) or "--entropy NAME"
    if len(entropy) and not entropy.any() and others:
        return f"The entropy is 0 throughout, so that it was not measured. Name the column of another: {named}"
    below = int((entropy < -ROUNDING).sum())
    if below and below >= min(len(entropy), WINDOW):
        whole = entropy.max() < 0
        when = "throughout" if whole else f"in {below} of {len(entropy)} steps"
        looks = "a loss, the negative of the entropy" if whole else "a sum with a mark in it for padding"
        return (
            f"The entropy is negative {when}, which no entropy of tokens is: this looks like {looks}. Log the entropy "
            f"itself, or name its column: {named}"
        )
    return ""


def _level(metrics: Metrics, name: str) -> Level | None:
    values = numbers(metrics, name)[1]
    return Level(float(last_third(values).mean()), float(values.max())) if len(values) else None


def _target(metrics: Metrics, config: Mapping[str, Any], controller: str) -> float | None:
    """Return the target of a controller that has one, of one that moves the mean over the last third; else None."""
    if moving := list(moving_target(metrics).values()):
        late = float(last_third(np.array(moving, dtype=np.float64)).mean())
        return late if late >= 0 else None
    names = parts(controller)
    without = all(name in REGISTRY and TARGET not in hyperparameters(REGISTRY[name]) for name in names)
    target = None if names and without else target_of(config)
    return target if target is not None and target >= 0 else None


def _law(metrics: Metrics, target: float | None) -> tuple[Lawful | None, str]:
    """Return the law of the steps that have both entropy and reward, or None and the reason."""
    reward = dict(zip(*(x.tolist() for x in numbers(metrics, "reward")), strict=True))
    steps, entropy = numbers(metrics, "entropy")
    both = [i for i, step in enumerate(steps.tolist()) if step in reward]
    missing = [name for name, there in (("entropy", len(steps)), ("reward", len(reward))) if not there]
    if missing:
        return None, f"no {' and no '.join(missing)} is logged"
    if len(both) > MOST_POINTS:
        both = np.array(both)[np.linspace(0, len(both) - 1, MOST_POINTS).round().astype(int)].tolist()
    at, h, r = steps[both], entropy[both], np.array([reward[step] for step in steps[both].tolist()])
    try:
        law, scores = laws.fit(h, r), laws.alternatives(h, r)
    except ValueError as error:
        return None, str(error)
    try:
        prediction = laws.predict_end(h, r)
    except ValueError:  # too few points, or an entropy that has not moved yet
        prediction = None
    reasons = doubts(law, scores, h, prediction=prediction, target=target)
    return Lawful(law, *_over_time(at, h, r, law), prediction, tuple(reasons)), ""


def _over_time(at: NDArray[np.int64], h: Array, r: Array, law: laws.Law) -> tuple[float, tuple[float, float]]:
    """Return by how much the law's R² exceeds that of a parabola in the step, and the 95% interval.

    The interval is of the mean difference of squared residuals, over redrawn blocks of neighbouring steps.
    """
    n = len(r)
    powers = np.vander((at - at[0]) / (at[-1] - at[0]), 3)
    null = powers @ np.linalg.lstsq(powers, r, rcond=None)[0]
    gain = ((r - null) ** 2 - (r - law(h)) ** 2) / (r.var() or 1.0)
    length = round(n ** (1 / 3))
    rng = np.random.default_rng(generator_seed("diagnosis", n))
    start = rng.integers(n - length + 1, size=(laws.RESAMPLES, -(-n // length), 1))
    means = gain[(start + np.arange(length)).reshape(laws.RESAMPLES, -1)[:, :n]].mean(1)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return float(gain.mean()), (low, high)


def _control(metrics: Metrics, entropy: Array, target: float | None) -> Control:
    error = float(last_third(entropy).mean() - target) if target is not None and len(entropy) else float("nan")
    levels, pinned = dict[str, Level](), dict[str, float]()
    for name in COEFFICIENTS:
        values = numbers(metrics, name)[1]
        if len(values) < FEWEST:
            continue
        late = last_third(values)
        levels[name] = Level(float(late.mean()), float(values.max()))
        for bound in (values.max(), values.min()):
            if np.isclose(late, bound, rtol=1e-6, atol=0).mean() >= PINNED:
                pinned.setdefault(name, float(bound))
    return Control(target, error, levels, pinned)


def _breadth(metrics: Metrics) -> Breadth | None:
    """Return pass@k of the largest k that was evaluated twice; None if there is none."""
    names = {name: int(k[1]) for name in set[str]().union(*metrics) if (k := PASSED.fullmatch(name))}
    for name in sorted(names, key=lambda name: (-names[name], name)):
        steps, values = numbers(metrics, name)
        if len(values) < 2:
            continue
        ends = [
            dict(zip(*(x.tolist() for x in numbers(metrics, f"{name}/{end}")), strict=True)) for end in ("low", "high")
        ]
        first, last = int(steps[0]), int(steps[-1])
        known = all(step in end for step in (first, last) for end in ends)
        intervals = ((ends[0][first], ends[1][first]), (ends[0][last], ends[1][last])) if known else None
        return Breadth(name, float(values[0]), float(values[-1]), (first, last), intervals)
    return None


CONDITIONS: dict[str, Callable[[Facts], bool]] = {
    "collapsed": lambda facts: facts.entropy is not None and facts.entropy.collapse is not None,
    "not collapsed": lambda facts: (
        facts.entropy is not None
        and facts.entropy.collapse is None
        and facts.happened.exploded is None
        and not facts.happened.lost
        and "entropy" not in facts.happened.ended
    ),
    "entropy rose": lambda facts: (
        facts.entropy is not None
        and facts.entropy.late > ROSE * facts.entropy.start
        and facts.happened.exploded is None
    ),
    "no target": lambda facts: facts.control.target is None,
    "target held": lambda facts: facts.control.held is True,
    "target missed": lambda facts: facts.control.held is False,
    "pass@k fell": lambda facts: facts.breadth is not None and facts.breadth.fell,
    "exploded": lambda facts: facts.happened.exploded is not None,
    "numbers lost": lambda facts: (
        bool(facts.happened.lost) or any(not gap.blank for gap in facts.happened.gaps.values())
    ),
    "reward died": lambda facts: facts.happened.died is not None,
    "reward dropped": lambda facts: facts.happened.dropped is not None,
    "gradient grew": lambda facts: facts.happened.grown is not None,
    "engines differ": lambda facts: bool({"mismatch/logp_gap", "mismatch/probs_diff"} & facts.happened.levels.keys()),
    "no signal": lambda facts: not facts.happened.levels.keys().isdisjoint(NO_SIGNAL),
    "cut off": lambda facts: "truncated" in facts.happened.levels,
    "evaluation fell": lambda facts: facts.happened.declined is not None,
    "hardly clipped": lambda facts: facts.clipped is not None and facts.clipped < HARDLY,
    "clipped": lambda facts: facts.clipped is not None and facts.clipped >= HARDLY,
}
"""Names of what a rule may ask for."""
