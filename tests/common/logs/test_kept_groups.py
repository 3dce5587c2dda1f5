"""The reward of the groups that dynamic sampling kept is no share of right answers, and follows no law."""

import numpy as np
import pytest

from entrostat.logs.diagnosis.facts import measure
from entrostat.logs.doubts import of_kept_groups

ENTROPY = 0.1 + 1.4 * np.exp(-np.arange(60) / 20)
NAMES = ("train/num_gen_batches", "dynamic_filtering_pass_rate")


def rows(**more):
    reward = 0.9 - 0.2 * np.exp(ENTROPY)
    return [{"step": i, "entropy": ENTROPY[i], "reward": reward[i], **more} for i in range(len(ENTROPY))]


@pytest.mark.parametrize(("name", "dropped", "all_kept"), [(NAMES[0], 2, 1), (NAMES[1], 80.0, 100.0)])
def test_such_a_reward_has_no_law(name, dropped, all_kept):
    facts = measure(rows(**{name: dropped}))
    assert name in facts.no_law
    assert facts.law is None
    assert facts.entropy == measure(rows()).entropy
    kept = measure(rows(**{name: all_kept}))
    assert (kept.no_law, kept.law.law.a) == ("", measure(rows()).law.law.a)


def test_a_single_step_is_enough():
    assert of_kept_groups([1, 2, 1], []).endswith("(train/num_gen_batches is up to 2)")
    assert of_kept_groups([], [100, 33.333]).endswith("(dynamic_filtering_pass_rate is down to 33.3%)")
    assert of_kept_groups([], []) == of_kept_groups([1, 1], [100]) == ""
