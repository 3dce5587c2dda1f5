"""temperature_loop against numbers worked out by hand, and loops on the temperature in chains."""

import warnings
from math import log, nan

import pytest
import torch

from entrostat import CompositionWarning, StepStats, Tokens, chain, make


def after(*entropies, **settings) -> float:
    controller = make("temperature_loop", **{"target": 0.5, "vocabulary": 100, **settings})
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
    return float(controller.temperature)


def test_temperatures_by_hand():
    """ln 100 + ln ln 100 = 4.605170 + 1.527180 = 6.132350; ln(.5/.25) = .693147."""
    assert after() == 1
    first = 1 + log(2) / 6.132350
    assert after(0.25) == pytest.approx(first, rel=1e-6)
    assert after(0.25, 1.0) == pytest.approx(first * (1 - first * log(2) / 6.132350), rel=1e-6)
    assert after(0.5, 0.5) == 1
    assert after(0.25, nan) == after(0.25)


def test_the_authors_target_is_the_first_entropy():
    loop = make("temperature_loop", vocabulary=100)
    loop.observe(StepStats(entropy=1.2))
    assert float(loop.temperature) == 1
    loop.observe(StepStats(entropy=0.6))
    assert float(loop.temperature) == pytest.approx(1 + log(2) / 6.132350, rel=1e-6)


def test_a_dead_or_exploded_policy_meets_the_limits():
    assert after(*[0.0] * 4) == 10
    assert after(0.0, temperature_max=1.5) == 1.5
    assert after(*[20.0] * 40) == 0.1
    with pytest.raises(ValueError, match="temperature_min must not be above"):
        make("temperature_loop", temperature_min=3.0, temperature_max=2.0)


def test_state_and_runs():
    """Each leading run has its own temperature, and a restored state goes on."""
    loop = make("temperature_loop", target=0.5)
    loop.observe(StepStats(entropy=torch.tensor([0.25, 1.0])))
    high, low = loop.temperature
    assert high > 1 > low
    other = make("temperature_loop", target=0.5)
    other.load_state_dict(loop.state_dict())
    assert torch.equal(other.temperature, loop.temperature)


def test_two_loops_on_the_temperature_are_refused():
    with pytest.raises(ValueError, match="both closed loops on the sampling temperature"):
        chain(make("temperature_loop"), make("thermostat", mode="temperature"))
    assert make("clip_higher").temperature is None
    assert make("clip_higher+temperature_loop").temperature == 1


@pytest.mark.parametrize("spec", ["clip_higher+temperature_loop", "thermostat mode=temperature"])
def test_a_temperature_that_nobody_reads_is_told_once(spec):
    name, _, mode = spec.partition(" mode=")
    deaf, heard = (make(name, target=0.5, **({"mode": mode} if mode else {})) for _ in range(2))
    planned = {"thermostat/spread": 0.3, "thermostat/updates": 1.0}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for entropy in (0.4, 0.3, 0.2, 0.2):
            deaf.observe(StepStats(entropy=entropy, planned=planned))
    assert [w.category for w in found] == [CompositionWarning]
    assert "sets the sampling temperature, and nobody has read it" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for entropy in (0.4, 0.3, 0.2, 0.2):
            assert heard.temperature is not None
            heard.observe(StepStats(entropy=entropy, planned=planned))


def test_the_updates_stay_as_they_are():
    logp = torch.tensor([0.5, 0.25], dtype=torch.float64).log()
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.tensor([1.0, -1.0]).double())
    plain, looped = (make(name).plan(tokens).coefficients(logp, None)[0] for name in ("grpo", "temperature_loop"))
    assert torch.equal(plain, looped)
