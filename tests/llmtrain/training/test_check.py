"""A mistake is told in one line before a model is built, warmed up or loaded."""

import json
from dataclasses import replace

import pytest
import torch

from entrostat.advantages import REGISTRY, advantage_needs, get_advantage, register
from llmtrain.cli import main
from llmtrain.commands.train import main as train
from llmtrain.settings.config import (
    DataConfig,
    EvalConfig,
    ModelConfig,
    ProfileConfig,
    RolloutConfig,
    TopologyConfig,
    TrainConfig,
)
from llmtrain.settings.presets import get_preset, read_config
from llmtrain.training.check import OF_VERDICTS, check, check_advantage, check_model, check_place, prompt_limit


def folder_of(path, **sizes) -> str:
    """A model folder, as far as its config.json."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "qwen2", **sizes}))
    return str(path)


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["--controller", "steer", "--set", "lambda_min=abc"], "steer: lambda_min .*'abc'"),
        (["--controller", "entropic", "--set", "tau=abc"], "entropic: tau .*'abc'"),
        (["--controller", "clip_higher", "--set", "eps_high=abc"], "clip_higher: eps_high "),
        (["--set", "k=[1"], r"k: '\[1'"),
        (["--advantage", "prime beta=0.1"], "prime .*prime.lr and prime.beta"),
        (["--advantage", "qae k=1"], r"k .*'qae' .*\(0, 1\); got 1"),
        (["--controller", "entropic", "--target", "linear(0.4, -0.1, 9)"], "entropic: target .*negative"),
        (["--controller", "entropic", "--target", "linear(0.4)"], r"target: 'linear\(0.4\)'"),
        (["--target", "0.4"], "'grpo' .*target.* adapo, adaptive_clip, "),
        (["--controller", "entropic", "--target", "0.4", "--set", "target=0.9"], "target .*twice.* controller_args"),
        (
            ["--controller", "entropic", "--target", "0.4", "--set", "entropic.target=0.9"],
            r"target of entropic .*twice.* entropic\.target",
        ),
        (
            ["--controller", "kl_ref", "--set", "reset_every=3", "--advantage", "prime"],
            "reset_every 3 .*advantage prime",
        ),
        (["--controller", "kl_ref", "--optim.reset-with-reference"], "reset_with_reference needs .*reset_every"),
        (
            [
                "--controller",
                "kl_ref",
                "--set",
                "reset_every=3",
                "--engine.name",
                "deepspeed",
                "--engine.zero-stage",
                "3",
            ],
            r"kl_ref\.reset_every 3 needs engine\.zero_stage 2 or lower",
        ),
        (["--optim.lr", "1e308"], r"optim\.lr .*\(0, 1\]; got 1e\+308"),
        (["--rollout.n", str(10**30)], r"rollout\.n .*\[1, 65536\]"),
        (["--rollout.n", "0"], r"rollout\.n .*\[1, 65536\]"),
        (["--rollout.n", "1"], "rollout.n must be at least 2 with advantage 'grpo', which is 0 in a group of 1"),
        (["--rollout.n", "linear(4,1,9)", "--advantage", "optimal_token"], "rollout.n .* 'optimal_token'"),
        (["--advantage", "remax", "--rollout.filter-groups"], "'remax' has a signal in groups whose rewards are equal"),
        (["--task.train-problems", str(10**30)], r"task\.train_problems .*\[1, 1000000\]"),
        (["--controller", "entropic", "--target", "100"], r"target 100 of entropic .*3\.045 nats"),
        (["--reward.function", "mine"], r"reward\.function 'mine' .*module:function"),
        (["--task.test-problems", "0"], r"task\.test_problems.* eval\.every"),
        (["--eval.settings", "stear"], r"eval\.settings 'stear'; .*steer"),
        (["--eval.max-new-tokens", "400"], r"400 .*eval\.max_new_tokens.* model\.max_position_embeddings 256"),
        (
            ["--checkpoint.keep-best", "eval/avg@8", "--eval.every", "15"],
            r"checkpoint\.keep_best eval/avg@8 .*save_every 20 .*eval\.every, not 15",
        ),
        (["--model.ref-path", "no/such"], r"model\.ref_path: .*no/such"),
        (["--model.path", "."], r"model\.path: \. .*config\.json"),
        (["--advantage", "psr", "--reward.overlong-buffer", "12"], "'psr' .*overlong"),
        (["--advantage", "nsr", "--reward.format", "boxed"], "'nsr' .*1 or 0"),
        (
            ["--rollout.max-new-tokens", "400"],
            r"12 characters.* rollout\.max_new_tokens 400 .*model\.max_position_embeddings 256",
        ),
        (["--profile.steps", "0", "160"], r"profile\.steps 160: .*0 to 159$"),
    ],
)
def test_what_is_told_before_a_warm_up(args, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=names) as found:
        check(read_config(["--preset", "countdown-cpu", *args], "t"))
    assert "\n" not in str(found.value)


def test_a_file_with_a_wrong_value_ends_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("optim: {betas: [0.9]}")
    assert main(["train", "--config", "c.yaml"]) == 2
    error = "llmtrain train: c.yaml: optim.betas[1] must be given; got (0.9,)"
    assert capsys.readouterr().err == f"error: {error}\n"


def test_what_may_be(tmp_path):
    config = get_preset("countdown-cpu")
    check(config)
    check(replace(config, task=replace(config.task, test_problems=0), eval=replace(config.eval, every=0)))
    check(replace(config, advantage="psr"))
    check(replace(config, profile=ProfileConfig(steps=(0, 159))))
    check(replace(config, rollout=replace(config.rollout, max_new_tokens=256 - 12)))


@pytest.mark.parametrize("key", ["path", "ref_path"])
def test_sequences_fit_a_model_from_a_folder(key, tmp_path):
    folder = folder_of(tmp_path / "model", max_position_embeddings=1280)
    preset, file = get_preset("math-cpu"), tmp_path / "questions.jsonl"
    file.write_text("")
    config = replace(
        preset,
        model=ModelConfig(**{key: folder}, max_position_embeddings=9999),
        data=replace(preset.data, train_files=(str(file),)),
        rollout=replace(preset.rollout, max_new_tokens=1600),
    )
    with pytest.raises(ValueError, match=rf"1024 .* 1600 .* 1280 .*model\.{key} {folder}"):
        check(config)
    check(replace(config, rollout=replace(config.rollout, max_new_tokens=256)))


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ({"max_position_embeddings": 30}, False),
        ({"text_config": {"max_position_embeddings": 30}}, False),
        ({"max_position_embeddings": 30, "rope_scaling": {"factor": 4.0}}, True),
        (
            {"max_position_embeddings": 30, "rope_scaling": {"factor": 2.0, "original_max_position_embeddings": 15}},
            False,
        ),
        ({}, True),
    ],
)
def test_positions_of_a_folder(sizes, fits, tmp_path):
    """Sequences of 12 + 24 tokens."""
    config = TrainConfig(model=ModelConfig(path=folder_of(tmp_path / "model", **sizes)))
    if fits:
        check(config)
    else:
        with pytest.raises(ValueError, match="exceed the 30 positions"):
            check(config)


@pytest.mark.parametrize("out", ["here", "runs/here"])
def test_a_folder_is_put_where_one_may_write(out, tmp_path, monkeypatch):
    check_place(tmp_path / out)
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path / out} in {tmp_path}; "):
        check_place(tmp_path / out)


def test_advantages_of_verdicts_are_those_that_refuse_other_rewards():
    reward, group = torch.tensor([0.5, 1.0]), torch.zeros(2, dtype=torch.long)
    refused = set()
    for name in REGISTRY:
        if not advantage_needs(name):
            try:
                get_advantage("pass_at_k k=2" if name == "pass_at_k" else name)(reward, group)
            except ValueError:
                refused.add(name)
    assert refused == OF_VERDICTS


def test_an_advantage_without_its_input_is_refused_by_name(monkeypatch):
    monkeypatch.delitem(REGISTRY, "of_hidden_states", raising=False)
    register("of_hidden_states", source="here", needs=("layer", "hidden"))(lambda reward, group_id, **told: reward)
    try:
        with pytest.raises(ValueError, match=r"^advantage 'of_hidden_states' needs hidden, layer; llmtrain has none$"):
            check_advantage(TrainConfig(advantage="of_hidden_states"))
    finally:
        del REGISTRY["of_hidden_states"]
    for name in REGISTRY:
        check_advantage(TrainConfig(advantage="pass_at_k k=2" if name == "pass_at_k" else name))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"topology": TopologyConfig(name="ray", staleness=1)}, "topology.staleness"),
        ({"rollout": RolloutConfig(partial_tokens=8)}, "rollout.partial_tokens"),
    ],
)
def test_a_greedy_response_is_of_its_step(changes, named):
    with pytest.raises(ValueError, match=f"^advantage 'remax' needs a greedy response in each step: leave out {named}"):
        check_advantage(TrainConfig(advantage="remax", **changes))


def test_prompts_are_as_long_as_the_model_can_hold_unless_a_length_is_set(tmp_path):
    files = DataConfig(train_files=("a.jsonl",))
    small = TrainConfig(data=files, rollout=RolloutConfig(max_new_tokens=24), eval=EvalConfig(every=0))
    assert prompt_limit(small) == 256 - 24
    check_model(small)
    folder = folder_of(tmp_path / "long", max_position_embeddings=8192)
    assert prompt_limit(replace(small, model=ModelConfig(path=folder))) == 1024
    short = folder_of(tmp_path / "short", max_position_embeddings=100)
    assert prompt_limit(replace(small, model=ModelConfig(path=folder, ref_path=short))) == 76
    evaluated = replace(small, eval=EvalConfig(every=1, max_new_tokens=56))
    assert prompt_limit(evaluated) == 200
    set_ = replace(small, data=replace(files, max_prompt_length=240))
    assert prompt_limit(set_) == 240
    with pytest.raises(ValueError, match=r"data\.max_prompt_length 240 .*rollout\.max_new_tokens 24 "):
        check_model(set_)


def test_contradictions_and_all_other_complaints_are_one_message(small, tmp_path):
    """They come from sections, from the whole and from checks that look at files; flags may mend what a file says."""
    file = tmp_path / "c.yaml"
    file.write_text("rollout: {prompts: 6, top_p: 0.9}\noptim: {mini_batch_size: 4, min_lr_ratio: 0.1}\neval: {k: 9}\n")
    args = ["--config", str(file), "--model.path", str(tmp_path), "--eval.k", "2", "--rollout.prompts", "10"]
    flags = "--engine.zero-stage 3 --engine.offload-param --guard.entropy-above 1 --guard.entropy-below 2"
    with pytest.raises(ValueError, match=r"^6 settings cannot work:") as found:
        train([*args, *flags.split()])
    lines = str(found.value).splitlines()[1:]
    for start in (
        "- rollout.top_p must be 1",
        "- optim.min_lr_ratio needs optim.lr_schedule",
        "- engine.offload_param needs engine.name deepspeed",
        "- optim.mini_batch_size 4 must divide rollout.prompts 10",
        f"- model.path: {tmp_path} is not a model folder",
        "- guard.entropy_above 1 must exceed guard.entropy_below 2",
    ):
        assert len([line for line in lines if line.startswith(start)]) == 1, start
