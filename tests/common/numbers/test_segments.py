import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat.numbers.segments import Segments, quantile_within, rank_within

X = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([7, 7, 9, 9, 9], [3, 3, 28, 28, 28]),
        ([9, 9, 7, 7, 7], [3, 3, 28, 28, 28]),
        ([3, 1, 3, 1, 3], [21, 10, 21, 10, 21]),
        ([2, 2, 1, 2, 2], [27, 27, 4, 27, 27]),
    ],
)
def test_sums_whatever_the_order_of_the_ids(ids, expected):
    s = Segments(torch.tensor(ids))
    assert s.spread(s.sum(X)).tolist() == expected


def test_ids_of_each_run():
    s = Segments(torch.tensor([[5, 5, 5, 6, 6], [6, 5, 6, 5, 6]]))
    assert s.spread(s.sum(X.expand(2, 5))).tolist() == [[7, 7, 7, 24, 24], [21, 10, 21, 10, 21]]


def test_sizes_means_and_what_is_the_same_in_a_segment():
    s = Segments(torch.tensor([4, 4, 2, 2, 2]))
    assert s.count == 2
    assert s.spread(s.size).tolist() == [2, 2, 3, 3, 3]
    assert s.spread(s.mean(X)).tolist() == pytest.approx([1.5, 1.5, 28 / 3, 28 / 3, 28 / 3])
    assert s.spread(s.pick(torch.tensor([3.0, 3.0, 5.0, 5.0, 5.0]))).tolist() == [3, 3, 5, 5, 5]
    assert s.spread(s.mean(torch.stack([X, 2 * X])))[1].tolist() == pytest.approx([3, 3, 56 / 3, 56 / 3, 56 / 3])


def test_no_elements():
    s = Segments(torch.zeros(0, dtype=torch.int64))
    assert s.count == 0
    assert s.spread(s.mean(torch.zeros(2, 0))).shape == (2, 0)
    assert rank_within(torch.zeros(2, 0), s).shape == (2, 0)
    assert quantile_within(torch.zeros(2, 0), s, 0.5).shape == (2, 0)


def test_ranks_share_ties():
    s = Segments(torch.tensor([8, 3, 8, 8, 3, 8]))
    x = torch.tensor([[5.0, 1.0, 2.0, 5.0, 0.0, 9.0], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    assert rank_within(x, s).tolist() == [[1.5, 1, 0, 1.5, 0, 3], [2, 0.5, 2, 2, 0.5, 0]]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(-2, 2) | st.floats(-1e9, 1e9, width=32)), min_size=1, max_size=24
    ),
    st.floats(0.01, 1) | st.sampled_from([0.1 * i for i in range(1, 11)]),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_quantiles_are_those_of_numpy(pairs, share, dtype):
    """The smallest value that so large a share of a segment does not exceed: the inverse of its distribution."""
    ids, x = torch.tensor([i for i, _ in pairs]), torch.tensor([[float(v) for _, v in pairs]] * 2, dtype=dtype)
    x[1] *= -1
    found = quantile_within(x, s := Segments(ids), share)
    for run in range(2):
        for i, value in zip(ids.unique().tolist(), found[run].tolist(), strict=True):
            members = x[run][ids == i].double().numpy()
            assert value == np.quantile(members, max(share - 1e-9 / len(members), 0), method="inverted_cdf")
    assert found.shape == (2, s.count)


@pytest.mark.parametrize("ids", [[0, 0, 1, 1, 5, 5], [3, 3, 3], [7]])
def test_segments_of_one_width_are_summed_like_any(ids):
    """Side by side and of one size they are summed as rows; in another order by scattering."""
    ids = torch.tensor(ids)
    x = torch.arange(2.0 * len(ids), dtype=torch.float64).reshape(2, -1)
    order = torch.arange(len(ids)).roll(1)
    rows, scattered = Segments(ids), Segments(ids[order])
    assert rows.width is not None
    for found, again in ((rows.sum(x), scattered.sum(x[:, order])), (rows.mean(x), scattered.mean(x[:, order]))):
        torch.testing.assert_close(found, again, rtol=1e-15, atol=0)
    torch.testing.assert_close(rows.spread(rows.sum(x))[:, order], scattered.spread(scattered.sum(x[:, order])))
    assert torch.equal(rows.sum(x[:1, :1].expand(2, len(ids))), x[0, 0] * rows.size.double().expand(2, -1))


def test_ranks_of_nothing():
    assert rank_within(torch.empty(0, dtype=torch.float64), Segments(torch.empty(0, dtype=torch.int64))).shape == (0,)
