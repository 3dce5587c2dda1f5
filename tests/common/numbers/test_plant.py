import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.numbers.plant import Plant

NAN = float("nan")


def follow(entropies, signals, gain=1.0, forgetting=1.0, drift_rate=0.0) -> Plant:
    plant = Plant.prior(gain)
    for h, u in zip(entropies, signals, strict=True):
        plant = plant.observe(torch.tensor(h), torch.tensor(u), forgetting=forgetting, drift_rate=drift_rate)
    return plant


def test_the_first_observation_sets_the_entropy_alone():
    plant = follow([0.7], [3.0])
    assert float(plant.entropy) == pytest.approx(0.7)
    assert (float(plant.gain), float(plant.drift)) == (1.0, 0.0)


def test_a_step_by_hand():
    """Prior: gain 1 ± 1, drift ±.02, trust ½, surprises ±.02, so noise .0002 and missed .0001. ΔH = .8 after u = .5.

    The surprise .3 has variance 1·.5² + .02² + .0001 + .0002 = .2507, and is shared out by .5, .0004 and .2505.
    """
    plant = follow([1.0, 1.8], [0.0, 0.5])
    assert float(plant.gain) == pytest.approx(1 + 0.5 / 0.2507 * 0.3, rel=1e-6)
    assert float(plant.drift) == pytest.approx(0.0004 / 0.2507 * 0.3, rel=1e-6)
    assert float(plant.entropy) == pytest.approx(1.5 + 0.2505 / 0.2507 * 0.3, rel=1e-6)


def test_trust_and_uncertainty_by_hand():
    """The step above, then one that ends .1 lower than foretold.

    Of the surprise .3 all but its share of noise, .0003/.2507, taught: that much is the rest, and V is .95·.0004 +
    .05·.3·rest. The gain keeps .0007/.2507 of its variance. A surprise of the other sign lowers trust.
    """
    plant = follow([1.0, 1.8], [0.0, 0.5])
    rest = 0.3 * 0.0003 / 0.2507
    assert float(plant.surprise) == pytest.approx(rest, rel=1e-6)
    assert float(plant.variance) == pytest.approx(0.95 * 0.0004 + 0.05 * 0.3 * rest, rel=1e-6)
    assert float(plant.trust) == 0.5  # nothing went before that it could agree with
    assert float(plant.covariance[1, 1]) == pytest.approx(0.0007 / 0.2507, rel=1e-6)
    assert float(plant.covariance[0, 0]) == pytest.approx(0.0002 * 0.2505 / 0.2507, rel=1e-6)
    torch.testing.assert_close(plant.covariance, plant.covariance.mT)

    low = float(plant.entropy + plant.drift) - 0.1
    after = plant.observe(torch.tensor(low, dtype=torch.float64), torch.tensor(0.0), forgetting=1.0, drift_rate=0.0)
    moved = float(plant.covariance[0, 0] + 2 * plant.covariance[0, 2] + plant.covariance[2, 2]) + float(
        plant.trust**2 * plant.variance
    )
    noise = float((1 - plant.trust) * plant.variance)
    assert float(after.entropy) == pytest.approx(low + 0.1 * noise / (moved + noise), rel=1e-9)
    left = -0.1 - float(after.drift - plant.drift)
    assert float(after.surprise) == pytest.approx(left, rel=1e-9)
    assert float(after.variance) == pytest.approx(0.95 * float(plant.variance) - 0.05 * 0.1 * left, rel=1e-9)
    correlation = -0.1 * rest / (float(after.variance) + left**2)
    assert float(after.trust) == pytest.approx(0.5 * math.exp(0.2 * correlation), rel=1e-9)


def test_information_on_the_gain_fades_up_to_a_third_of_it():
    """A step without a signal: the gain's variance grows by 1/forgetting, while its deviation is below .3·gain."""
    known = follow([1.0, 1.8], [0.0, 0.5])
    for forgetting, times in ((0.9, 1 / 0.9), (1e-9, 0.09 * float(known.gain) ** 2 / float(known.covariance[1, 1]))):
        later = known._moved(torch.tensor(0.0).double(), torch.tensor(forgetting, dtype=torch.float64))
        assert float(later[1, 1] / known.covariance[1, 1]) == pytest.approx(times, rel=1e-9)
    prior = Plant.prior(1.0)
    assert torch.equal(
        prior._moved(torch.tensor(0.0).double(), torch.tensor(0.5).double())[1, 1], prior.covariance[1, 1]
    )


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), gain=st.floats(0.3, 3), drift=st.floats(-0.02, 0.02))
def test_finds_gain_and_drift_of_an_excited_plant(seed, gain, drift):
    generator = torch.Generator().manual_seed(seed)
    u = 0.05 / gain * torch.randn(150, generator=generator, dtype=torch.float64)
    h = 1 + (gain * u + drift).cumsum(0)
    plant = follow([1.0, *h.tolist()], [0.0, *u.tolist()])
    assert float(plant.gain) == pytest.approx(gain, rel=0.05)
    assert float(plant.drift) == pytest.approx(drift, abs=0.001)


def test_without_reading_noise_it_is_least_squares():
    """Random steps that the model misses: the estimate is that of least squares of ΔH on (u, 1).

    The standard errors of least squares are .02/√400 = .001; trust in the readings takes a while to become whole.
    """
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(400, generator=generator, dtype=torch.float64)
    missed = 0.02 * torch.randn(400, generator=generator, dtype=torch.float64)
    change = 0.3 * u - 0.01 + missed
    plant = follow([1.0, *(1 + change.cumsum(0)).tolist()], [0.0, *u.tolist()])
    gain, drift = torch.linalg.lstsq(torch.stack([u, torch.ones_like(u)], -1), change.unsqueeze(-1)).solution[:, 0]
    assert float(plant.gain) == pytest.approx(float(gain), abs=0.002)
    assert float(plant.drift) == pytest.approx(float(drift), abs=0.002)


def closed_loop(estimate, runs: int = 64, noise: float = 0.04) -> torch.Tensor:
    """Gain that `estimate` finds (runs,) on a plant of gain 1 held at .45 with noisy readings; median over runs."""
    generator = torch.Generator().manual_seed(1)
    entropy, u = torch.full((runs,), 0.6, dtype=torch.float64), torch.zeros(runs, dtype=torch.float64)
    level, gain = entropy, torch.ones(runs, dtype=torch.float64)
    for _ in range(300):
        reading = entropy + noise * torch.randn(runs, generator=generator, dtype=torch.float64)
        level, gain, drift = estimate(reading, u)
        u = ((0.2 * (0.45 - level)).clamp(-0.05, 0.05) - drift) / gain
        entropy = entropy + u + 0.003 * torch.randn(runs, generator=generator, dtype=torch.float64)
    return gain.median()


def test_feedback_of_noisy_readings_biases_least_squares_far_more():
    plant = Plant.prior(torch.ones(64))
    moments, last = torch.zeros(64, 3, dtype=torch.float64), None

    def kalman(reading, u):
        nonlocal plant
        plant = plant.observe(reading, u, forgetting=0.99, drift_rate=0.1)
        return plant.entropy, plant.gain, plant.drift

    def least_squares(reading, u):
        nonlocal moments, last
        change = torch.zeros_like(reading) if last is None else reading - last
        last = reading
        moments = 0.99 * moments + torch.stack([u * u, u * change, torch.zeros_like(u)], -1)
        gain = (moments[:, 1] + 1e-3) / (moments[:, 0] + 1e-3)
        return reading, gain.clamp(min=0.01), torch.zeros_like(u)

    biased, ours = float(closed_loop(least_squares)), float(closed_loop(kalman))
    assert biased > 4
    assert 0.5 < ours < 2.5


def test_gain_stays_positive_and_falls_by_half_at_most():
    plant = follow([1.0, 3.0], [0.0, -2.0])
    assert float(plant.gain) == pytest.approx(0.5)
    assert float(plant.covariance[1, 1]) == pytest.approx(0.25)  # as uncertain as before anything was seen
    risen = follow([1.0, 7.0], [0.0, 20.0], gain=0.01)
    assert float(risen.gain) == pytest.approx(0.1)  # tenfold at most


def test_nan_leaves_a_run_where_it_is():
    plant = Plant.prior(torch.ones(2))
    for h in ([1.0, 1.0], [0.9, NAN], [NAN, 0.9]):
        before = plant
        plant = plant.observe(torch.tensor(h), torch.tensor([-0.1, -0.1]), forgetting=0.99, drift_rate=0.1)
        for old, new in zip(before, plant, strict=True):
            still = [i for i in range(2) if math.isnan(h[i])]
            torch.testing.assert_close(new[still], old[still], rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(plant.gain[0], plant.gain[1], rtol=1e-6, atol=0)


@pytest.mark.parametrize("unknown", [math.inf, NAN])
def test_a_step_of_an_unknown_signal_says_where_the_entropy_is_and_nothing_else(unknown):
    before = follow([1.0, 0.9], [0.0, -0.1])
    after = before.observe(torch.tensor(0.7), torch.tensor(unknown), forgetting=0.99, drift_rate=0.1)
    assert float(after.entropy) == pytest.approx(0.7)
    assert all(torch.equal(a, b) for a, b in zip(before[1:], after[1:], strict=True))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-6, 10))
def test_covariance_stays_positive_and_everything_finite(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    plant = Plant.prior(torch.ones(4))
    for _ in range(200):
        u, h = scale * torch.randn(2, 4, generator=generator, dtype=torch.float64)
        plant = plant.observe(h, u, forgetting=0.95, drift_rate=0.3)
    assert all(bool(x.isfinite().all()) for x in plant)
    assert (torch.linalg.eigvalsh(plant.covariance) >= -1e-12).all()
    assert (plant.gain > 0).all()
