"""All complaints about settings at once, in the reader's own words."""

import pytest

from llmtrain.settings.complaints import raise_all
from llmtrain.settings.config import TrainConfig
from llmtrain.settings.presets import SYNONYMS, read_config
from llmtrain.training.check import check


def test_one_is_a_line_and_several_are_a_list():
    raise_all([])
    for complaints, told in ((["lr", "lr"], r"^lr$"), (["lr", "steps", "lr"], r"^2 .*:\n- lr\n- steps$")):
        with pytest.raises(ValueError, match=told):
            raise_all(complaints)


def test_contradictions_are_told_together():
    with pytest.raises(
        ValueError, match=r"(?s)2 settings .*\n- optim\.mini_batch_size 16 .* 4\n- eval\.samples 8 .* 90"
    ):
        read_config(["--rollout.prompts", "4", "--eval.k", "90"], "llmtrain train")


def test_what_the_checks_find_is_told_together():
    config = TrainConfig(advantage="nope", controller="none_such", nproc=2)
    with pytest.raises(ValueError, match="3 settings") as told:
        check(config)
    for line, name in zip(str(told.value).splitlines()[1:], ("'none_such'", "'nope'", "torch engine"), strict=True):
        assert name in line


@pytest.mark.parametrize(
    ("flag", "ours"),
    [
        ("--num-generations", "--rollout.n"),
        ("--rollout.group-size", "--rollout.n"),
        ("--batch_size", "--rollout.prompts"),
        ("--max-completion-length", "--rollout.max_new_tokens"),
        ("--algorithm.kl_coef", "--controller kl_ref with --set beta=0.05"),
        ("--learning-rate", "--optim.lr"),
        ("--model.model-name-or-path", "--model.path"),
    ],
)
def test_names_of_other_trainers_are_known(flag, ours):
    with pytest.raises(ValueError, match="unknown option") as told:
        read_config([flag, "8"], "llmtrain train")
    assert str(told.value).endswith(f"here it is {ours}")


def test_each_synonym_names_a_setting():
    for ours in set(SYNONYMS.values()):
        value = TrainConfig()
        key, _, setting = ours.partition(" with --set ")
        if setting:
            name, _, number = setting.partition("=")
            check(TrainConfig(controller=key.removeprefix("controller "), controller_args={name: float(number)}))
            continue
        for part in key.split("."):
            value = getattr(value, part)
