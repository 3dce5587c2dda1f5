"""Rollout times against step-by-step and hand calculations."""

from dataclasses import replace

import pytest

from llmtrain.plan import efficiency
from llmtrain.plan.derived import lay_out
from llmtrain.plan.memory import Memory
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.rollout_time import prefill_seconds, simulate, step_seconds

CONFIG = PlanConfig(gpus=8, gpu="h100", prompts=64, mini_batch_size=64, mean_response_length=500, max_num_seqs=24)


def rollout(**changes):
    layout = lay_out(replace(CONFIG, **changes))
    return simulate(layout, Memory(layout))


def step(running: float, kv_tokens: float, **changes) -> float:
    return sum(step_seconds(lay_out(replace(CONFIG, **changes)), running, kv_tokens).values())


def test_one_response_reads_the_weights():
    parts = step_seconds(lay_out(CONFIG), 1, 1000)
    weights = 2 * (8_190_735_360 - 151936 * 4096)
    assert parts["decode: reading weights"] == pytest.approx(weights / (3.35e12 * efficiency.BANDWIDTH_SHARE))
    cache = 1000 * 2 * 36 * 1024 * 2
    assert parts["decode: reading KV cache"] == pytest.approx(cache / (3.35e12 * efficiency.BANDWIDTH_SHARE))
    assert "decode: compute" not in parts


def test_many_responses_are_bound_by_compute():
    parts = step_seconds(lay_out(replace(CONFIG, gpu="h20")), 1000, 1000)
    flops = 2 * 1000 * (8_190_735_360 - 151936 * 4096) + 4 * 1000 * 4096 * 36
    assert parts["decode: compute"] == pytest.approx(flops / (148e12 * 0.57), rel=1e-3)
    assert "decode: reading weights" not in parts


def test_small_models_wait_for_the_host():
    assert step(1, 10, model="OpenReasoning-Nemotron-1.5B") == pytest.approx(efficiency.HOST_SECONDS)


def test_tensor_parallelism_divides_reading_and_adds_all_reduces():
    parts = step_seconds(lay_out(replace(CONFIG, tensor_model_parallel_size=4)), 1, 0)
    alone = step_seconds(lay_out(CONFIG), 1, 0)
    assert parts["decode: reading weights"] == pytest.approx(alone["decode: reading weights"] / 4)
    assert parts["decode: all-reduce"] > 72 * efficiency.ALLREDUCE_SECONDS


def test_prefill_once_a_group():
    assert prefill_seconds(lay_out(CONFIG)) == pytest.approx(prefill_seconds(lay_out(replace(CONFIG, n=16))))


@pytest.mark.parametrize("max_num_seqs", [5, 24, 256])
def test_events_agree_with_a_loop_over_steps(max_num_seqs):
    """The loop decodes the same responses one token at a time."""
    config = replace(CONFIG, max_num_seqs=max_num_seqs, mean_response_length=60, max_response_length=400)
    layout = lay_out(config)
    found = simulate(layout, Memory(layout))
    import random

    lengths = layout.lengths.quantiles(layout.sequences_per_engine)
    random.Random(0).shuffle(lengths)
    waiting, running, seconds = lengths[::-1], [], 0.0
    while waiting or running:
        while waiting and len(running) < max_num_seqs:
            running.append([0, waiting.pop()])
        seconds += sum(
            step_seconds(layout, len(running), sum(config.mean_prompt_length + age for age, _ in running)).values()
        )
        running = [[age + 1, length] for age, length in running if age + 1 < length]
    tail = found.seconds.get("wait for the longest response", 0.0)
    assert found.total - tail - found.seconds["prefill"] == pytest.approx(seconds, rel=0.05)


def test_running_responses():
    found = rollout(max_num_seqs=256)
    assert found.concurrent == 64
    assert 1 < found.mean_running < 64
    assert rollout(max_num_seqs=10).concurrent == 10


def test_the_kv_cache_limits_what_runs():
    assert rollout(max_num_seqs=64, gpu_memory_utilization=0.25, colocated=False).concurrent < 64


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("mean_response_length", (100, 300, 1000, 3000)),
        ("prompts", (64, 128, 512)),
        ("oversampling", (1.0, 2.0, 3.0)),
        ("max_response_length", (550, 700, 2048)),
        ("max_num_seqs", (64, 24, 8)),
    ],
)
def test_more_work_takes_longer(key, values):
    times = [rollout(**{key: value}).total for value in values]
    assert times == sorted(times)
    assert times[-1] > times[0]
