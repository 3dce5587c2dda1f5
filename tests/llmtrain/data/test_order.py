from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtrain.data import Mixture

SEEDS = st.integers(0, 2**63)


@st.composite
def mixtures(draw):
    """Draw a mixture and its weights; every positive weight is large enough for one draw."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    weights = draw(st.none() | st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    if weights is not None and not any(weights):
        weights[0] = 1
    try:
        return Mixture(sizes, weights), weights
    except ValueError:  # a source without a draw
        return Mixture(sizes), None


@given(mixtures(), SEEDS, st.lists(st.integers(0, 15), max_size=8), st.integers(0, 60))
def test_random_access_equals_sequential(made, seed, counts, start):
    mixture, _ = made
    whole = mixture.take(0, start + sum(counts), seed)
    other = Mixture(mixture.sizes, mixture.shares)  # that has not seen the epochs before
    position, parts = start, []
    for count in counts:
        parts += other.take(position, count, seed)
        position += count
    assert parts == whole[start:]


@given(mixtures(), SEEDS, st.integers(0, 5))
def test_every_epoch_has_the_exact_shares(made, seed, epoch):
    mixture, weights = made
    draws = mixture.take(epoch * mixture.draws, mixture.draws, seed)
    counts = Counter(source for source, _ in draws)
    assert tuple(counts[source] for source in range(len(mixture.sizes))) == mixture.shares
    assert mixture.draws == sum(mixture.sizes)
    if weights is not None:
        for share, weight in zip(mixture.shares, weights, strict=True):
            assert abs(share - mixture.draws * weight / sum(weights)) < 1


@given(mixtures(), SEEDS, st.integers(0, 100))
def test_no_question_comes_again_before_all_of_its_source_have_come(made, seed, count):
    mixture, _ = made
    counts = {source: Counter(dict.fromkeys(range(size), 0)) for source, size in enumerate(mixture.sizes)}
    for source, index in mixture.take(0, count, seed):
        counts[source][index] += 1
        assert max(counts[source].values()) - min(counts[source].values()) <= 1
        assert len(counts[source]) == mixture.sizes[source]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), SEEDS)
def test_without_weights_an_epoch_holds_every_question_once(sizes, seed):
    mixture = Mixture(sizes)
    questions = [(source, i) for source, size in enumerate(sizes) for i in range(size)]
    for epoch in range(3):
        assert sorted(mixture.take(epoch * mixture.draws, mixture.draws, seed)) == questions


def test_epochs_and_seeds_have_orders_of_their_own():
    mixture = Mixture([40])
    orders = [mixture.take(40 * epoch, 40, seed) for epoch in range(3) for seed in (0, 1, -1)]
    assert all(one != other for i, one in enumerate(orders) for other in orders[:i])
    assert orders[0] == Mixture([40]).take(0, 40, 0)


def test_all_orders_are_equally_likely():
    mixture = Mixture([2, 1])
    seen = Counter(tuple(mixture.take(0, 3, seed)) for seed in range(6000))
    assert len(seen) == 6
    assert all(850 < count < 1150 for count in seen.values())  # 1000 ± 5 standard deviations


def test_shares_by_largest_remainder():
    assert Mixture([6, 4], [1, 2]).shares == (3, 7)  # 3.33, 6.67
    assert Mixture([5, 5], [1, 1]).shares == (5, 5)
    assert Mixture([3, 4], [1, 1]).shares == (4, 3)  # 3.5 each: the earlier
    assert Mixture([5, 5], [1, 0]).shares == (10, 0)
    assert Mixture([5, 5], [1e308, 1e308]).shares == (5, 5)
    assert Mixture([17398, 7473]).shares == (17398, 7473)


def test_a_source_that_is_never_drawn_stays_out():
    assert {source for source, _ in Mixture([3, 3], [0, 1]).take(0, 20, 0)} == {1}


def test_the_epoch_of_a_position():
    mixture = Mixture([3, 2])
    assert [mixture.epoch(p) for p in (0, 4, 5, 9, 10)] == [1, 1, 2, 2, 3]


def test_a_step_draws_an_epoch_once(monkeypatch):
    mixture, drawn = Mixture([50]), []
    draw = mixture._draw
    monkeypatch.setattr(mixture, "_draw", lambda epoch, seed: drawn.append(epoch) or draw(epoch, seed))
    for position in range(0, 150, 7):
        mixture.take(position, 7, 0)
    assert list(islice(drawn, 10)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "weights", "names"),
    [
        ([], None, "at least one source"),
        ([3, 0], None, "source 1 "),
        ([3, 3], [1], "1 weights for 2 sources"),
        ([3, 3], [1, -1], "weight 1 .*-1: .*0 or more"),
        ([3, 3], [float("nan"), 1], "weight 0 .*nan"),
        ([3, 3], [float("inf"), 1], "weight 0 .*inf"),
        ([3, 3], [0, 0], "all weights .*0"),
        ([3, 3], [1, 1e-6], "weight 1 .*1e-06.* 6"),
    ],
)
def test_bad_mixtures(sizes, weights, names):
    with pytest.raises(ValueError, match=names):
        Mixture(sizes, weights)


def test_bad_positions():
    with pytest.raises(ValueError, match="-1 and 2"):
        Mixture([3]).take(-1, 2, 0)
