from operator import attrgetter

import pytest

from entrostat.settings.field_types import merge
from entrostat.settings.plain_yaml import dump_yaml, load_yaml, parse_yaml
from llmtrain.settings.config import TrainConfig
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
    with pytest.raises(ValueError, match=r"^t: .*c.yaml holds no settings: leave --config out"):
        read_config(["--config", str(tmp_path / "c.yaml")], "t")


def test_the_command_line_of_the_readme():
    args = ["--preset", "countdown-cpu", "--controller", "entropic", "--target", "0.4"]
    config = read_config(args, "t")
    assert (config.controller, config.target) == ("entropic", 0.4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("stepz: 3", r"unknown key stepz; did you mean steps\?"),
        ("optim:\n  learning_rate: 3", "unknown key optim.learning_rate; choose from .*lr"),
        ("optim:\n  filter_groups: true", r"unknown key optim.filter_groups: did you mean rollout.filter_groups\?"),
        ("lr: 3", r"unknown key lr: did you mean sft.lr or prime.lr or optim.lr\?"),
        ("optim: 3", "optim must be a mapping of keys; got 3"),
        ("steps: many", "steps must be a valid integer; got 'many'"),
        ("steps: true", "steps must be a valid integer; got True"),
        ("overwrite: 1", "overwrite must be true or false; got 1"),
        ("optim:\n  lr: fast", "optim.lr must be a valid number; got 'fast'"),
        ("optim:\n  lr: true", "optim.lr must be a valid number; got True"),
        ("optim:\n  betas: [0.9]", r"optim.betas\[1\] must be given; got \(0.9,\)"),
        ("optim:\n  betas: 3", r"optim.betas must be a list; got 3"),
        ("data:\n  train_files: x.parquet", r"data.train_files must be a list; got 'x.parquet'"),
        ("rollout:\n  stop_token_ids: [a]", r"rollout.stop_token_ids\[0\] must be a valid integer; got 'a'"),
        ("profile:\n  steps: 3", r"profile.steps must be a list; got 3"),
        ("model:\n  path: 3", "model.path must be text; got 3"),
        ("optim:\n  lr: .nan", "optim.lr must be a number, not NaN; got nan"),
        ("optim:\n  betas: [0.9, .inf]", r"optim.betas must be finite; got \[0.9, inf\]"),
        ("optim:\n  stats: old", "optim.stats must be one of fresh, rollout; got 'old'"),
        ("reward:\n  format: null", "reward.format must be '', 'boxed' or 'tags'; got None"),
        ("target: abc", "target must be a number or a schedule; got 'abc'"),
        ("controller_args: [k]", r"controller_args must be a mapping of keys; got \('k',\)"),
        ("a: [", "is not plain YAML"),
        ("- 1", "configuration must be a mapping of keys"),
    ],
)
def test_bad_files(tmp_path, content, message):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        merge(TrainConfig(), load_yaml(file))
    with pytest.raises(ValueError, match=rf"c.yaml.*{message}"):
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
    ("args", "message"),
    [
        (["--steps", "0"], r"steps must lie in \[1, 100000000\]; got 0"),
        (["--rollout.n", "1"], r"rollout.n must lie in \[2, 65536\]"),
        (["--optim.mini-batch-size", "5"], "optim.mini_batch_size 5 must divide rollout.prompts 32"),
        (["--eval.samples", "4"], "eval.samples 4 must not be below eval.k 8"),
        (["--rollout.temperature", "0"], "rollout.temperature must be positive"),
        (["--eval.k", "0"], "eval.k must be at least 1; got 0"),
        (["--eval.samples", "0"], r"eval.samples must lie in \[1, 65536\]; got 0"),
        (["--sft.batch-size", "0"], "sft.batch_size must be at least 1; got 0"),
        (["--sft.wrong-share", "1.5"], r"sft.wrong_share must lie in \[0, 1\]; got 1.5"),
        (["--model.num-layers", "0"], r"model.num_layers must lie in \[1, 1024\]; got 0"),
        (["--model.lora-alpha", "nan"], "model.lora_alpha must be a number, not NaN; got nan"),
        (["--model.num-heads", "3"], "model.num_heads 3 must divide model.hidden_size 128 into heads of even width"),
        (["--model.num-heads", "128"], "model.num_heads 128 must divide model.hidden_size 128 into heads of even"),
        (["--task.test-problems", "-1"], r"task.test_problems must lie in \[0, 1000000\]; got -1"),
        (["--optim.max-grad-norm", "-1"], "optim.max_grad_norm must not be negative; got -1"),
        (["--optim.max-grad-norm", "nan"], "optim.max_grad_norm must be a number, not NaN; got nan"),
        (["--optim.warmup-steps", "-1"], "optim.warmup_steps must not be negative; got -1"),
        (["--optim.weight-decay", "-1"], "optim.weight_decay must not be negative; got -1"),
        (["--optim.betas", "0.9", "1.0"], r"optim.betas must lie in \[0, 1\); got \(0.9, 1.0\)"),
        (["--optim.betas", "-0.1", "0.9"], r"optim.betas must lie in \[0, 1\)"),
        (["--optim.lr", "inf"], "optim.lr must be finite; got inf"),
        (["--optim.stats", "old"], "optim.stats must be one of fresh, rollout; got 'old'"),
        (["--reward.format", "html"], "reward.format must be one of empty, boxed, tags; got 'html'"),
        (["--engine.zero-stage", "4"], r"engine.zero_stage must lie in \[0, 3\]; got 4"),
        (["--rollout.max-gen-batches", "0"], "rollout.max_gen_batches must be at least 1; got 0"),
        (["--rollout.gpu-memory-utilization", "50"], r"rollout.gpu_memory_utilization must lie in \(0, 1\]; got 50"),
        (["--topology.placement", "apart"], "topology.placement must be one of colocated, disaggregated; got 'apart'"),
        (["--topology.restarts", "-1"], "topology.restarts must not be negative; got -1"),
        (["--out", ""], "out is empty: name the folder of the run"),
        (["--seed", "99999999999999999999"], r"seed must lie in \[0, 4294967295\]; got 99999999999999999999"),
        (["--topology.rollout-engines", "2"], ".*topology.rollout_engines needs topology.name ray"),
        (["--topology.placement", "disaggregated"], ".*topology.placement needs topology.name ray"),
        (["--topology.elastic-engines", "1"], ".*topology.elastic_engines needs topology.name ray"),
        (["--reward.length-weight", "nan"], "reward.length_weight must be a number, not NaN"),
        (["--prime.beta", "0"], "prime.beta must be positive; got 0"),
        (["--target", "nan"], "target must be a number, not NaN; got nan"),
    ],
)
def test_values_that_cannot_be(args, message):
    with pytest.raises(ValueError, match=f"^t: (--)?{message}"):
        read_config(args, "t")


def test_a_tilde_in_a_file_is_the_home_folder(tmp_path, monkeypatch):
    """No shell has replaced it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "c.yaml").write_text("out: ~/run\nmodel: {path: ~/model}\ndata: {train_files: [~/a.jsonl, b~/c]}\n")
    config = read_config(["--config", str(tmp_path / "c.yaml")], "llmtrain train")
    assert (config.out, config.model.path) == (f"{tmp_path}/run", f"{tmp_path}/model")
    assert config.data.train_files == (f"{tmp_path}/a.jsonl", "b~/c")
