"""avg@k, pass@k, maj@k and intervals against hand-computed values and brute force."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtrain.evaluation import outcomes
from llmtrain.evaluation.outcomes import ABSTAINED, avg_at_k, interval, maj_at_k, pass_at_k


def test_pass_at_k_by_hand():
    assert pass_at_k([[1, 0, 0, 0]], 1) == pytest.approx([0.25])
    assert pass_at_k([[1, 0, 0, 0]], 2) == pytest.approx([1 - 3 / 6])
    assert pass_at_k([[1, 1, 0, 0]], 2) == pytest.approx([1 - 1 / 6])
    assert pass_at_k([[1, 1, 1, 0]], 2) == pytest.approx([1.0])
    assert pass_at_k([[0, 0, 0, 0]], 4) == pytest.approx([0.0])
    assert pass_at_k([[1, 0, 0, 0], [0, 0, 0, 0]], 4) == pytest.approx([1.0, 0.0])
    # n = 10, c = 3, k = 5: 1 − C(7, 5) / C(10, 5) = 1 − 21/252.
    assert pass_at_k([[1] * 3 + [0] * 7], 5) == pytest.approx([1 - 21 / 252])


def test_pass_at_k_is_the_average_over_all_subsets():
    correct = np.random.default_rng(0).random((5, 7)) < 0.3
    for k in range(1, 8):
        brute = [np.mean([row[list(s)].any() for s in combinations(range(7), k)]) for row in correct]
        assert pass_at_k(correct, k) == pytest.approx(brute)


def test_pass_at_k_survives_many_samples():
    correct = np.zeros((1, 20_000))
    correct[0, 0] = 1
    assert pass_at_k(correct, 5_000) == pytest.approx([0.25])
    with np.errstate(over="raise", invalid="raise"):
        assert pass_at_k(np.ones((1, 20_000)), 5_000) == [1]


def test_avg_at_k():
    assert avg_at_k([[1, 0, 1, 1], [0, 0, 1, 1]], 4) == pytest.approx([3 / 4, 1 / 2])
    assert avg_at_k([[1, 0, 1, 1], [0, 0, 1, 1]], 2) == pytest.approx([1 / 2, 0])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        *(
            (partial(metric, np.zeros(shape), k), "outcomes of shape")
            for metric in (avg_at_k, pass_at_k)
            for shape, k in (((2, 3), 4), ((2, 3), 0), ((0, 3), 1), ((3,), 1))
        ),
        (partial(pass_at_k, [[1, 0, 1], [1]], 1), "1 to 3"),
        (partial(maj_at_k, [[1, 0]], [[0]], 1), "votes"),
    ],
)
def test_a_refusal_names_what_is_wrong(call, names):
    with pytest.raises(ValueError, match=names):
        call()


def test_maj_of_all_samples_by_hand():
    # Answer 0 is right. Two votes against one; a tie; a three-way tie; abstentions outnumber but do not win; nobody.
    correct = [[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]]
    votes = [[0, 0, 1], [0, 1, ABSTAINED], [0, 1, 2], [0, ABSTAINED, ABSTAINED], [ABSTAINED] * 3]
    assert maj_at_k(correct, votes, 3) == pytest.approx([1, 1 / 2, 1 / 3, 1, 0])


def test_maj_of_two_of_three_by_hand():
    # Subsets of {right, right, wrong}: both right once, one of each twice, where a fair draw decides: (1 + ½ + ½)/3.
    assert maj_at_k([[1, 1, 0]], [[5, 5, 9]], 2) == pytest.approx([2 / 3])


def test_equal_answers_judged_differently_count_by_their_share():
    assert maj_at_k([[1, 0, 0]], [[0, 0, 1]], 3) == pytest.approx([0.5])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_maj_is_the_average_over_all_subsets(data):
    n = data.draw(st.integers(1, 6))
    k = data.draw(st.integers(1, n))
    votes = np.array(data.draw(st.lists(st.integers(ABSTAINED, 3), min_size=n, max_size=n)))
    right = data.draw(st.integers(0, 3))

    def won(some):
        given_ = [int(v) for v in votes[list(some)] if v != ABSTAINED]
        most = max((given_.count(v) for v in given_), default=0)
        winners = {v for v in given_ if given_.count(v) == most}
        return (right in winners) / len(winners) if winners else 0.0

    brute = np.mean([won(some) for some in combinations(range(n), k)])
    assert maj_at_k([votes == right], [votes], k) == pytest.approx([brute])
    assert maj_at_k([votes == right], [votes], 1) == pytest.approx(avg_at_k([votes == right], n))


def test_maj_over_drawn_subsets_is_near_the_exact_one_and_the_same_for_a_seed(monkeypatch):
    generator = np.random.default_rng(1)
    votes = generator.integers(0, 4, (20, 12))
    exact = maj_at_k(votes == 0, votes, 5)  # C(12, 5) = 792
    monkeypatch.setattr(outcomes, "SUBSETS", 700)
    drawn = maj_at_k(votes == 0, votes, 5, seed=3)
    assert not np.array_equal(drawn, exact)
    assert np.abs(drawn - exact).max() < 5 * 0.5 / np.sqrt(700)
    assert np.array_equal(drawn, maj_at_k(votes == 0, votes, 5, seed=3))


def test_interval_of_a_constant_is_a_point():
    assert interval([0.25] * 7) == pytest.approx((0.25, 0.25, 0.25))


def test_interval_is_as_wide_as_the_normal_one_for_many_questions():
    values = np.random.default_rng(0).random(400) < 0.3
    found = interval(values, seed=1)
    half = 1.96 * values.std() / np.sqrt(400)
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.mean == pytest.approx(half, rel=0.1)
    assert found.mean - found.low == pytest.approx(half, rel=0.1)
    assert found == interval(values, seed=1)
    assert found != interval(values, seed=2)


def test_interval_of_two_questions_is_exact():
    # Means of two draws of {0, 1}: 0, ½, ½, 1 with a quarter each, so 2.5% and 97.5% are the extremes.
    assert interval([0.0, 1.0]) == pytest.approx((0.5, 0.0, 1.0))


def test_interval_leaves_out_questions_without_a_value():
    assert interval([np.nan, 1.0, 1.0]) == pytest.approx((1, 1, 1))
    assert np.isnan(interval([np.nan])).all()


def test_a_seed_may_be_negative():
    votes = np.arange(20).reshape(1, 20) % 3
    assert interval([0.0, 1.0], seed=-1) == interval([0.0, 1.0], seed=2**64 - 1)
    assert 0 < maj_at_k(votes == 0, votes, 10, seed=-1)[0] < 1
