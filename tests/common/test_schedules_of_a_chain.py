import math
from dataclasses import fields

import pytest
import torch
from helpers import PLANNED, sampled_tokens

import entrostat as es
from entrostat import StepStats, make
from entrostat.controllers import Entropic, Thermostat
from entrostat.registry import REGISTRY
from entrostat.settings.schedules import per_run

pytestmark = pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")


def observe(controller, *entropies, **stats):
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy, **stats))


def test_the_controller_reads_the_number_of_the_moment():
    moving = make("entropic", target=es.linear(0.6, 0.2, steps=4), ki=0.0)
    for step, target in enumerate([0.6, 0.5, 0.4, 0.3, 0.2, 0.2]):
        moving.observe(StepStats(entropy=0.5, step=step))
        still = make("entropic", target=target, ki=0.0)
        still.observe(StepStats(entropy=0.5))
        assert moving.metrics()["entropic/target"].item() == pytest.approx(target)
        assert moving.metrics()["entropic/alpha"].item() == pytest.approx(still.metrics()["entropic/alpha"].item())


def test_a_schedule_in_the_class_in_make_and_as_text_are_the_same():
    chains = (
        es.chain(Entropic(target=es.linear(0.6, 0.2, steps=4))),
        es.chain(Entropic(target="linear(0.6, 0.2, 4)")),
        make("entropic", target=es.linear(0.6, 0.2, steps=4)),
        make("entropic", target="linear(0.6, 0.2, 4)"),
    )
    for controller in chains:
        observe(controller, 0.5, 0.5)
    assert len({controller.metrics()["entropic/alpha"].item() for controller in chains}) == 1


def test_parts_of_a_chain_move_in_a_longer_chain_too():
    short = make("clip_higher", eps_high="linear(0.28, 0.2, 2)")
    longer = es.chain(short, Entropic(target=0.3))
    observe(longer, 0.5, 0.5)
    assert longer.plan(sampled_tokens(6)).clip_high.item() == pytest.approx(1.24)
    assert longer.metrics()["clip_higher/eps_high"].item() == pytest.approx(0.24)


def test_steps_are_counted_if_not_given():
    counted, told = (make("thermostat", target="linear(0.6, 0.2, 4)") for _ in range(2))
    observe(counted, 0.5, 0.5, 0.5)
    told.observe(StepStats(entropy=0.5, step=2))
    assert counted.metrics()["thermostat/target"] == told.metrics()["thermostat/target"] == 0.4


def test_relative_targets_wait_for_the_first_finite_entropy():
    controller = make("entropic", target="linear(1x, 0.4x, 4)")
    observe(controller, math.nan, 2.0, 1.0)
    assert controller.metrics()["entropic/target"].item() == pytest.approx(1.4)
    runs = make("entropic", target="0.4x")
    observe(runs, torch.tensor([1.0, math.nan]), torch.tensor([3.0, 2.0]))
    assert runs.metrics()["entropic/target"].tolist() == pytest.approx([0.4, 0.8])


def test_the_state_restores_step_entropy_and_numbers():
    first, second = (make("clip_higher+thermostat", target="cosine(1x, 0.2x)", eps_low=0.3) for _ in range(2))
    observe(first, 1.5, 1.4, 1.3, total_steps=9)
    second.load_state_dict(first.state_dict())
    assert second.metrics() == first.metrics()
    tokens = sampled_tokens(40)
    assert torch.equal(first.plan(tokens).entropy_coef, second.plan(tokens).entropy_coef)
    for controller in (first, second):
        observe(controller, 1.2, total_steps=9)
    assert second.metrics() == first.metrics()


def test_a_state_without_schedules_is_still_read():
    old = make("entropic", target=0.5)
    observe(old, 0.7, 0.6)
    new = make("entropic", target="linear(0.5, 0.1, 8)")
    new.load_state_dict(old.state_dict())
    new.observe(StepStats(entropy=0.6, step=2))
    assert new.metrics()["entropic/target"].item() == pytest.approx(0.4)
    with pytest.raises(ValueError, match="state is of controllers"):
        old.load_state_dict(new.state_dict())


WRONG = [
    ("entropic: target must not be negative", lambda: make("entropic", target="linear(0.3, -0.1, 9)")),
    ("entropic: tau must lie in", lambda: make("entropic", tau=es.piecewise({0: 0.5, 7: 1.0}))),
    ("clip_higher: dual_clip must be above 1", lambda: make("clip_higher", dual_clip=es.linear(3, 1))),
    ("coef_min must not exceed coef_max", lambda: make("adaptive_entropy", coef_max="linear(0.1, -0.1, 9)")),
    ("low_max must not exceed high", lambda: make("bapo", low_max="cosine(0.9, 1.3, 9)")),
    ("entropic: kp: only a target may be relative", lambda: make("entropic", kp="0.4x")),
    ("thermostat: kappa only sets the initial state", lambda: make("thermostat", kappa="linear(1, 2, 3)")),
    (r"entropic: target: 'linear\(0.3\)' is no schedule", lambda: make("entropic", target="linear(0.3)")),
    ("entrocraft: target must not be negative", lambda: make("entrocraft", target=0.3, anneal=0.4)),
    ("target moves by its own schedule", lambda: make("entrocraft", target="linear(1, 0.5, 4)", anneal=0.4)),
    ("mode must be one of", lambda: make("thermostat", mode="linear(1, 2, 3)")),
    ("auto must be true or false", lambda: make("entropic", auto="linear(1, 2, 3)")),
    (
        r"^entropic: target=linear\(0.6, 0.3\) without steps needs StepStats.total",
        lambda: observe(make("entropic", target=es.linear(0.6, 0.3)), 0.5),
    ),
]


@pytest.mark.parametrize(("message", "wrong"), WRONG)
def test_values_that_are_not_allowed_are_refused(message, wrong):
    with pytest.raises(ValueError, match=message) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_runs_side_by_side_have_their_own_schedules():
    side = make("thermostat", target=per_run([0.3, "linear(0.6, 0.2, 4)", "0.5x"]))
    singles = [make("thermostat", target=target) for target in (0.3, "linear(0.6, 0.2, 4)", "0.5x")]
    for entropy in (0.9, 0.8, 0.7):
        side.observe(StepStats(entropy=torch.full((3,), entropy, dtype=torch.float64)))
        for single in singles:
            observe(single, entropy)
    wanted = torch.stack([single.metrics()["thermostat/wanted_flow"] for single in singles])
    torch.testing.assert_close(side.metrics()["thermostat/wanted_flow"], wanted, rtol=1e-12, atol=0)


NUMERIC = [
    (name, field.name)
    for name, cls in sorted(REGISTRY.items())
    if cls.__module__.startswith("entrostat.")
    for field in fields(cls)
    if type(field.default) in (int, float) and field.name not in cls.initial_only and math.isfinite(field.default)
]


@pytest.mark.parametrize(("name", "key"), NUMERIC)
def test_any_number_takes_a_schedule(name, key):
    """A schedule that has arrived at a number acts as that number: it is read at every step, and as a tensor."""
    start = next(field.default for field in fields(REGISTRY[name]) if field.name == key)
    settings = {"aggregation": "fixed"} if key == "constant" else {}
    value = 0.5 * start
    try:
        number = make(name, **{f"{name}.{key}": value}, **settings)
    except ValueError:  # half of it is not allowed
        value = start
        number = make(name, **{f"{name}.{key}": value}, **settings)
    moving = make(name, **{f"{name}.{key}": es.piecewise({0: start, 1: value})}, **settings)
    plans = []
    for controller in (number, moving):
        stats = {"entropy": 0.4, "total_steps": 3, "epoch": 1, "epochs": 2, "planned": PLANNED}
        controller.observe(StepStats(step=1, **stats))
        plans.append(controller.plan(sampled_tokens(40)))
    expected, found = plans
    logp, entropy = sampled_tokens(40, seed=1).logp, sampled_tokens(40, seed=1).entropy
    for theirs, ours in zip(expected.coefficients(logp, entropy), found.coefficients(logp, entropy), strict=True):
        assert (theirs is None) == (ours is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-15)
    assert moving.metrics()[f"{name}/{key}"].item() == value


def test_thermostat_and_its_schedule_hold_a_falling_target():
    controller = es.chain(Thermostat(target=es.linear(1.0, 0.5, steps=2)))
    observe(controller, 0.8, 0.8, 0.8)
    assert controller.metrics()["thermostat/error"].item() == pytest.approx(0.3, abs=0.01)
