"""Rules and tasks of a user's own are called before a model is loaded; what they raise is told with its place."""

from dataclasses import replace

import pytest

from llmtrain.settings.config import TaskConfig
from llmtrain.tasks import get_task
from llmtrain.training.check import check

RULES = """
from dataclasses import dataclass

from entrostat import Controller


@dataclass(eq=False)
class Right(Controller):
    def transform(self, plan, context):
        return plan.reweight(1 - context.tokens.old_logp.exp())


@dataclass(eq=False)
class Typo(Right):
    def transform(self, plan, context):
        return plan.reweight(self.gain)


@dataclass(eq=False)
class Missing(Right):
    def transform(self, plan, context):
        return plan.reweight(context.tokens.ref_logp.exp())


@dataclass(eq=False)
class Metrics(Right):
    def metrics(self):
        return {"mine": {}["x"]}


def advantage(reward, group_id):
    return reward - reward.mean()


def short(reward):
    return reward


def folder(config):
    return open("/no/such/file")


def deep(config):
    import torch

    return torch.zeros(2) @ torch.zeros(3)
"""


@pytest.fixture
def own(small, tmp_path, monkeypatch):
    (tmp_path / "own_rules.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "own_rules", raising=False)
    return small


def test_rules_that_work_are_no_complaint(own):
    check(replace(own, controller="grpo+own_rules:Right", advantage="own_rules:advantage"))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Typo", r"AttributeError: 'Typo' object has no attribute 'gain' \(own_rules.py, line 16, in transform\)"),
        (
            "Missing",
            r"AttributeError: 'NoneType' object has no attribute 'exp' \(own_rules.py, line 22, in transform\)",
        ),
        ("Metrics", r"KeyError: 'x' \(own_rules.py, line 28, in metrics\)"),
    ],
)
def test_a_controller_of_ones_own_that_raises_is_told_before_anything_starts(rule, said, own):
    with pytest.raises(ValueError, match=rf"^controller 'grpo\+own_rules:{rule}' fails on a few tokens: {said}$"):
        check(replace(own, controller=f"grpo+own_rules:{rule}"))


def test_an_advantage_of_ones_own(own):
    said = r"^advantage 'own_rules:short' fails on a few tokens: TypeError: short\(\) takes 1 positional argument"
    with pytest.raises(ValueError, match=said):
        check(replace(own, advantage="own_rules:short"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", r"FileNotFoundError: .* \(own_rules.py, line 40, in folder\)"),
        ("deep", r"RuntimeError: .* \(own_rules.py, line 46, in deep\)"),
    ],
)
def test_a_task_of_ones_own(name, said, own):
    with pytest.raises(ValueError, match=rf"^task 'own_rules:{name}' fails: {said}$"):
        get_task(replace(own, task=TaskConfig(name=f"own_rules:{name}")))
