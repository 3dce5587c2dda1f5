"""Trainer settings from a plan: memory shared by two processes, and timeouts."""

from dataclasses import replace

import pytest

from llmtrain.plan.cost import make_plan
from llmtrain.plan.handover import timeouts, train_settings
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.plan_presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_both_processes_fit_on_the_gpu(name):
    """The engine fits next to the idle trainer, and the trainer's peak next to a sleeping engine.

    The part `reserved` includes the memory of a sleeping engine (CUDA context, CUDA graphs).
    """
    plan = make_plan(PRESETS[name].config)
    memory, total = plan.memory, plan.layout.gpu.memory
    share = train_settings(plan, PRESETS[name])["rollout"]["gpu_memory_utilization"]
    assert share * total + sum(memory.beside_engine.values()) <= total
    assert share * total > memory.engine_weights + memory.engine_activations
    assert sum(memory.training.values()) <= total


@pytest.mark.parametrize("name", PRESETS)
def test_timeouts_are_four_times_the_estimate_at_least(name):
    plan = make_plan(PRESETS[name].config)
    settings = train_settings(plan, PRESETS[name])
    answer, wait = settings["rollout"]["timeout"], settings["engine"]["ddp_timeout"]
    assert answer >= 4 * plan.rollout.total
    assert wait >= 4 * sum(plan.phases.values())
    assert wait > answer


def test_timeouts_of_long_and_short_steps():
    """974 s of rollout, as planned for qwen3-8b on one GPU, are beyond the trainer's own 600 s."""
    long = make_plan(PRESETS["qwen3-8b-1gpu"].config)
    assert 900 < long.rollout.total < 1000
    answer, wait = timeouts(long)
    assert answer == 60 * -(-5 * long.rollout.total // 60)
    assert wait == 60 * -(-5 * sum(long.phases.values()) // 60)
    short = make_plan(
        replace(
            PlanConfig(), model="OpenReasoning-Nemotron-1.5B", prompts=8, mini_batch_size=8, max_response_length=512
        )
    )
    assert timeouts(short) == (600.0, 2400.0)
