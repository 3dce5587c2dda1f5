"""Rollout schedules: by hand where lengths are alike, equal where they must be, and what the page says of them."""

from dataclasses import dataclass, replace

import pytest
from benchmarks.pages.rollout_schedules import lockstep, oversampled, partial
from benchmarks.pages.rollout_schedules_page import compared

from llmtrain.plan.cost import make_plan
from llmtrain.plan.lengths import Lengths
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.rollout_time import pieces, reading_seconds

CONFIG = PlanConfig(gpus=8, gpu="h100", prompts=64, mini_batch_size=64, mean_response_length=500, max_num_seqs=24)
PLAN = make_plan(CONFIG)


@dataclass(frozen=True)
class Alike:
    """Lengths that alternate between two values."""

    short: float
    long: float

    def quantiles(self, count):
        return sorted([self.short, self.long] * (count // 2))

    def longest(self, count):
        return self.long


ALL = Alike(300, 300)


def run(schedule, lengths, *args, **changes):
    plan = make_plan(replace(CONFIG, **changes))
    return schedule(plan.layout, plan.memory, lengths, *args)


def test_lockstep_is_what_the_plan_says():
    lengths = Lengths(CONFIG.mean_response, CONFIG.max_response_length)
    assert lockstep(PLAN.layout, PLAN.memory, lengths).seconds == pytest.approx(PLAN.rollout.total, rel=1e-9)


def test_partial_rollouts_are_what_the_plan_says():
    lengths = Lengths(CONFIG.mean_response, CONFIG.max_response_length)
    plan = make_plan(replace(CONFIG, partial_tokens=1000))
    assert partial(PLAN.layout, PLAN.memory, lengths, 1000).seconds == pytest.approx(plan.rollout.total, rel=1e-9)
    assert plan.rollout.total < PLAN.rollout.total
    assert "wait for the longest response" not in plan.rollout.seconds


@pytest.mark.parametrize("budget", [CONFIG.max_response_length, 10**6])
def test_a_plan_with_a_budget_that_nobody_needs_is_the_plan_without(budget):
    """It waits for the longest response of all engines, too."""
    plan = make_plan(replace(CONFIG, partial_tokens=budget))
    assert plan.rollout.total == pytest.approx(PLAN.rollout.total, rel=1e-9)
    assert "wait for the longest response" in plan.rollout.seconds


def test_a_budget_that_nobody_needs_changes_nothing():
    lengths = Alike(100, 300)
    assert run(partial, lengths, 300) == run(lockstep, lengths)
    assert run(partial, lengths, 299).staleness > 0


def test_oversampling_by_nothing_changes_nothing():
    lengths = Alike(100, 300)
    assert run(oversampled, lengths, 1.0) == run(lockstep, lengths)


def test_pieces():
    assert list(pieces(5, 2)) == [0, 2, 4]
    assert list(pieces(4, 2)) == [0, 2]
    assert list(pieces(0.5, 2)) == [0]


def test_staleness_by_hand():
    """All responses have 300 tokens, in pieces of 100: they wait two steps, one step and none."""
    assert run(partial, ALL, 100).staleness == pytest.approx(1.0)


def test_partial_rollouts_by_hand():
    """Eight responses, all at once: two halves take as long as the whole, and the second is prefilled again."""
    changes = {"prompts": 8, "mini_batch_size": 8, "max_num_seqs": 8}
    found, whole = (run(*asked, **changes).seconds for asked in ((partial, ALL, 150), (lockstep, ALL)))
    layout = make_plan(replace(CONFIG, **changes)).layout
    again = 8 * reading_seconds(layout, CONFIG.mean_prompt_length + 150)
    assert found == pytest.approx(whole + again, rel=1e-3)
    assert again > 0.01 * whole


def test_early_stopping_prefers_short_groups():
    """Twice as many groups as are trained; a group that ends early has more short responses."""
    found = run(oversampled, Alike(100, 300), 2.0, n=2)
    assert found.length < 0.9
    assert found.dropped > 0.2


def test_the_page_says_what_its_tables_say():
    shown = list(compared())
    for i, one in enumerate(shown):
        rates = {name: schedule.tokens_per_second(one.plan) for name, schedule in one.schedules.items()}
        parts = [rates[name] for name in rates if name.startswith("partial")]
        over = [name for name in rates if name.startswith("oversampled")]
        assert all(one.schedules[name].length < 0.97 and one.schedules[name].dropped > 0.25 for name in over)
        assert max(rates[name] for name in over) < max(parts)
        full = one.plan.layout.sequences_per_engine > one.plan.config.max_num_seqs
        assert full == (i < 2)
        assert (max(parts) < 1.05 * rates["lockstep"] and parts[-1] < rates["lockstep"]) == full
