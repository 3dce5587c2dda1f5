"""Rules and tasks of a user's own are called before a model is loaded; what they raise is told with its place."""

from dataclasses import replace

import pytest

from entrostat import make
from entrostat.logs.runlog import read_metrics
from llmtrain.settings.config import RewardConfig, TaskConfig
from llmtrain.tasks import get_task
from llmtrain.training.check import check
from llmtrain.training.trainer import Trainer

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
class Far(Right):
    def transform(self, plan, context):
        return plan.reweight(context.tokens.ref_logp.exp())


@dataclass(eq=False)
class Metrics(Right):
    def metrics(self):
        return {"mine": {}["x"]}


@dataclass(eq=False)
class Fresh(Controller):
    def transform(self, plan, context):
        tokens = context.tokens
        gap = (tokens.logp - tokens.old_logp).abs().mean()
        return plan.reweight(1 + tokens.logp.exp(), gap=gap)


@dataclass(eq=False)
class Twin(Fresh):
    needs = frozenset({"logp", "old_logp"})


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
def own(small, tmp_path, monkeypatch, own_controllers):
    (tmp_path / "own_rules.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "own_rules", raising=False)
    return small


def test_rules_that_work_are_no_complaint(own):
    check(replace(own, controller="grpo+own_rules:Right", advantage="own_rules:advantage"))
    check(replace(own, controller="grpo+own_rules:Far"))
    assert "ref_logp" in make("grpo+own_rules:Far").needs  # so the run has a reference policy


def test_a_rule_gets_what_it_reads_without_naming_it(own, tmp_path):
    """log π of the policy as it is in the second update, as its twin that names it does."""
    found = {}
    for rule in ("Fresh", "Twin"):
        config = replace(own, controller=f"grpo+own_rules:{rule}", steps=2, out=str(tmp_path / rule))
        config = replace(config, reward=RewardConfig(length_weight=1.0), optim=replace(own.optim, lr=0.01))
        Trainer(config, config.model.path).run()
        found[rule] = [line for line in read_metrics(config.out) if "loss" in line]
    for a, b in zip(found["Fresh"], found["Twin"], strict=True):
        assert a["gap"] == b["gap"] > 1e-4
        assert a["grad_norm"] == b["grad_norm"]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"controller": "grpo+own_rules:Typo"}, r"'typo' .*'gain' \(own_rules.py, line 16, in transform\)$"),
        (
            {"controller": "grpo+own_rules:Metrics"},
            r"'grpo\+own_rules:Metrics' .*'x' \(own_rules.py, line 28, in metrics\)$",
        ),
        ({"advantage": "own_rules:short"}, r"'own_rules:short' .*TypeError: short\(\)"),
        (
            {"task": TaskConfig(name="own_rules:folder")},
            r"'own_rules:folder' .*FileNotFound.* \(own_rules.py, line 53, in folder\)$",
        ),
        (
            {"task": TaskConfig(name="own_rules:deep")},
            r"'own_rules:deep' .*RuntimeError.* \(own_rules.py, line 59, in deep\)$",
        ),
    ],
)
def test_what_is_ones_own_and_raises_is_told_before_anything_starts(changes, names, own):
    with pytest.raises(ValueError, match=names):
        (get_task if "task" in changes else check)(replace(own, **changes))
