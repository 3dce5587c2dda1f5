from dataclasses import replace

import pytest

from llmtrain.plan.advice import advise
from llmtrain.plan.cost import make_plan
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.plan_presets import PRESETS

CONFIG = PlanConfig(gpus=8, gpu="h100", mini_batch_size=128, mean_response_length=1000, steps=10)


def plan(**changes):
    return make_plan(replace(CONFIG, **changes))


def test_the_sum_of_the_parts():
    made = plan()
    parts = sum(made.rollout.seconds.values()) + sum(made.training.values()) + made.sync
    assert made.seconds == pytest.approx(parts)
    assert made.gpu_hours == pytest.approx(parts * 10 * 8 / 3600)
    assert made.tokens_per_second == pytest.approx(4096 * 1000 / parts)
    assert 0 < made.train_utilisation < 0.46


def test_apart_one_side_waits_unless_rollouts_may_be_old():
    apart = plan(colocated=False, rollout_gpus=4)
    old = plan(colocated=False, rollout_gpus=4, staleness=1)
    rollout, training, sync = apart.phases.values()
    assert apart.seconds == pytest.approx(rollout + training + sync)
    assert old.seconds == pytest.approx(max(rollout, training) + sync)
    assert apart.idle_share == pytest.approx(0.5, abs=0.01)
    assert 0 <= old.idle_share < apart.idle_share
    assert plan().idle_share == 0


def test_weights_travel():
    once = 2 * 8_190_735_360
    assert plan().sync == plan(gpus=16).sync == pytest.approx(16 * once / (3.35e12 * 0.685)), "within each GPU"
    assert plan(zero_stage=3).sync > plan().sync, "gathered first"
    apart = {"gpus": 16, "colocated": False}
    assert plan(**apart).sync == pytest.approx(once / (50e9 * 0.82)), "a broadcast"
    stored = once / 2e9
    assert plan(colocated=False, staleness=2, store_gb_per_s=2.0).sync == pytest.approx(stored)
    over_one_adapter = stored + once / (50e9 * 0.82)
    assert plan(**apart, staleness=2, store_gb_per_s=2.0).sync == pytest.approx(over_one_adapter)


@pytest.mark.parametrize("name", PRESETS)
def test_longer_responses_take_more_time(name):
    config = PRESETS[name].config
    limit = config.max_response_length
    plans = [make_plan(replace(config, mean_response_length=limit // x)) for x in (16, 8, 4, 2)]
    assert [p.seconds for p in plans] == sorted(p.seconds for p in plans)
    assert [p.gpu_hours for p in plans] == sorted(p.gpu_hours for p in plans)


@pytest.mark.parametrize("gpu", ["h100", "h200", "h20"])
def test_more_gpus_are_never_slower_in_compute(gpu):
    plans = [plan(gpus=gpus, gpu=gpu, zero_stage=3) for gpus in (8, 16, 32, 64)]
    for key in ("forward and backward", "attention", "log-probabilities of the rollout"):
        times = [p.training[key] for p in plans]
        assert times == sorted(times, reverse=True)
    times = [p.seconds for p in plans]
    assert times == sorted(times, reverse=True)


def test_advice_holds_when_followed():
    slow = plan(gradient_checkpointing=True, offload_optimizer=True, max_num_seqs=16)
    found = advise(slow)
    assert [a.plan.seconds for a in found] == sorted(a.plan.seconds for a in found)
    assert any("max_num_seqs" in a.change for a in found)
    for advice in found:
        followed = make_plan(replace(slow.config, **advice.change))
        assert followed.seconds == pytest.approx(advice.plan.seconds)
        assert followed.seconds < 0.98 * slow.seconds
        assert followed.layout.sequences == slow.layout.sequences, "what is learnt stays"
