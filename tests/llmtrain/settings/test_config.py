from operator import attrgetter

import pytest

from entrostat.settings.field_types import merge
from entrostat.settings.plain_yaml import dump_yaml, load_yaml, parse_yaml
from llmtrain.settings.config import DataConfig, RewardConfig, TaskConfig, TopologyConfig, TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.settings.presets import PRESETS, get_preset, read_config


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_a_round_trip_through_yaml(name):
    config = get_preset(name)
    assert merge(TrainConfig(), parse_yaml(dump_yaml(to_dict(config)))) == config


def test_order_of_precedence(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("steps: 7\noptim:\n  lr: 1e-4\n")
    config = read_config(["--preset", "countdown-cpu", "--config", str(file), "--steps", "9", "--set", "tau=0"], "t")
    assert config.out == get_preset("countdown-cpu").out
    assert config.steps == 9
    assert config.optim.lr == 1e-4
    assert config.optim.betas == get_preset("countdown-cpu").optim.betas
    assert config.controller_args == {"tau": 0}


def test_a_file_without_settings_is_refused(tmp_path):
    (tmp_path / "c.yaml").write_text("# steps: 7\n")
    with pytest.raises(ValueError, match=r"^t: .*c\.yaml .*--config"):
        read_config(["--config", str(tmp_path / "c.yaml")], "t")


def test_the_command_line_of_the_readme():
    args = ["--preset", "countdown-cpu", "--controller", "entropic", "--target", "0.4"]
    config = read_config(args, "t")
    assert (config.controller, config.target) == ("entropic", 0.4)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("stepz: 3", r"stepz; .*steps\?"),
        ("optim:\n  learning_rate: 3", r"optim\.learning_rate; .*lr"),
        ("optim:\n  filter_groups: true", r"optim\.filter_groups: .*rollout\.filter_groups\?"),
        ("lr: 3", r"lr: .*sft\.lr or prime\.lr or optim\.lr\?"),
        ("optim: 3", "optim .*mapping.* 3"),
        ("steps: many", "steps .*integer; got 'many'"),
        ("steps: true", "steps .*integer; got True"),
        ("overwrite: 1", "overwrite .*true or false; got 1"),
        ("optim:\n  lr: fast", r"optim\.lr .*number; got 'fast'"),
        ("optim:\n  lr: true", r"optim\.lr .*number; got True"),
        ("optim:\n  betas: [0.9]", r"optim\.betas\[1\] .*got \(0.9,\)"),
        ("optim:\n  betas: 3", r"optim\.betas .*list; got 3"),
        ("data:\n  train_files: x.parquet", r"data\.train_files .*list; got 'x.parquet'"),
        ("rollout:\n  stop_token_ids: [a]", r"rollout\.stop_token_ids\[0\] .*integer; got 'a'"),
        ("profile:\n  steps: 3", r"profile\.steps .*list; got 3"),
        ("model:\n  path: 3", r"model\.path .*text; got 3"),
        ("optim:\n  lr: .nan", r"optim\.lr .*NaN"),
        ("optim:\n  betas: [0.9, .inf]", r"optim\.betas .*finite; got \[0.9, inf\]"),
        ("optim:\n  stats: old", r"optim\.stats .*fresh, rollout; got 'old'"),
        ("reward:\n  format: null", r"reward\.format .*'boxed' or 'tags'; got None"),
        ("target: abc", "target .*number or a schedule; got 'abc'"),
        ("controller_args: [k]", r"controller_args .*mapping.* \('k',\)"),
        ("a: [", "YAML"),
        ("- 1", "mapping"),
    ],
)
def test_bad_files(tmp_path, content, names):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    with pytest.raises(ValueError, match=names):
        merge(TrainConfig(), load_yaml(file))
    with pytest.raises(ValueError, match=rf"c.yaml.*{names}"):
        read_config(["--config", str(file)], "t")


@pytest.mark.parametrize(
    ("content", "key", "value"),
    [
        ("target: 4e-1", "target", 0.4),
        ("target:", "target", None),
        ("optim: {betas: [0, 9e-1]}", "optim.betas", (0.0, 0.9)),
        ("optim: {lr: 1}", "optim.lr", 1.0),
        ("model: {path: here}", "model.path", "here"),
        ("data: {train_files: [a, b]}", "data.train_files", ("a", "b")),
        ("rollout: {stop_token_ids: []}", "rollout.stop_token_ids", ()),
        ("controller_args: {k: 1}", "controller_args", {"k": 1}),
    ],
)
def test_values_of_a_file_become_those_of_the_types(content, key, value):
    found = attrgetter(key)(merge(TrainConfig(), parse_yaml(content)))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("flag", "value", "names"),
    [
        ("steps", "0", r"\[1, 100000000\]; got 0"),
        ("rollout.n", "0", r"\[1, 65536\]"),
        ("optim.mini_batch_size", "5", "5 .*rollout.prompts 32"),
        ("eval.samples", "4", "4 .*eval.k 8"),
        ("rollout.temperature", "0", "positive"),
        ("eval.k", "0", "at least 1; got 0"),
        ("eval.samples", "0", r"\[1, 65536\]; got 0"),
        ("sft.batch_size", "0", "at least 1; got 0"),
        ("sft.wrong_share", "1.5", r"\[0, 1\]; got 1.5"),
        ("model.num_layers", "0", r"\[1, 1024\]; got 0"),
        ("model.lora_alpha", "nan", "NaN"),
        ("model.num_heads", "3", "3 .*model.hidden_size 128 .*even"),
        ("model.num_heads", "128", "128 .*model.hidden_size 128 .*even"),
        ("task.test_problems", "-1", r"\[0, 1000000\]; got -1"),
        ("optim.max_grad_norm", "-1", "negative; got -1"),
        ("optim.max_grad_norm", "nan", "NaN"),
        ("optim.warmup_steps", "-1", "negative; got -1"),
        ("optim.weight_decay", "-1", "negative; got -1"),
        ("optim.betas", "0.9 1.0", r"\[0, 1\); got \(0.9, 1.0\)"),
        ("optim.betas", "-0.1 0.9", r"\[0, 1\)"),
        ("optim.lr", "inf", "finite; got inf"),
        ("optim.stats", "old", "fresh, rollout; got 'old'"),
        ("reward.format", "html", "boxed, tags; got 'html'"),
        ("engine.zero_stage", "4", r"\[0, 3\]; got 4"),
        ("rollout.max_gen_batches", "0", "at least 1; got 0"),
        ("rollout.gpu_memory_utilization", "50", r"\(0, 1\]; got 50"),
        ("topology.placement", "apart", "colocated, disaggregated; got 'apart'"),
        ("rollout.n", "linear(4,0,9)", r"whole numbers in \[1, 65536\], not 0"),
        ("rollout.n", "piecewise(0:4,5:4.5)", "whole numbers .*not 4.5"),
        ("rollout.n", "0.5x", "whole numbers .*not 0.5x"),
        ("rollout.n", "few", "'few' is no schedule"),
        ("data.curriculum_floor", "0", r"\(0, 1\]"),
        ("sft.gem_beta", "1.5", r"\(0, 1\]"),
        ("topology.restarts", "-1", "negative; got -1"),
        ("out", "", "empty"),
        ("seed", "99999999999999999999", r"\[0, 4294967295\]; got 99999999999999999999"),
        ("topology.rollout_engines", "2", "topology.name ray"),
        ("topology.placement", "disaggregated", "topology.name ray"),
        ("topology.elastic_engines", "1", "topology.name ray"),
        ("reward.length_weight", "nan", "NaN"),
        ("prime.beta", "0", "positive; got 0"),
        ("target", "nan", "NaN"),
    ],
)
def test_values_that_cannot_be(flag, value, names):
    with pytest.raises(ValueError, match=f"^t: .*{flag} .*{names}"):
        read_config([f"--{flag.replace('_', '-')}", *(value.split() or [""])], "t")


def test_a_tilde_in_a_file_is_the_home_folder(tmp_path, monkeypatch):
    """No shell has replaced it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "c.yaml").write_text("out: ~/run\nmodel: {path: ~/model}\ndata: {train_files: [~/a.jsonl, b~/c]}\n")
    config = read_config(["--config", str(tmp_path / "c.yaml")], "llmtrain train")
    assert (config.out, config.model.path) == (f"{tmp_path}/run", f"{tmp_path}/model")
    assert config.data.train_files == (f"{tmp_path}/a.jsonl", "b~/c")


CURRICULA = {
    r"raise task\.train_problems 31": {"task": TaskConfig(train_problems=31)},
    r"leave out data\.weights": {"data": {"weights": {"easy": 2.0}}},
    r"reward\.verdict_weight 0": {"reward": RewardConfig(verdict_weight=0.0, format="boxed")},
    r"topology\.staleness": {"topology": TopologyConfig(name="ray", staleness=1)},
}


@pytest.mark.parametrize("said", CURRICULA)
def test_curricula_that_cannot_be_drawn_are_refused(said):
    changes = dict(CURRICULA[said])
    with pytest.raises(ValueError, match=said):
        TrainConfig(data=DataConfig(curriculum=True, **changes.pop("data", {})), **changes)
    TrainConfig(data=DataConfig(curriculum=True), task=TaskConfig(train_problems=32))
