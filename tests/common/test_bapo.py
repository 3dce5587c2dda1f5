"""bapo against shares worked out by hand: which bounds it stops at, and that tokens are clipped there."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from entrostat import Tokens, make

OLD = [0.5, 0.25, 0.5]
RATIO, ADVANTAGE = [2.0, 1.0, 0.5], [1.0, 0.0, -1.0]


def tokens(advantage=ADVANTAGE, ratio=RATIO) -> Tokens:
    """A success whose probability doubled, a token that teaches nothing, a failure whose probability halved."""
    old = torch.tensor(OLD, dtype=torch.float64).log()
    logp = old + torch.tensor(ratio, dtype=torch.float64).log()
    return Tokens(logp=logp, old_logp=old, advantage=torch.tensor(advantage, dtype=torch.float64))


def found(given: Tokens, **settings) -> list[float]:
    """Lower bound, upper bound, share."""
    info = make("bapo", **settings).plan(given).info
    return [float(info[f"bapo/{name}"]) for name in ("clip_low", "clip_high", "share")]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        # ½·c/(½·c + ½·.6), which is ⅔ at c = 1.2, and more than .69 from c = 1.336 on
        (0.4, [0.6, 1.2, 2 / 3]),
        (0.69, [0.6, 1.35, 1.35 / 1.95]),
        # the ratio is 2: from there on the share stays, so that both go to their ends
        (0.8, [0.9, 3.0, 2 / 2.9]),
    ],
)
def test_by_hand(share, expected):
    assert found(tokens(), share=share) == pytest.approx(expected, rel=1e-12)


def test_as_released():
    """The lower bound first, to .8, which only takes from the share; then the upper one, until c/(c + .8·2.5) is .45.
    Not by probability."""
    some = tokens(advantage=[1.0, 0.0, -2.5])
    assert found(some, preset="released", share=0.45) == pytest.approx([0.8, 1.65, 1.65 / 3.65], rel=1e-12)
    assert found(some, preset="released", share=0.44) == pytest.approx([0.6, 1.2, 1.2 / 2.7], rel=1e-12)


def test_tokens_count_by_probability_when_they_are_asked_to():
    given = Tokens(
        logp=torch.tensor([0.5, 0.1]).log(),
        old_logp=torch.tensor([0.5, 0.1]).log(),
        advantage=torch.tensor([-1.0, 1.0]),
    )
    assert found(given, share=0)[2] == pytest.approx(0.1 / 0.6)
    assert found(given, share=0, by_probability=False)[2] == pytest.approx(0.5)


def test_clipping_is_at_the_bounds_that_were_found():
    controller = make("bapo", share=0.69)
    plan = controller.plan(tokens())
    slope = plan.coefficients(tokens().logp)[0] * 3
    assert slope.tolist() == pytest.approx([0, 0, 0], abs=1e-15)  # 2 > 1.35, .5 < .6
    wide = make("bapo", share=0.8).plan(tokens())
    assert (wide.coefficients(tokens().logp)[0] * 3).tolist() == pytest.approx([-2, 0, 0], abs=1e-15)


def test_weights_of_other_parts_count():
    """Failures that are dropped have no part in the loss: the successes have all of it."""
    assert float(make("positive_only+bapo").plan(tokens()).info["bapo/share"]) == 1


def test_a_mini_batch_that_teaches_nothing_goes_to_the_ends():
    assert found(tokens(advantage=[0.0, 0.0, 0.0])) == pytest.approx([0.9, 3.0, 0.0])


def test_each_run_has_its_own_bounds():
    both = Tokens(
        logp=torch.stack([tokens().logp] * 2),
        old_logp=tokens().old_logp,
        advantage=torch.tensor([ADVANTAGE, [-1.0, 0.0, 1.0]], dtype=torch.float64),
    )
    info = make("bapo", share=0.69).plan(both).info
    assert info["bapo/clip_high"].tolist() == pytest.approx([1.35, 3.0])
    assert info["bapo/clip_low"].tolist() == pytest.approx([0.6, 0.9])


def search(given: Tokens, share: float, low: float, low_max: float, high: float, high_max: float, steps: list[float]):
    """Algorithm 1 as it stands: bound after bound, each with the whole loss; low, high and share."""
    ratio, size = (given.logp - given.old_logp).exp(), given.old_logp.exp() * given.advantage.abs()
    up, down = given.advantage > 0, given.advantage < 0

    def of(low, high):
        positive = (size * ratio.clamp(max=high))[up].sum()
        return low, high, float(positive / (positive + (size * ratio.clamp(min=low))[down].sum()))

    while (now := of(low, high))[2] < share and (high < high_max or low < low_max):
        low, high = (low, min(high + steps[1], high_max)) if high < high_max else (min(low + steps[0], low_max), high)
    return now


WIDTH = st.just(0.0) | st.floats(1e-3, 0.5)
"""A range that is none, or more than a billionth of a step, which counts as rounding."""


@given(
    st.integers(0, 2**31),
    st.floats(0.05, 1.5),
    st.floats(0.2, 0.8),
    st.tuples(st.floats(0.05, 1.0), WIDTH, st.floats(1.0, 1.5), st.just(0.0) | st.floats(1e-3, 2)),
    st.tuples(st.floats(0.03, 0.5), st.floats(0.05, 0.7)),
)
def test_bounds_are_those_of_a_search(seed, spread, share, bounds, steps):
    g = torch.Generator().manual_seed(seed)
    old, gap, advantage = torch.randn(3, 40, generator=g, dtype=torch.float64)
    old = -old.abs() - spread * gap.abs()
    given = Tokens(logp=old + spread * gap, old_logp=old, advantage=advantage)
    low, high = bounds[0], bounds[2]
    ends = {"low": low, "low_max": min(low + bounds[1], high), "high": high, "high_max": high + bounds[3]}
    expected = search(given, share, steps=list(steps), **ends)
    assume(abs(expected[2] - share) > 1e-9)
    assert found(given, share=share, step_low=steps[0], step_high=steps[1], **ends) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"low": 0.95}, "bapo: low must not exceed low_max"),
        ({"high": 3.5}, "bapo: high must not exceed high_max"),
        ({"low_max": 1.3}, "bapo: low_max must not exceed high"),
        ({"step_low": 0.0}, "bapo: step_low"),
    ],
)
def test_what_cannot_be(settings, said):
    with pytest.raises(ValueError, match=said):
        make("bapo", **settings)
