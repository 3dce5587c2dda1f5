import math

import pytest
import torch

from entrostat.numbers.delayed_plant import LONGEST, DelayedPlant
from entrostat.numbers.plant import Plant

NAN = float("nan")
USUAL = {"forgetting": 0.99, "drift_rate": 0.1}


def followed(readings, signals, delay=-1, **limits) -> DelayedPlant:
    plant = DelayedPlant.prior(1.0)
    for h, u in zip(readings, signals, strict=True):
        plant = plant.observe(torch.tensor(h), torch.tensor(u), delay=delay, **USUAL, **limits)
    return plant


def late_plant(delay: int, gain: float = 0.5, drift: float = -0.003, steps: int = 60):
    """Signals, the readings that are `delay` steps old, and the entropies, of a plant that a random signal excites."""
    g = torch.Generator().manual_seed(delay)
    u = 0.05 * torch.randn(steps, generator=g, dtype=torch.float64)
    h = 1 + torch.cat([torch.zeros(1).double(), (gain * u + drift).cumsum(0)])
    seen = [float(h[max(t - delay, 0)]) for t in range(steps + 1)]
    return [0.0, *u.tolist()], seen, h


@pytest.mark.parametrize("delay", [0, 1, 3, 8, 16])
def test_the_delay_is_found_and_the_entropy_of_now_foretold(delay):
    signals, seen, entropy = late_plant(delay)
    plant = followed(seen, signals)
    assert float(plant.delay) == delay
    assert float(plant.gain) == pytest.approx(0.5, rel=0.05)
    assert float(plant.entropy) == pytest.approx(float(entropy[-1]), abs=0.004)


def test_without_its_delay_the_gain_is_not_found():
    signals, seen, _ = late_plant(8)
    assert float(followed(seen, signals, delay=0).gain) < 0.3
    assert float(followed(seen, signals, delay=8).gain) == pytest.approx(0.5, rel=0.05)


def test_a_known_delay_is_the_plant_of_its_signals():
    """It has the signals of as many steps before; the entropy of now adds those since, and the drift of each."""
    signals, seen, _ = late_plant(3, steps=20)
    plant, alone = followed(seen, signals, delay=3), Plant.prior(1.0)
    for t, h in enumerate(seen):
        u = signals[t - 3] if t >= 3 else 0.0
        alone = alone.observe(torch.tensor(h), torch.tensor(u), forgetting=0.99, drift_rate=0.1)
    assert float(plant.gain) == pytest.approx(float(alone.gain), rel=1e-12)
    since = float(alone.gain) * sum(signals[-3:]) + 3 * float(alone.drift)
    assert float(plant.entropy) == pytest.approx(float(alone.entropy) + since, rel=1e-6)


def test_noise_alone_is_no_delay():
    """At most one in twenty of 200 runs whose entropy rests takes readings that are off by .05 for old ones."""
    g = torch.Generator().manual_seed(0)
    plant = DelayedPlant.prior(torch.ones(200))
    for _ in range(100):
        h = 0.6 + 0.05 * torch.randn(200, generator=g, dtype=torch.float64)
        u = 0.1 * (0.6 - plant.entropy.nan_to_num(nan=0.6))
        plant = plant.observe(h, u, delay=-1, forgetting=0.99, drift_rate=0.1)
    assert (plant.delay > 0).double().mean() < 0.05
    assert (plant.entropy - 0.6).abs().max() < 0.06


def test_the_gain_has_a_lower_limit():
    still, signals = [1.0] * 6, [0.0, *[0.4] * 5]
    assert float(followed(still, signals, 0, least=0.2).gain) == pytest.approx(0.2)
    assert float(followed(still, signals, 0).gain) < 0.2


def test_one_absurd_reading_moves_little_and_a_jump_that_lasts_is_believed():
    calm = [1.0 + 0.001 * math.sin(t) for t in range(40)]
    for value in (100.0, -1e4):
        once = followed([*calm, value, *calm[:5]], [0.0] * 46, 0)
        assert float(once.entropy) == pytest.approx(1.0, abs=0.05)
    lasts = followed([*calm, *[2.0] * 12], [0.0] * 52, 0)
    assert float(lasts.entropy) == pytest.approx(2.0, abs=0.02)


def test_afresh_keeps_where_the_entropy_is():
    signals, seen, _ = late_plant(4)
    plant = followed(seen, signals)
    again = plant.afresh(torch.tensor(True), 2.0)
    assert (float(again.gain), float(again.drift), float(again.delay)) == (2.0, 0.0, 0.0)
    assert torch.equal(again.plants.entropy, plant.plants.entropy)
    assert all(
        torch.equal(a, b) for a, b in zip(plant.afresh(torch.tensor(False), 2.0).plants, plant.plants, strict=True)
    )


def test_runs_side_by_side_are_runs_alone_and_nan_leaves_a_run_where_it_is():
    (first, seen, _), (second, other, _) = late_plant(2), late_plant(8)
    other = [NAN if t % 7 == 3 else h for t, h in enumerate(other)]
    together = followed(torch.tensor([seen, other]).T.tolist(), torch.tensor([first, second]).T.tolist())
    for i, (h, u) in enumerate(((seen, first), (other, second))):
        alone = followed(h, u)
        assert float(together.delay[i]) == float(alone.delay)
        assert float(together.entropy[i]) == pytest.approx(float(alone.entropy), rel=1e-5)
    unknown, moved = torch.tensor([NAN, NAN]), torch.tensor([9.0, 9.0])
    still = together.observe(unknown, moved, delay=-1, **USUAL)
    for old, new in zip((*together.plants, *together[1:]), (*still.plants, *still[1:]), strict=True):
        torch.testing.assert_close(old, new, rtol=0, atol=0, equal_nan=True)


def test_a_longer_delay_than_any_is_the_longest():
    signals, seen, _ = late_plant(2)
    assert float(followed(seen, signals, delay=99).delay) == LONGEST
