import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.numbers.ordered_bits import from_ordered_bits, ordered_bits


@pytest.mark.parametrize(("dtype", "width"), [(torch.float64, 64), (torch.float32, 32)])
@settings(derandomize=True, deadline=None)
@given(data=st.data())
def test_the_order_is_kept(dtype, width, data):
    values = data.draw(st.lists(st.floats(allow_nan=False, width=width), min_size=1, max_size=20))
    x = torch.tensor(values, dtype=dtype)
    bits = ordered_bits(x)
    assert torch.equal(x[:, None] < x, bits[:, None] < bits)
    assert torch.equal(from_ordered_bits(bits), x + 0.0)
