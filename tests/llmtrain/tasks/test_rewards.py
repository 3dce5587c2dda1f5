"""Reward terms, calculated by hand."""

from dataclasses import replace

import pytest
import torch

from llmtrain.settings.config import RewardConfig, TrainConfig
from llmtrain.tasks.rewards import NAMES, brief, overlong, terms, used


def test_by_hand():
    lengths = torch.tensor([1, 12, 14, 16, 20, 21])
    penalty = overlong(lengths, 20, RewardConfig(overlong_buffer=8, overlong_penalty=0.5))
    assert penalty.tolist() == [0, 0, 0.125, 0.25, 0.5, 0.5]


def test_none_by_default():
    assert overlong(torch.tensor([3, 20]), 20, RewardConfig()).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("setting", "value", "names"),
    [("overlong_penalty", -1, "-1"), ("format", "box", "boxed, tags; got 'box'"), ("overlong_buffer", 100, "exceed")],
)
def test_a_refusal_names_the_setting(setting, value, names):
    with pytest.raises(ValueError, match=rf"reward\.{setting} .*{names}"):
        TrainConfig(reward=RewardConfig(**{setting: value}))


def test_brevity_by_hand():
    """Groups of three, each from shortest to longest; wrong responses gain nothing."""
    lengths = torch.tensor([10, 20, 15, 7, 7, 7, 4, 4, 3])
    correct = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    assert brief(lengths, correct, 3).tolist() == [0.5, -0.5, 0.0, 0.0, 0.0, 0.0, -0.5, -0.5, 0.5]
    assert brief(lengths, 1 - correct, 3).tolist() == [0.0, -0.5, 0.0, 0.0, 0.0, 0.0, -0.5, -0.5, 0.0]


@pytest.mark.parametrize(
    ("text", "boxed", "tags"),
    [
        ("so \\boxed{4}", 1, 0),
        ("so \\boxed{4", 0, 0),
        ("<think>a</think> <answer>\\boxed{4}</answer>\n", 1, 1),
        ("<think>a</think><answer>4</answer> and more", 0, 0),
        ("so <think>a</think><answer>4</answer>", 0, 0),
        ("<think>a</think> so <answer>4</answer>", 0, 0),
        ("<answer>4</answer><think>a</think>", 0, 0),
        ("<think>a</think><answer>4</answer><answer>5</answer>", 0, 0),
        ("<think><think>a</think><answer>4</answer>", 0, 0),
        ("", 0, 0),
    ],
)
def test_forms(text, boxed, tags):
    for form, wanted in (("boxed", boxed), ("tags", tags)):
        config = RewardConfig(format=form, format_weight=0.25)
        found = terms([text], torch.tensor([3]), torch.zeros(1), 1, 20, config)
        assert found.tolist() == [[0.25 * wanted], [0], [0], [0]]


def test_terms_lie_beside_one_another():
    config = RewardConfig(format="boxed", format_weight=0.1, length_weight=0.2, overlong_buffer=10)
    own = {"config": replace(config, function="my:own", function_weight=0.5), "scores": torch.tensor([2.0, -1.0])}
    found = terms(["\\boxed{1}", "2"], torch.tensor([5, 15]), torch.tensor([1.0, 1.0]), 2, 20, **own)
    torch.testing.assert_close(found, torch.tensor([[0.1, 0.0], [0.1, -0.1], [0.0, -0.5], [1.0, -0.5]]))
    assert dict(zip(NAMES, used(config), strict=True)) == {
        "format": True,
        "length": True,
        "overlong": True,
        "function": False,
    }
    assert not any(used(RewardConfig()))
    assert not terms(["\\boxed{1}", "2"], torch.tensor([5, 15]), torch.ones(2), 2, 20, RewardConfig()).any()


def test_a_form_takes_time_linear_in_the_response():
    """A million unclosed tags and a million boxes are checked within the test's time limit."""
    for text in ("<think>" * 300_000, "<think></think><answer>" * 100_000, "\\boxed{" * 300_000):
        config = RewardConfig(format="tags" if text[0] == "<" else "boxed")
        assert terms([text], torch.tensor([3]), torch.zeros(1), 1, 20, config)[0, 0] == 0
