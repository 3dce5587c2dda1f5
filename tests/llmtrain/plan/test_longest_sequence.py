"""The longest sequence fits, and one a step longer does not."""

from dataclasses import replace

import pytest
from benchmarks.pages.longest_sequence import STEP, longest_sequence
from benchmarks.pages.plan import LONG_RUNS

from llmtrain.plan.cost import make_plan
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.plan_presets import get_preset

CONFIG = PlanConfig(gpus=8, gpu="h100", zero_stage=3)


def planned(tokens: int):
    lengths = {"max_response_length": tokens, "mean_response_length": tokens // 4, "max_positions": 1 << 22}
    return make_plan(replace(CONFIG, **lengths, micro_batch_tokens=tokens + CONFIG.max_prompt_length))


def test_one_step_more_does_not_fit():
    longest = longest_sequence(CONFIG)
    planned(longest)
    with pytest.raises(ValueError, match="in training and an h100 has"):
        planned(longest + STEP)


def test_none_fits_where_the_weights_do_not():
    assert longest_sequence(replace(get_preset("qwen2.5-32b-64gpu").config, gpu="h100", zero_stage=2)) == 0


@pytest.mark.parametrize("name", LONG_RUNS)
def test_what_the_page_says_of_32k_tokens(name):
    assert longest_sequence(replace(get_preset(name).config, gpu="h100", zero_stage=3, oversampling=1.0)) > 32768
