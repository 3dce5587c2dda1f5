"""thermostat with mode temperature: the slope of the entropy in T, one step by hand, and the loop on real softmaxes."""

import warnings
from dataclasses import replace
from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make, policy_stats


def samples(logits, draws=20_000, seed=0) -> Tokens:
    """Return tokens drawn from softmax(logits), the same distribution at every position."""
    s = policy_stats(logits)
    arm = torch.multinomial(s.logp.exp(), draws, replacement=True, generator=torch.Generator().manual_seed(seed))
    logp = s.logp[arm]
    return Tokens(
        logp=logp, old_logp=logp, old_entropy=s.entropy.expand(draws), advantage=torch.zeros(draws, dtype=torch.float64)
    )


def loop(**values):
    return make("thermostat", **{"mode": "temperature", "target": 0.5, **values})


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), actions=st.integers(2, 30), temperature=st.floats(0.4, 3))
def test_slope_of_the_entropy_is_the_variance_of_the_surprisal(seed, actions, temperature):
    """dH/d ln T by finite differences, over all actions weighted by their probability."""
    z = 2 * torch.randn(actions, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    s = policy_stats(z / temperature)
    step = 1e-5
    higher, lower = (policy_stats(z / (temperature * (1 + d))).entropy for d in (step, -step))
    variance = (s.logp.exp() * (s.logp + s.entropy) ** 2).sum()
    assert float((higher - lower) / (2 * step)) == pytest.approx(float(variance), rel=1e-5, abs=1e-9)


def test_spread_is_the_variance_over_samples():
    """p = (.75, .25): H = .562335, deviations .274653 and −.823959, variance .75·.075434 + .25·.678909 = .226303."""
    tokens = samples(torch.tensor([3.0, 1.0], dtype=torch.float64).log())
    plan = loop().plan(tokens)
    assert float(plan.info["thermostat/spread"]) == pytest.approx(0.226303, rel=0.02)
    assert plan.entropy_coef is None
    assert plan.ref_coef is None
    assert float((plan.weight - 1).abs().max()) == 0


def test_first_temperature_by_hand():
    """The first readings set no temperature; then .1·(.5 − .4) = .01 nats at a spread of .2: T = e^.05."""
    controller = loop()
    controller.observe(StepStats(entropy=0.4))
    assert float(controller.temperature) == 1
    controller.observe(StepStats(entropy=0.4, planned={"thermostat/spread": 0.4, "thermostat/updates": 2.0}))
    plant = controller.parts[0].plant
    wanted = (0.1 * (0.5 - float(plant.entropy)) - float(plant.drift)) / float(plant.gain)
    assert log(float(controller.temperature)) == pytest.approx(wanted / 0.2)
    assert float(controller.temperature) == pytest.approx(1.05, abs=0.01)


@pytest.mark.parametrize("decay", [0.0, 0.02])
def test_samples_of_a_policy_that_grows_peaked_stay_at_the_target(decay):
    """Logits grow by 2% a step as training would make them; T grows with them, and the samples' entropy is held."""
    z = torch.linspace(-2, 2, 12, dtype=torch.float64)
    controller, planned, grown = loop(target=1.5, temperature_max=1e4), {}, z
    for step in range(300):
        grown = z * (1 + decay) ** step
        now = grown / controller.temperature
        entropy = policy_stats(now).entropy
        controller.observe(StepStats(entropy=entropy, step=step, delay=0, planned=planned))
        planned = controller.plan(samples(now, 2000, seed=step)).info
    assert float(entropy) == pytest.approx(1.5, abs=0.02)
    assert float(controller.temperature) == pytest.approx(float(grown.max() / now.max()), rel=0.03)


def test_a_state_goes_on_and_other_modes_keep_theirs():
    tokens = samples(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), 100)
    first, planned = loop(), {}
    for step, entropy in enumerate((0.9, 0.8, 0.7, 0.75)):
        first.observe(StepStats(entropy=entropy, step=step, planned=planned))
        planned = first.plan(tokens).info
    second = loop()
    second.load_state_dict(first.state_dict())
    for one in (first, second):
        one.observe(StepStats(entropy=0.6, step=4, planned=planned))
    assert torch.equal(first.temperature, second.temperature)
    assert "heat" not in make("thermostat").state_dict()["thermostat"]


@pytest.mark.parametrize("mode", ["temperature", "bonus"])
def test_a_trainer_that_does_not_tell_what_came_of_plans_is_told(mode):
    logits = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    s, controller = policy_stats(logits), loop(mode=mode)
    moments = {name: getattr(s, name).expand(50) for name in ("entropy", "s2", "s2l", "s2ll")}
    tokens = replace(samples(logits, 50), **moments)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for step in range(4):
            assert controller.temperature is None or controller.temperature == 1
            controller.observe(StepStats(entropy=0.8, step=step))
            controller.plan(tokens)
    assert len(found) == 1
    assert "pass `planned` in StepStats" in str(found[0].message)


def test_limits_and_one_side():
    hot = {"thermostat/spread": 0.2, "thermostat/updates": 1.0}
    high, low, kept = loop(temperature_max=1.2), loop(temperature_min=0.9), loop(one_sided=True)
    for controller, entropy in ((high, 0.01), (low, 3.0), (kept, 3.0)):
        for step in range(60):
            controller.observe(StepStats(entropy=entropy, step=step, planned=hot))
    assert (float(high.temperature), float(low.temperature), float(kept.temperature)) == (1.2, 0.9, 1.0)
    with pytest.raises(ValueError, match="temperature_min must not be above"):
        loop(temperature_min=2.0, temperature_max=1.0)


def test_samples_without_spread_leave_the_temperature():
    controller = loop()
    for step in range(5):
        planned = {"thermostat/spread": 0.0, "thermostat/updates": 1.0}
        controller.observe(StepStats(entropy=0.1, step=step, planned=planned))
    assert float(controller.temperature) == 1
