"""Learning-rate schedules: numbers by hand, transformers' and verl's schedulers, and resumed engines."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import get_scheduler

from llmtrain.policy.engine import TorchEngine
from llmtrain.policy.rates import DECAYS, factor, rate_of
from llmtrain.settings.config import OptimConfig, TrainConfig
from llmtrain.training.check import check_machine

COSINE = OptimConfig(lr=2.0, lr_schedule="cosine", warmup_steps=2, min_lr_ratio=0.2)


@pytest.mark.parametrize(
    ("name", "least", "factors"),
    [
        ("constant", 0.0, [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", 0.2, [0.5, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.2]),
        ("cosine", 0.2, [0.5, 1.0, 1.0, 0.6 + 0.4 * 2**-0.5, 0.6, 0.6 - 0.4 * 2**-0.5, 0.2, 0.2]),
    ],
)
def test_two_steps_of_warm_up_and_four_of_decay_by_hand(name, least, factors):
    rate = rate_of(OptimConfig(lr_schedule=name, warmup_steps=2, min_lr_ratio=least), 6)
    assert [rate(step) for step in range(8)] == pytest.approx(factors)


def factors(scheduler, steps: int) -> list[float]:
    return [scheduler.lr_lambdas[0](step) for step in range(steps)]


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


@settings(deadline=None)
@given(st.sampled_from(["constant", "linear", "cosine"]), st.integers(0, 5), st.integers(6, 40))
def test_schedules_of_transformers_after_the_warm_up(name, warmup, total):
    peer = {"constant": "constant_with_warmup"}.get(name, name)
    ours = [factor(i, name=name, warmup=warmup, total=total) for i in range(total)]
    theirs = factors(get_scheduler(peer, optimizer(), warmup, total), total)
    assert ours[warmup:] == pytest.approx(theirs[warmup:], abs=1e-12)
    assert ours[:warmup] == pytest.approx(theirs[1 : warmup + 1])  # theirs starts at 0


@settings(deadline=None)
@given(st.integers(0, 5), st.integers(6, 40), st.floats(0, 1))
def test_the_cosine_of_verl_after_the_warm_up(warmup, total, least):
    verl = pytest.importorskip("verl.utils.torch_functional")
    ours = [factor(i, name="cosine", warmup=warmup, total=total, least=least) for i in range(total)]
    theirs = factors(verl.get_cosine_schedule_with_warmup(optimizer(), warmup, total, least), total)
    assert ours[warmup:] == pytest.approx(theirs[warmup:], abs=1e-12)


@given(st.sampled_from(sorted(DECAYS)), st.integers(0, 20), st.integers(21, 60), st.floats(0, 1))
def test_factors_rise_to_1_then_never_rise_and_stay_above_the_least(name, warmup, total, least):
    found = [factor(i, name=name, warmup=warmup, total=total, least=least) for i in range(total + 3)]
    assert max(found) == pytest.approx(1)
    assert found[:warmup] == sorted(found[:warmup])
    assert found[warmup:] == sorted(found[warmup:], reverse=True)
    assert all(x > 0 for x in found[:warmup])
    assert all(x >= least - 1e-12 for x in found[warmup:])


def after(steps: int, config: OptimConfig = COSINE, state=None) -> TorchEngine:
    torch.manual_seed(0)
    engine = TorchEngine(torch.nn.Linear(2, 1), config, 6)
    if state:
        engine.load_state_dict(deepcopy(state))
    for _ in range(steps):
        engine.backward(engine.model(torch.ones(2)).sum())
        engine.step()
    return engine


def test_a_resumed_engine_continues_the_schedule():
    straight, half = after(5), after(3)
    resumed = after(2, state=half.state_dict())
    assert resumed.lr == straight.lr == pytest.approx(2 * (0.6 - 0.4 * 2**-0.5))
    assert resumed.scheduler.last_epoch == 5


def test_a_schedule_that_was_edited_continues_at_the_same_step():
    other = after(0, replace(COSINE, lr_schedule="linear"), after(4).state_dict())
    assert other.lr == pytest.approx(2 * 0.6)


@pytest.mark.parametrize(
    ("optim", "message"),
    [
        ({"lr_schedule": "cosine", "warmup_steps": 20}, r"warmup_steps 20 must be below the 20 optimizer steps"),
        ({"lr_schedule": "wavy"}, "optim.lr_schedule"),
        ({"min_lr_ratio": 0.1}, r"optim.min_lr_ratio needs optim.lr_schedule linear or cosine"),
        ({"lr_schedule": "linear", "min_lr_ratio": 1.5}, "optim.min_lr_ratio"),
    ],
)
def test_schedules_that_cannot_be(optim, message):
    with pytest.raises(ValueError, match=message):
        check_machine(TrainConfig(steps=10, optim=OptimConfig(**optim)))
