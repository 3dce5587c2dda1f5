"""R = −a·e^H + b."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.logs import laws
from entrostat.logs.runlog import RunLog

A, B = 0.1, 0.8
FALLING = 0.1 + 1.6 * np.exp(-np.arange(100) / 33)


def noise(runs: int, steps: int, rho: float, spread: float = 0.02, seed: int = 0) -> np.ndarray:
    """Autoregressive errors (runs, steps) of standard deviation `spread`."""
    u = np.random.default_rng(seed).normal(scale=spread, size=(steps, runs))
    errors = [u[0]]
    for step in u[1:]:
        errors.append(rho * errors[-1] + np.sqrt(1 - rho**2) * step)
    return np.stack(errors, -1)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(a=st.floats(-3, 3), b=st.floats(-3, 3), seed=st.integers(0, 10**6), n=st.integers(4, 60))
def test_recovered_exactly(a, b, seed, n):
    h = np.random.default_rng(seed).uniform(0, 3, n)
    law = laws.fit(h, b - a * np.exp(h))
    assert (law.a, law.b) == pytest.approx((a, b), abs=1e-11)
    assert law.ceiling == pytest.approx(b - a, abs=1e-11)
    for low, high in (law.a_interval, law.b_interval, law.ceiling_interval):
        assert high - low < 1e-10
    assert law.rmse < 1e-12
    assert law.n == n


def test_by_hand():
    """e^H = 1, 2, 3, 4 and R = 3, 1, 1, −1: slope −6/5, mean 1 at 5/2; residuals 1/5, −3/5, 3/5, −1/5."""
    h, r = np.log([1, 2, 3, 4]), [3, 1, 1, -1]
    law = laws.fit(h, r)
    assert (law.a, law.b, law.ceiling) == pytest.approx((1.2, 4.0, 2.8))
    assert law.r2 == pytest.approx(1 - 0.8 / 8)
    assert law.rmse == pytest.approx(math.sqrt(0.2))
    np.testing.assert_allclose(law(h), [2.8, 1.6, 0.4, -0.8])
    score = laws.alternatives(h, r)["exponential"]
    assert score == pytest.approx((0.9, 1 - 0.1 * 3 / 2, 4 * math.log(0.2) + 6))


def test_alternatives_by_hand():
    """R = H² at 0, 1, 2, 3: the line −1 + 3H leaves 1, −1, −1, 1 of 49 about the mean; the parabola leaves nothing."""
    scores = laws.alternatives([0, 1, 2, 3], [0, 1, 4, 9])
    assert scores["linear"] == pytest.approx((1 - 4 / 49, 1 - 4 / 49 * 3 / 2, 6))
    assert scores["quadratic"][:2] == pytest.approx((1, 1))
    assert scores["quadratic"].aic < -100


def test_blocks_are_drawn_whole():
    """Residuals 2 and −1 by turns do not persist; about their mean they are ±1.5, neighbours in a block add up to 0.

    Of thirty residuals blocks of three are drawn. One alone is 1.5·√(30/28) in size, for two coefficients were fitted.
    """
    weights = np.zeros((30, 3))
    weights[5, 0] = weights[3:5, 1] = weights[2:4, 2] = 1
    one, pair, apart = laws._redrawn_errors(np.tile([2.0, -1.0], 15), weights).T
    np.testing.assert_allclose(np.abs(one), 1.5 * math.sqrt(30 / 28))
    assert abs(one.mean()) < 0.2
    np.testing.assert_allclose(pair, 0, atol=1e-12)
    assert 0.4 < (np.abs(apart) > 1).mean() < 0.6  # the third of a block and the first of the next


def test_persistence_by_hand():
    """1, 1, −1, −1 ten times: 20 products of 1 and 19 of −1 over 40; plus (2 + 4/40)/40. Kept between 0 and .99."""
    assert laws.persistence(np.tile([1.0, 1.0, -1.0, -1.0], 10)) == pytest.approx(1 / 40 + (2 + 4 / 40) / 40)
    assert laws.persistence(np.tile([1.0, -1.0], 20)) == 0
    assert laws.persistence(np.ones(20)) == 0.99
    assert laws.persistence(np.zeros(5)) == 0


@pytest.mark.parametrize(("rho", "least"), [(0.0, 0.88), (0.5, 0.85), (0.8, 0.80)])
def test_intervals_hold_the_truth_about_as_often_as_they_say(rho, least):
    """Nominally 95% of 400 runs of 100 steps. Intervals for independent errors hold it in far fewer when ρ is large."""
    x = np.exp(FALLING)
    held, naive = np.zeros(3), 0
    for errors in noise(400, 100, rho):
        r = B - A * x + errors
        law = laws.fit(FALLING, r)
        intervals = (law.a_interval, law.b_interval, law.ceiling_interval)
        held += [low <= true <= high for (low, high), true in zip(intervals, (A, B, B - A), strict=True)]
        spread = law.rmse / np.sqrt(((x - x.mean()) ** 2).sum())
        naive += abs(law.a - A) <= 1.96 * spread
    assert (held / 400 >= least).all(), held / 400
    assert (held / 400 <= 0.99).all(), held / 400
    if rho == 0.8:
        assert naive / 400 < 0.6


def test_intervals_shrink_with_confidence_and_are_the_same_each_time():
    r = B - A * np.exp(FALLING) + noise(1, 100, 0.5)[0]
    wide, narrow = laws.fit(FALLING, r), laws.fit(FALLING, r, confidence=0.5)
    assert wide == laws.fit(FALLING, r)
    assert wide.a_interval[0] < narrow.a_interval[0] < narrow.a_interval[1] < wide.a_interval[1]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(scale=st.floats(0.01, 100), shift=st.floats(-10, 10), seed=st.integers(0, 10**6))
def test_an_affine_reward_has_affine_coefficients(scale, shift, seed):
    r = B - A * np.exp(FALLING) + noise(1, 100, 0.3, seed=seed)[0]
    law, moved = laws.fit(FALLING, r), laws.fit(FALLING, shift + scale * r)
    size = abs(shift) + scale
    assert moved.a == pytest.approx(scale * law.a, abs=1e-10 * size)
    assert moved.b == pytest.approx(shift + scale * law.b, abs=1e-10 * size)
    assert moved.r2 == pytest.approx(law.r2, abs=1e-8)
    assert moved.a_interval == pytest.approx([scale * end for end in law.a_interval], abs=1e-9 * size)
    assert moved.ceiling_interval == pytest.approx(
        [shift + scale * end for end in law.ceiling_interval], abs=1e-9 * size
    )


def test_the_band_is_the_interval_of_the_law_at_each_entropy():
    r = B - A * np.exp(FALLING) + noise(1, 100, 0.5)[0]
    law, (low, high) = laws.fit(FALLING, r), laws.band(FALLING, r, [0.0, 0.5, 1.6])
    assert (low[0], high[0]) == pytest.approx(law.ceiling_interval)
    assert (low < law([0, 0.5, 1.6])).all()
    assert (law([0, 0.5, 1.6]) < high).all()
    assert high[2] - low[2] > high[1] - low[1]  # most points lie at the lower end
    narrow = laws.band(FALLING, r, [0.5], confidence=0.5)
    assert low[1] < narrow[0][0] < narrow[1][0] < high[1]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(shift=st.floats(-1, 1))
def test_more_entropy_everywhere_divides_a(shift):
    r = B - A * np.exp(FALLING) + noise(1, 100, 0.3)[0]
    law, moved = laws.fit(FALLING, r), laws.fit(FALLING + shift, r)
    assert moved.a == pytest.approx(law.a * math.exp(-shift), rel=1e-9)
    assert moved.b == pytest.approx(law.b, rel=1e-9)


@pytest.mark.parametrize(
    ("truth", "of"),
    [("exponential", np.exp), ("linear", lambda h: 2 * h), ("quadratic", lambda h: (h - 1) ** 2)],
)
def test_the_curve_that_the_points_lie_on_fits_best(truth, of):
    scores = laws.alternatives(FALLING, 1 - 0.3 * of(FALLING) + noise(1, 100, 0.0, spread=1e-3)[0])
    assert min(scores, key=lambda name: scores[name].aic) == truth
    assert scores["quadratic"].r2 >= scores["linear"].r2


def test_the_end_is_predicted_from_the_beginning():
    r = B - A * np.exp(FALLING)
    exact = laws.predict_end(FALLING, r)
    assert exact.law.n == 15
    assert exact.predicted == pytest.approx(r[15:], abs=1e-12)
    assert exact.rmse < 1e-12
    bent = r.copy()
    bent[15:] += 0.05
    bent[-1] += 0.1
    off = laws.predict_end(FALLING, bent)
    assert off.rmse == pytest.approx(math.sqrt((84 * 0.05**2 + 0.15**2) / 85))
    assert off.end_error == pytest.approx(-0.15)
    assert laws.predict_end(FALLING, r, share=0.5).law.n == 50


def test_a_constant_predicts_the_end_as_well():
    """Rewards 0, 0, 0, 0, 1, 1, 3, 3: of the first four the last one counts, and misses by 1, 1, 3, 3."""
    reward = np.array([0, 0, 0, 0, 1, 1, 3, 3.0])
    found = laws.predict_end([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], reward, share=0.5)
    assert (found.constant, found.constant_rmse) == pytest.approx((0, math.sqrt(20 / 4)))
    assert (found.least, found.most, found.beats_constant, found.within) == (0, 3, False, True)
    longer = laws.predict_end(FALLING, B - A * np.exp(FALLING), share=0.5)
    assert longer.constant == pytest.approx((B - A * np.exp(FALLING))[34:50].mean())
    assert longer.beats_constant
    stops = laws.predict_end(FALLING, -9 * np.exp(FALLING.clip(FALLING[14])))
    assert not stops.within  # -10, where the run never leaves -49 to -28


def test_a_run_log_is_read_and_incomplete_steps_left_out(tmp_path):
    log = RunLog(tmp_path, {}, seed=0)
    for step, (h, r) in enumerate([(1.0, 0.1), (float("nan"), 0.2), (0.8, 0.3), (0.7, 0.4)]):
        log.log(step, {"entropy": h, "reward": r})
    log.log(4, {"entropy": 0.5})
    log.close()
    entropy, reward = laws.read(tmp_path)
    assert (entropy.tolist(), reward.tolist()) == ([1.0, 0.8, 0.7], [0.1, 0.3, 0.4])
    with pytest.raises(ValueError, match=r"no step of metrics\.jsonl has both entropy and reward"):
        laws.read(tmp_path / "none")


def test_a_reward_that_does_not_vary():
    law = laws.fit(FALLING, np.full(100, 0.3))
    assert (law.a, law.b) == pytest.approx((0, 0.3), abs=1e-15)
    assert math.isnan(law.r2)


NAN = float("nan")


@pytest.mark.parametrize(
    ("entropy", "reward", "message"),
    [
        ([1, 2, 3], [1, 2, 3], "3 points are too few for a law: give at least 4"),
        ([1, 1, 1, 1], [1, 2, 3, 4], "entropy does not vary from 1"),
        ([1e-17, 2e-17, 3e-17, 4e-17], [1, 2, 3, 4], "entropy does not vary from 1e-17"),
        ([1, 2, NAN, 3], [1, 2, 3, 4], "entropy is not finite at step 2"),
        ([1, 2, 3, 4], [1, math.inf, 3, 4], "reward is not finite at step 1"),
        ([1, 2, 800, 3], [1, 2, 3, 4], r"entropy is 800 at step 2, too large for the squares of e\^H"),
        ([1, 2, 3, 4], [1, 2, 3], r"not of shapes \(4,\) and \(3,\)"),
    ],
)
@pytest.mark.parametrize("function", [laws.fit, laws.alternatives, laws.predict_end])
def test_points_that_no_law_can_be_fitted_to(function, entropy, reward, message):
    with pytest.raises(ValueError, match=message):
        function(entropy, reward)


def test_bad_shares():
    r = B - A * np.exp(FALLING)
    with pytest.raises(ValueError, match=r"share 0\.03 of 100 points is 3: a fit needs at least 4"):
        laws.predict_end(FALLING, r, share=0.03)
    with pytest.raises(ValueError, match="share must be between 0 and 1, not 1"):
        laws.predict_end(FALLING, r, share=1)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, not 95"):
        laws.fit(FALLING, r, confidence=95)
