import json
from dataclasses import replace
from pathlib import Path

import pytest

from entrostat.settings.field_types import merge
from llmtrain.plan.cost import make_plan
from llmtrain.plan.fixes import fits
from llmtrain.plan.handover import train_settings
from llmtrain.plan.plan_presets import PRESETS, Preset, get_preset
from llmtrain.settings.config import TrainConfig
from llmtrain.training.check import check


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_run_and_names_its_source(name):
    preset = PRESETS[name]
    plan = make_plan(preset.config)
    assert plan.memory.kv_tokens >= plan.layout.longest_sequence
    assert name.endswith(f"-{preset.config.gpus}gpu")
    assert preset.source.startswith(("STEER", "EntroPIC", "The Entropy Mechanism"))


def as_trained(preset: Preset, folder: Path) -> TrainConfig:
    """Return the run of a preset, with a model and a question file."""
    plan = make_plan(preset.config)
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": plan.layout.model.max_positions}))
    (folder / "questions.jsonl").touch()
    missing = {"model": {"path": str(folder)}, "data": {"train_files": [str(folder / "questions.jsonl")]}}
    return merge(merge(TrainConfig(), train_settings(plan, preset)), missing)


@pytest.mark.parametrize("name", PRESETS)
def test_the_trainer_takes_every_preset(name, tmp_path, monkeypatch):
    for module in ("llmtrain.training.check", "llmtrain.rollout.ray.places"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: name)  # as if all were installed
    monkeypatch.setattr("llmtrain.training.check.check_device", lambda *args, **options: None)  # and there were GPUs
    check(as_trained(PRESETS[name], tmp_path))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_trained_as_it_was_planned(name, tmp_path):
    preset = PRESETS[name]
    config, run = preset.config, as_trained(preset, tmp_path)
    local = run.topology.name == "local"
    assert local == (config.gpus <= 8 and config.colocated and config.tensor_model_parallel_size == 1)
    engines = run.nproc if local else run.topology.rollout_engines * run.rollout.tensor_parallel_size
    assert config.gpus == (run.nproc if config.colocated else run.nproc + run.engine_gpus)
    assert engines == config.gpus if config.colocated else engines == run.engine_gpus
    assert (run.rollout.prompts, run.rollout.n, run.optim.mini_batch_size) == (
        config.prompts,
        config.n,
        config.mini_batch_size,
    )
    assert run.rollout.max_model_len == config.max_prompt_length + config.max_response_length
    assert run.topology.address == ("auto" if config.gpus == 64 else "")
    assert local or run.topology.weight_sync == ("ipc" if config.colocated else "nccl")
    if name.startswith("qwen3-8b"):  # what EntroPIC publishes
        assert (run.optim.lr, run.rollout.temperature, run.controller, run.target) == (
            1e-6,
            0.6,
            "entropic",
            0.1,
        )


@pytest.mark.parametrize("name", PRESETS)
def test_groups_are_filtered_where_the_paper_says_so(name):
    """Entropy Mechanism, F.2, filters; STEER, D.2, and EntroPIC, B.1, do not."""
    preset = PRESETS[name]
    filters = name.startswith("qwen2.5-32b")
    assert preset.trainer["rollout.filter_groups"] == filters
    assert preset.config.oversampling == (3 if filters else 1)
    assert preset.config.live_share == 1


def test_64_gpus_that_sample_and_train_in_turns_beat_halves():
    for name in ("qwen2.5-math-7b-64gpu", "qwen2.5-32b-64gpu"):
        config = PRESETS[name].config
        apart = (replace(config, colocated=False, rollout_gpus=64 - ranks) for ranks in (8, 16, 32))
        assert all(make_plan(config).seconds < make_plan(other).seconds for other in apart if fits(other))


def test_what_is_learnt_does_not_depend_on_the_gpus():
    keys = (
        "model",
        "prompts",
        "n",
        "mini_batch_size",
        "steps",
        "max_prompt_length",
        "max_response_length",
        "staleness",
    )
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
