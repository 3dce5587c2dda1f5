"""Configurations that do not fit end in a one-line error with a fix that works."""

import re
from dataclasses import replace

import pytest

from entrostat.settings.commandline import parse_settings
from llmtrain.plan.cost import make_plan
from llmtrain.plan.fixes import find_fix
from llmtrain.plan.plan_config import PlanConfig

BIG = PlanConfig(model="Qwen2.5-32B", gpus=8, gpu="a100", zero_stage=0, gradient_checkpointing=False)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (PlanConfig(gpus=1), "needs 161.0 GiB in training and an h100 has 79.6; the largest part is optimizer"),
        (PlanConfig(zero_stage=0), "in training and an h100"),
        (PlanConfig(gradient_checkpointing=False, micro_batch_tokens=65536), "the largest part is activations"),
        (PlanConfig(gpu_memory_utilization=0.95), "in rollout and an h100 has 79.6; the largest part is KV cache"),
        (PlanConfig(gpu_memory_utilization=0.2), "the KV cache of an engine on 1 h100 holds 0 tokens"),
        (PlanConfig(model="Qwen2.5-32B", gpu="h100", zero_stage=3), "Qwen2.5-32B"),
        (PlanConfig(model="Qwen2.5-32B", gpu="h200", gpus=1, mini_batch_size=512), "Qwen2.5-32B"),
        (PlanConfig(model="Qwen2.5-32B", gpu="a100", gpus=1), "Qwen2.5-32B"),
        (PlanConfig(gpus=1, gpu_memory_utilization=0.9), "the largest part is optimizer"),
        (PlanConfig(gpu="h20", zero_stage=0, micro_batch_tokens=200000, gpu_memory_utilization=0.9), "activations"),
        (BIG, "Qwen2.5-32B"),
        (replace(BIG, micro_batch_tokens=262144), "activations"),
    ],
)
def test_the_fix_works(config, words):
    with pytest.raises(ValueError, match=re.escape(words)) as found:
        make_plan(config)
    text = str(found.value)
    assert "\n" not in text
    fix = parse_settings(text.partition(": set ")[2].split())
    assert fix, text
    fixed = make_plan(replace(config, **fix))
    for key in fix:
        fewer = {k: v for k, v in fix.items() if k != key}
        with pytest.raises(ValueError):  # noqa: PT011 - none is needless
            make_plan(replace(config, **fewer))
    assert fixed.layout.sequences == fixed.config.prompts * fixed.config.n


def test_an_engines_share_does_not_make_the_fix_harder():
    """The engine's free memory depends on the other changes, so the fix also unsets its share."""
    for config in (PlanConfig(gpus=1), PlanConfig(gpu="h20", zero_stage=0, micro_batch_tokens=200000)):
        without = find_fix(config)
        assert find_fix(replace(config, gpu_memory_utilization=0.9)) == {"gpu_memory_utilization": None} | without


def test_a_fix_takes_the_lowest_stage_that_does():
    config = PlanConfig(gpu="h20", zero_stage=0, micro_batch_tokens=200000)
    assert find_fix(config) == {"zero_stage": 1, "micro_batch_tokens": 9216}


def test_what_no_placement_holds():
    with pytest.raises(ValueError, match="lower max_response_length or take a smaller model"):
        make_plan(replace(BIG, max_prompt_length=65536, max_response_length=65536))
