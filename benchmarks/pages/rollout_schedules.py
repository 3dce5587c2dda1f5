"""Schedules of a rollout, simulated for the same responses: what a step waits for, and what that costs.

    lockstep       a step waits for the longest of its responses
    longest first  so, too, but lengths are known before and the longest responses begin first
    partial        a response gets at most so many tokens in a step, and goes on in the next one under new weights
    oversampled    more groups begin than are trained; those that have not ended when enough have are dropped

Lengths are independent. In a real run those of a prompt are alike, so that fewer groups wait for a single response.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from llmtrain.plan.cost import RunPlan
from llmtrain.plan.derived import Layout
from llmtrain.plan.lengths import Drawn
from llmtrain.plan.memory import Memory
from llmtrain.plan.rollout_time import Rollout, add_wait, decode, decode_partially, prefill_seconds, slots, staleness


@dataclass(frozen=True)
class RolloutSchedule:
    """Rollout of a step by a schedule."""

    seconds: float
    """Time until the step has its responses (s)."""
    length: float = 1.0
    """Mean length of trained responses, divided by that of all."""
    staleness: float = 0.0
    """Steps from the weights that drew a token to its update, mean over tokens."""
    dropped: float = 0.0
    """Tokens drawn and not trained, per trained token."""

    def step_seconds(self, plan: RunPlan) -> float:
        """Return the time of a rollout step in which rollout and training take turns (s)."""
        return self.seconds + self.length * sum(plan.training.values()) + plan.sync

    def tokens_per_second(self, plan: RunPlan) -> float:
        """Return trained response tokens per second, all GPUs."""
        return self.length * plan.layout.response_tokens / self.step_seconds(plan)


def lockstep(layout: Layout, memory: Memory, lengths: Drawn, longest_first: bool = False) -> RolloutSchedule:
    """Return the schedule of a step that waits for its longest response."""
    drawn = shuffled(lengths, layout.sequences_per_engine)
    if longest_first:
        drawn.sort(reverse=True)
    rollout, _ = run(layout, memory, [(layout.config.mean_prompt_length, length) for length in drawn])
    add_wait(rollout, layout, max(drawn), lengths.longest(layout.generated))
    return RolloutSchedule(rollout.total)


def partial(layout: Layout, memory: Memory, lengths: Drawn, budget: int) -> RolloutSchedule:
    """Return the schedule of a step in which each response gets at most `budget` tokens."""
    drawn = shuffled(lengths, layout.sequences_per_engine)
    rollout = decode_partially(layout, memory, drawn, budget, lengths.longest(layout.generated))
    return RolloutSchedule(rollout.total, staleness=staleness(drawn, layout.config.n, budget))


def oversampled(layout: Layout, memory: Memory, lengths: Drawn, factor: float) -> RolloutSchedule:
    """Return the schedule of a step that begins `factor` times the groups that it trains."""
    size, wanted = layout.config.n, layout.sequences_per_engine // layout.config.n
    drawn = shuffled(lengths, math.ceil(factor * wanted) * size)
    prompt = layout.config.mean_prompt_length
    rollout, ended = run(layout, memory, [(prompt, length) for length in drawn], groups=wanted)
    done, whole = set(ended), list[float]()
    for first in range(0, len(drawn), size):
        if done.issuperset(range(first, first + size)):
            whole += drawn[first : first + size]
    return RolloutSchedule(rollout.total, fmean(whole) / fmean(drawn), dropped=rollout.drawn / sum(whole) - 1)


def run(
    layout: Layout, memory: Memory, responses: Sequence[tuple[float, float]], groups: int = 0
) -> tuple[Rollout, list[int]]:
    """Return the simulated rollout of an engine, and the responses that ended, as `decode` does."""
    held = fmean(before + new for before, new in responses)
    rollout = Rollout(concurrent=slots(layout, memory, len(responses), held))
    rollout.seconds["prefill"] = prefill_seconds(layout)
    return rollout, decode(rollout, layout, responses, groups)


def shuffled(lengths: Drawn, count: int) -> list[float]:
    """Return typical lengths in a fixed random order."""
    drawn = lengths.quantiles(count)
    random.Random(0).shuffle(drawn)
    return drawn
