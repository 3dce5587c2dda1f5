import pytest
import yaml

from llmtrain.cli import read_config
from llmtrain.config import TrainConfig
from llmtrain.nested import load_yaml, merge, to_dict
from llmtrain.presets import PRESETS, get_preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_a_round_trip_through_yaml(name):
    config = get_preset(name)
    assert merge(TrainConfig(), yaml.safe_load(yaml.safe_dump(to_dict(config)))) == config


def test_order_of_precedence(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("steps: 7\noptim:\n  lr: 1e-4\n")
    config = read_config(["--preset", "countdown-cpu", "--config", str(file), "--steps", "9", "--set", "tau=0"], "t")
    assert config.out == get_preset("countdown-cpu").out
    assert config.steps == 9
    assert config.optim.lr == 1e-4
    assert config.optim.betas == get_preset("countdown-cpu").optim.betas
    assert config.controller_args == {"tau": 0}


def test_the_command_line_of_the_readme():
    args = ["--preset", "countdown-cpu", "--controller", "entropic", "--target-entropy", "0.4"]
    config = read_config(args, "t")
    assert (config.controller, config.target_entropy) == ("entropic", 0.4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("stepz: 3", "unknown configuration key stepz; choose from .*steps"),
        ("optim:\n  learning_rate: 3", "unknown configuration key optim.learning_rate; choose from .*lr"),
        ("optim: 3", "optim must be a mapping of keys; got 3"),
        ("steps: many", "steps must be of type int; got 'many'"),
        ("optim:\n  lr: fast", "optim.lr must be a number; got 'fast'"),
        ("a: [", "is not YAML"),
        ("- 1", "configuration must be a mapping of keys"),
    ],
)
def test_bad_files(tmp_path, content, message):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        merge(TrainConfig(), load_yaml(file))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--steps", "0"], "steps must be positive; got 0"),
        (["--rollout.n", "1"], "rollout.n must be at least 2"),
        (["--optim.mini-batch-size", "5"], "optim.mini_batch_size 5 must divide rollout.prompts 32"),
        (["--eval.samples", "4"], "eval.samples 4 must not be below eval.k 8"),
        (["--rollout.temperature", "0"], "rollout.temperature must be positive"),
    ],
)
def test_values_that_cannot_be(args, message):
    with pytest.raises(ValueError, match=message):
        read_config(args, "t")
