"""That a softmax's gradient does not see a baseline, on instances that Hypothesis looks for, and what sees one."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import get_advantage, policy_stats
from toybandit.claims.baselines import baseline_step, by_quantile
from toybandit.claims.first_order import expected_gradient
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=3, states=8, rollouts=20)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(2, 20), st.floats(0.1, 6), st.floats(-3, 3), st.integers(0, 2**31))
def test_the_step_is_free_of_the_baseline(arms, spread, baseline, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(4, arms, generator=generator, dtype=torch.float64)
    reward = torch.randint(0, 2, (4, arms), generator=generator).double()
    step = baseline_step(logits, reward, baseline)
    torch.testing.assert_close(step, baseline_step(logits, reward, 0.0), rtol=0, atol=1e-14)
    torch.testing.assert_close(step, expected_gradient(policy_stats(logits).logp, reward), rtol=0, atol=1e-14)


def test_groups_move_the_policy_alike_under_every_quantile_and_under_the_mean():
    """Of groups with the success rate of the policy. Arms 0 and 1 are right, p = ⅜ and ⅛, so 4 of 8 succeed: over the
    draws of arms in each the step is (π_right − π_wrong) times p·(1 − p) over the deviation, whatever the baseline."""
    p = torch.tensor([0.375, 0.125, 0.3, 0.2], dtype=torch.float64)
    reward = torch.tensor([1.0] * 4 + [0.0] * 4, dtype=torch.float64)
    right, wrong = torch.tensor([[0.75, 0.25, 0, 0], [0, 0, 0.6, 0.4]], dtype=torch.float64)
    mean_arm = torch.stack([right] * 4 + [wrong] * 4)  # of the arm that is drawn for each response
    for name in ("grpo", "qae k=0.2", "qae k=0.4", "qae k=0.6", "qae k=0.8"):
        advantage = get_advantage(name)(reward, torch.zeros(8, dtype=torch.int64))
        step = (advantage[:, None] * (mean_arm - p)).mean(0)
        expected = 0.25 * (right - wrong) / (reward.std() + 1e-6)
        torch.testing.assert_close(step, expected, rtol=1e-12, atol=1e-15)


def test_runs_of_all_settings_start_from_the_same_policies():
    starts = [entropy[:, 0] for found in by_quantile(EFFORT).values() for entropy in found.values()]
    assert len(starts) == 12
    assert all(np.array_equal(start, starts[0]) for start in starts)
