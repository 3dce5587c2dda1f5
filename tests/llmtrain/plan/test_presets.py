import pytest

from llmtrain.config import TrainConfig
from llmtrain.nested import merge
from llmtrain.plan.cost import make_plan
from llmtrain.plan.presets import PRESETS, get_preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_run_and_names_its_source(name):
    preset = PRESETS[name]
    plan = make_plan(preset.config)
    assert plan.memory.kv_tokens >= plan.layout.longest_sequence
    assert name.endswith(f"-{preset.config.gpus}gpu")
    assert preset.source.startswith(("STEER", "EntroPIC", "Entropy Mechanism"))


@pytest.mark.parametrize("name", PRESETS)
def test_its_other_settings_are_the_trainers(name):
    nested: dict = {}
    for key, value in PRESETS[name].trainer.items():
        section, dot, leaf = key.rpartition(".")
        if dot:
            nested.setdefault(section, {})[leaf] = value
        else:
            nested[key] = value
    config = merge(TrainConfig(), nested)
    from llmtrain.check import make_controller

    make_controller(config)


def test_what_is_learnt_does_not_depend_on_the_gpus():
    keys = ("model", "prompts", "n", "mini_batch_size", "steps", "max_prompt_length", "max_response_length")
    for recipe in {name.rpartition("-")[0] for name in PRESETS}:
        same = {tuple(getattr(PRESETS[f"{recipe}-{g}gpu"].config, key) for key in keys) for g in (1, 8, 64)}
        assert len(same) == 1


def test_the_published_8b_run():
    config = get_preset("qwen3-8b-64gpu").config
    assert (config.gpus, config.gpu, config.steps) == (64, "h20", 2000)
    assert (config.prompts, config.n) == (512, 8)
    assert (config.max_prompt_length, config.max_response_length) == (2048, 8192)


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"unknown preset 'gpt'; choose from qwen2\.5-math-7b-1gpu"):
        get_preset("gpt")
