import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrostat.settings.commandline import parse_settings
from llmtrain.plan.derived import lay_out
from llmtrain.plan.plan_config import PlanConfig

STEER = PlanConfig(
    model="Qwen2.5-Math-7B",
    gpus=32,
    prompts=512,
    n=8,
    mini_batch_size=32,
    max_prompt_length=1024,
    max_response_length=3072,
    mean_prompt_length=100,
    mean_response_length=900,
    micro_batch_tokens=8192,
)


def test_derived_numbers_by_hand():
    layout = lay_out(STEER)
    assert layout.nodes == 4
    assert layout.ranks == layout.engines == 32
    assert layout.sequences == 4096
    assert layout.updates == 16
    assert layout.sequences_per_update == 256
    assert layout.sequences_per_rank == 8
    assert layout.micro_batches == 1  # 8 × 1,000 tokens
    assert layout.tokens == 4_096_000
    assert layout.sequences_per_engine == 128
    assert layout.longest_sequence == 4096


def test_micro_batches_cover_the_tokens_of_a_rank():
    layout = lay_out(replace(STEER, gpus=8, ppo_epochs=2, live_share=0.75))
    assert layout.updates == 32
    assert layout.micro_batches == 3  # 32 responses × 1,000 tokens × 0.75 over 8,192
    assert lay_out(replace(STEER, micro_batch_tokens=16)).micro_batch_tokens == 4096, "a sequence is never cut"


def test_no_response_is_cut_into_micro_batches():
    tiny = replace(STEER, micro_batch_tokens=16)
    assert lay_out(tiny).micro_batches == lay_out(tiny).sequences_per_rank == 8
    assert lay_out(replace(tiny, live_share=0.5)).micro_batches == 4


def test_engines_and_trainer_apart():
    apart = replace(STEER, gpus=64, colocated=False)
    layout = lay_out(replace(apart, rollout_gpus=32, tensor_model_parallel_size=4, oversampling=1.5))
    assert (layout.ranks, layout.rollout_gpus, layout.engines) == (32, 32, 8)
    assert layout.generated == 6144
    assert layout.sequences_per_engine == 768
    assert lay_out(apart).rollout_gpus == 32


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"gpus": 12}, "gpus 12 .*gpus_per_node 8: use gpus=8 or gpus=16"),
        ({"gpus": 60}, "gpus 60 .*gpus_per_node 8: use gpus=32 or gpus=64$"),
        (
            {"gpus": 64, "prompts": 1000, "mini_batch_size": 512},
            "mini_batch_size 512 .*prompts 1000: use mini_batch_size=200 or mini_batch_size=1000$",
        ),
        ({"mini_batch_size": 100}, "100 .*prompts 512: use mini_batch_size=64 or mini_batch_size=128"),
        ({"gpus": 512}, "512 ranks: use gpus=256, colocated=false rollout_gpus=256 or mini_batch_size=64"),
        (
            {"gpus": 64, "reward_model": True},
            "64 ranks: use gpus=32, colocated=false rollout_gpus=32 or mini_batch_size=64",
        ),
        ({"gpus": 64, "colocated": False, "rollout_gpus": 16}, "48 ranks: use rollout_gpus=32$"),
        (
            {"mini_batch_size": 3, "prompts": 3, "n": 5, "tensor_model_parallel_size": 4, "gpus": 4},
            "mini_batch_size 3 × n 5 .*4 ranks: use prompts=4 mini_batch_size=4$",
        ),
        ({"tensor_model_parallel_size": 8}, "tensor_model_parallel_size 8 .* 28 heads, .* 4 KV heads: use 1, 2 or 4"),
        ({"tensor_model_parallel_size": 3}, "use 1, 2 or 4"),
        ({"max_response_length": 4096}, "5,120 .*4,096 positions of Qwen2.5-Math-7B: .*length=3072"),
        ({"max_prompt_length": 4096}, "max_prompt_length 4,096 .*4,096 positions of Qwen2.5-Math-7B"),
        ({"colocated": False, "rollout_gpus": 64}, "without a GPU"),
        ({"gpus": 1, "colocated": False}, "without a GPU"),
        ({"staleness": 1}, "staleness .*colocated=false"),
        ({"staleness": 1, "gpus": 1, "mini_batch_size": 512}, "staleness=0, or colocated=false"),
        ({"rollout_gpus": 8}, "colocated=false"),
        ({"offload_param": True}, "offload_param .*: use zero_stage=3 offload_optimizer=true"),
        ({"offload_optimizer": True, "zero_stage": 0}, "offload_optimizer .*: use zero_stage=2"),
        (
            {"gpus": 64, "prompts": 4, "n": 8, "mini_batch_size": 4, "colocated": False, "rollout_gpus": 56},
            "56 rollout engines",
        ),
        ({"mean_response_length": 3072}, "max_response_length 3072"),
        ({"mean_prompt_length": 1025}, "mean_prompt_length 1,025 .*max_prompt_length 1,024: .*=1024"),
        ({"prompts": 10**8, "mini_batch_size": 10**6}, "262,144 responses"),
        ({"oversampling": 1e12}, "oversampling 1e[+]12 .*262,144 responses"),
        ({"gpu": "b200"}, "'b200'; .*a100, h100, h200, h20"),
    ],
)
def test_what_cannot_be(change, names):
    with pytest.raises(ValueError, match=names) as found:
        lay_out(replace(STEER, **change))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("means", [(100, None), (3000, 5000)])
@pytest.mark.parametrize("length", [3000, 4094, 4095, 4096, 9000])
def test_the_fix_of_sequences_that_are_too_long_is_one(length, means):
    config = replace(STEER, max_prompt_length=length, max_response_length=8192)
    config = replace(config, mean_prompt_length=means[0], mean_response_length=means[1])
    with pytest.raises(ValueError, match=": use max_") as found:
        lay_out(config)
    lay_out(replace(config, **parse_settings(str(found.value).partition(": use ")[2].split())))


@pytest.mark.parametrize(
    ("name", "value", "names"),
    [
        ("gpus", 0, r"\[1, 1e15\]; got 0"),
        ("n", 1, r"\[2, 1e15\]; got 1"),
        ("oversampling", math.inf, "finite"),
        ("gpu_memory_utilization", math.nan, "NaN"),
        ("live_share", math.nan, "NaN"),
        ("micro_batch_tokens", 10**400, r"float64; got 10+\.\.\.0+$"),
        ("micro_batch_tokens", 10**16, r"\[1, 1e15\]"),
        ("oversampling", 0.5, r"\[1, 1e15\]"),
        ("live_share", 0, r"\(0, 1\]"),
        ("live_share", 1.5, r"\(0, 1\]"),
        ("gpu_memory_utilization", 1.5, r"\(0, 1\]"),
        ("mean_response_length", -1, r"\[1, 1e15\]"),
        ("staleness", -1, r"\[0, 1e15\]; got -1"),
        ("zero_stage", 4, r"\[0, 3\]"),
        ("stats", "stale", "rollout, fresh; got 'stale'"),
    ],
)
def test_values_that_cannot_be(name, value, names):
    with pytest.raises(ValueError, match=f"{name} .*{names}"):
        replace(STEER, **{name: value})


@given(
    prompts=st.sampled_from([64, 96, 100, 512]),
    n=st.integers(2, 16),
    mini=st.integers(1, 96),
    gpus=st.sampled_from([1, 2, 4, 5, 8, 24, 64]),
    tensor=st.sampled_from([1, 1, 2, 4]),
    colocated=st.booleans(),
)
def test_the_fixes_of_a_division_divide(prompts, n, mini, gpus, tensor, colocated):
    config = replace(STEER, prompts=prompts, n=n, mini_batch_size=mini, gpus=gpus, colocated=colocated)
    config = replace(config, tensor_model_parallel_size=tensor)
    try:
        layout = lay_out(config)
    except ValueError as error:
        words = str(error)
    else:
        assert layout.sequences_per_rank * layout.ranks * layout.updates == layout.sequences
        assert mini * n % layout.ranks == 0, "the trainer's rule"
        return
    if "must divide prompts" in words or "must be a multiple of" in words:
        fixes = re.split(", | or ", words.partition(": use ")[2])
        assert 1 <= len(fixes) <= 3
        for fix in fixes:
            lay_out(replace(config, **parse_settings(fix.split())))
