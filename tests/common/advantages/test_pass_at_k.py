"""pass@k and MaxRL: against all sets of k, against expectations over all groups, and against verl's function."""

from itertools import combinations, product
from math import comb, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat.advantages import get_advantage

ONE = torch.zeros(6, dtype=torch.int64)
ARMS, P, RIGHT = 3, (0.15, 0.35, 0.5), (1.0, 0.0, 0.0)
"""A policy over three responses, of which the first succeeds."""


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


def over_all_sets(reward, k):
    """Return k times the mean, over all sets with a response, of its contribution to their best."""
    found = []
    for i in range(len(reward)):
        sets = [s for s in combinations(range(len(reward)), k) if i in s]
        found.append(k * sum(max(reward[j] for j in s) - max(reward[j] for j in s if j != i) for s in sets) / len(sets))
    return found


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0, -2.0]), min_size=2, max_size=7), st.data())
def test_unbiased_is_the_mean_over_all_sets(reward, data):
    k = data.draw(st.integers(2, len(reward)))
    found = get_advantage(f"pass_at_k k={k}")(column(*reward), ONE[:1].expand(len(reward)))
    assert found.tolist() == pytest.approx(over_all_sets(reward, k), abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_unbiased_by_hand(k):
    """A lone success of four is in a set without another one: it adds 1, k times. Of two, C(2, k−1)/C(3, k−1)."""
    lone = get_advantage(f"pass_at_k k={k}")(column(0, 0, 1, 0), ONE[:4])
    assert lone.tolist() == pytest.approx([0, 0, k, 0])
    two = get_advantage(f"pass_at_k k={k}")(column(1, 0, 1, 0), ONE[:4])
    share = k * comb(2, k - 1) / comb(3, k - 1)
    assert two.tolist() == pytest.approx([share, 0, share, 0])


def test_binomials_of_large_groups_do_not_overflow():
    reward = torch.zeros(3000, dtype=torch.float64)
    reward[17] = 1
    for name, expected in (("pass_at_k k=1500", 1500), ("pass_at_k k=1500 variant=analytic", 1)):
        found = get_advantage(name)(reward, torch.zeros(3000, dtype=torch.int64))
        assert found[17].item() == pytest.approx(expected, rel=1e-9)
        assert found.isfinite().all()


def test_one_response_is_rloo():
    reward, group = torch.rand(8, dtype=torch.float64), torch.arange(8) // 4
    assert torch.equal(get_advantage("pass_at_k k=1")(reward, group), get_advantage("rloo")(reward, group))


@pytest.mark.parametrize("correct", range(9))
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_analytic_is_the_normalised_mean_over_all_sets(k, correct):
    reward = [1.0] * correct + [0.0] * (8 - correct)
    sets = list(combinations(range(8), k))
    passed = {s: float(any(reward[j] for j in s)) for s in sets}
    mean = sum(passed.values()) / len(sets)
    deviation = sqrt(mean * (1 - mean))
    expected = [
        (sum(passed[s] for s in sets if i in s) / comb(7, k - 1) - mean) / deviation if deviation > 0 else 0.0
        for i in range(8)
    ]
    found = get_advantage(f"pass_at_k k={k} variant=analytic")(column(*reward), torch.zeros(8, dtype=torch.int64))
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["pass_at_k k=2", "pass_at_k k=2 variant=best", "max_rl"])
def test_groups_are_apart_whatever_their_order_and_size(name):
    reward, group = torch.rand(3, 9, dtype=torch.float64), torch.tensor([4, 7, 4, 7, 7, 4, 9, 9, 7])
    whole = get_advantage(name)(reward, group)
    for one in (4, 7, 9):
        rows = group == one
        alone = get_advantage(name)(reward[:, rows], group[rows])
        torch.testing.assert_close(whole[:, rows], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_best_is_verls():
    core = pytest.importorskip("verl.trainer.ppo.core_algos", reason="pip install --no-deps -c constraints.txt verl")
    reward, group = torch.rand(24), torch.arange(24) % 6
    mask = torch.ones(24, 5)
    scores = torch.nn.functional.pad(reward[:, None], (0, 4))
    theirs, _ = core.compute_grpo_passk_outcome_advantage(scores, mask, group.numpy(), config={})
    found = get_advantage("pass_at_k variant=best k=4")(reward, group)
    torch.testing.assert_close(found, theirs[:, 0], rtol=1e-5, atol=1e-6)


def test_max_rl_by_hand():
    found = get_advantage("max_rl")(column(1, 0, 0, 0, 1, 1), torch.tensor([0, 0, 0, 0, 1, 1]))
    assert found.tolist() == [3, -1, -1, -1, 0, 0]
    assert get_advantage("max_rl")(column(0, 0, 0), ONE[:3]).tolist() == [0, 0, 0]


def expected_gradient(name, size):
    """Return the expected gradient in the logits of the mean over a group of A·log π, over all groups."""
    estimate, total = get_advantage(name), np.zeros(ARMS)
    for arms in product(range(ARMS), repeat=size):
        advantage = estimate(column(*(RIGHT[a] for a in arms)), ONE[:1].expand(size)).numpy()
        scores = np.eye(ARMS)[list(arms)] - P
        total += np.prod([P[a] for a in arms]) * (advantage[:, None] * scores).mean(0)
    return total


GRADIENT = P[0] * (np.eye(ARMS)[0] - P)
"""Gradient of the success probability in the logits."""


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_unbiased_has_the_gradient_of_pass_at_k(k, size):
    found = expected_gradient(f"pass_at_k k={k}", size)
    np.testing.assert_allclose(found, k * (1 - P[0]) ** (k - 1) * GRADIENT, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_max_rl_has_one_term_fewer_than_responses(size):
    """Σ_{k<n} (1/k)·∇pass@k = Σ_{k<n} (1 − p)^(k−1)·∇p; with k up to n it would be larger by (1 − p)^(n−1)·∇p."""
    weight = sum((1 - P[0]) ** (k - 1) for k in range(1, size))
    np.testing.assert_allclose(expected_gradient("max_rl", size), weight * GRADIENT, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "reward", "said"),
    [
        ("pass_at_k k=5", [0, 1, 0, 1], "at most the size of a group; got 5"),
        ("pass_at_k k=1.5", [0, 1, 0, 1], "must be a whole number"),
        ("pass_at_k variant=analytic", [0, 1, 0, 0.5], "takes rewards of 0 and 1"),
        ("max_rl", [0, 1, -1, 0], "takes rewards of at least 0"),
    ],
)
def test_refused(name, reward, said):
    with pytest.raises(ValueError, match=said):
        get_advantage(name)(column(*reward), ONE[:4])
