"""Free memory of a GPU, and the setting that leaves more of it."""

from dataclasses import replace

import pytest

from llmtrain.plan.cost import make_plan
from llmtrain.plan.headroom import ENOUGH, headroom, headroom_in_words, roomier
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.plan_presets import PRESETS, get_preset


@pytest.mark.parametrize("name", PRESETS)
def test_parts_and_headroom_are_the_gpu(name):
    plan = make_plan(get_preset(name).config)
    for phase, parts in (("training", plan.memory.training), ("rollout", plan.memory.rollout)):
        assert sum(parts.values()) + headroom(plan)[phase] == pytest.approx(plan.layout.gpu.memory)


def test_a_plan_of_a_full_gpu_says_how_to_leave_room():
    plan = make_plan(get_preset("qwen3-8b-64gpu").config)
    assert headroom(plan)["rollout"] == pytest.approx(0, abs=1)
    other = roomier(plan)
    assert ENOUGH <= headroom(other)["rollout"] / other.layout.gpu.memory < ENOUGH + 0.01
    assert other.memory.kv_tokens < plan.memory.kv_tokens
    words = headroom_in_words(plan)
    assert "rollout 0.0 GiB (0%), beside 4 GiB reserved" in words
    assert f"gpu_memory_utilization={other.config.gpu_memory_utilization} leaves" in words


def test_a_plan_with_room_needs_no_change():
    plan = make_plan(replace(get_preset("qwen3-8b-64gpu").config, gpu_memory_utilization=0.6))
    assert roomier(plan) is None
    assert "leaves" not in headroom_in_words(plan)


def test_a_cache_that_must_hold_the_longest_sequence_cannot_shrink():
    apart = {"colocated": False, "rollout_gpus": 32, "zero_stage": 3, "offload_optimizer": True}
    lengths = {"max_response_length": 40_000, "max_positions": 200_000, "micro_batch_tokens": 41_100}
    config = PlanConfig(model="Qwen2.5-32B", gpus=64, gpu_memory_utilization=0.94, **apart, **lengths)
    cramped = make_plan(config)
    assert headroom(cramped)["rollout"] < ENOUGH * cramped.layout.gpu.memory
    assert roomier(cramped) is None
    assert "Less than 5% is free" in headroom_in_words(cramped)
    assert roomier(make_plan(replace(config, max_response_length=20_000))) is not None
