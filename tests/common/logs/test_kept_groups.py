"""The reward of the groups that dynamic sampling kept is no share of right answers, and follows no law."""

import numpy as np
import pytest

from entrostat.logs.diagnosis.facts import measure
from entrostat.logs.doubts import of_kept_groups

ENTROPY = 0.1 + 1.4 * np.exp(-np.arange(60) / 20)


def rows(**more):
    reward = 0.9 - 0.2 * np.exp(ENTROPY)
    return [{"step": i, "entropy": ENTROPY[i], "reward": reward[i], **more} for i in range(len(ENTROPY))]


@pytest.mark.parametrize(
    ("name", "dropped", "all_kept"),
    [
        ("train/num_gen_batches", 2, 1),  # verl's recipe of DAPO
        ("training/filter_groups/evicted_samples", 6, 0),  # verl 0.9
        ("dynamic_filtering_pass_rate", 80.0, 100.0),  # OpenRLHF
        ("train/dynamic_filtering_pass_rate", 80.0, 100.0),  # in W&B
        ("rollout/dropped/dynamic_filter", 3.0, 0.0),
        ("rollout/dynamic_filter/drop_zero_std_0.0", 5, 0),  # slime
    ],
)
def test_such_a_reward_has_no_law(name, dropped, all_kept):
    facts = measure(rows(**{name: dropped}))
    assert f"{name} is {dropped:g}" in facts.no_law
    assert facts.law is None
    assert facts.entropy == measure(rows()).entropy
    kept = measure(rows(**{name: all_kept}))
    assert (kept.no_law, kept.law.law.a) == ("", measure(rows()).law.law.a)


def test_a_single_step_is_enough():
    steps = [{"step": i, "train/num_gen_batches": n} for i, n in enumerate((1, None, 2, 1))]
    assert of_kept_groups(steps).endswith("(train/num_gen_batches is 2)")
    assert of_kept_groups(steps[:2]) == of_kept_groups([]) == ""
