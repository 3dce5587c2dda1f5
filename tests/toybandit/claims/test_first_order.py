"""The remainder of lemma 1 on instances that Hypothesis looks for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit.claims.first_order import SMALL, remainder_ratio, two_level


@st.composite
def logits_and_step(draw, largest_arms=SMALL, spread=8.0):
    arms = draw(st.integers(2, largest_arms))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = torch.Generator().manual_seed(seed)
    logits = spread * draw(st.floats(0, 1)) * torch.randn(1, arms, generator=generator, dtype=torch.float64)
    step = 2 * torch.rand(1, arms, generator=generator, dtype=torch.float64) - 1
    if draw(st.booleans()):  # extreme steps have the largest remainders
        step = step.sign()
    return logits, step / step.abs().max()


@settings(derandomize=True, deadline=None, max_examples=300)
@given(logits_and_step(), st.floats(-2, 1))
def test_remainder_of_lemma_1(instance, log_size):
    logits, direction = instance
    assert remainder_ratio(logits, 10**log_size * direction)[0].item() <= 1


@pytest.mark.parametrize(("arms", "low", "high"), [(2, 0.45, 0.5), (16, 0.72, 0.744), (SMALL, 0.95, 0.975)])
def test_worst_remainder_of_small_vocabularies(arms, low, high):
    assert low < remainder_ratio(*two_level(arms))[0].max().item() < high
