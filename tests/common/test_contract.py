"""Rules that break the contract of controllers are refused in one line that names them, when they are built or plan."""

import sys

import pytest

import entrostat as es
from entrostat.about.check_controller import CHECKS
from entrostat.sample_batch import ragged_batch

HEAD = """
import threading
from dataclasses import dataclass, replace
import torch
import entrostat as es
"""
REFUSED = {
    "class Plain(es.Controller):\n    target: float = 0.5": r"is no dataclass: write @dataclass\(kw_only",
    "class Plain(es.Controller): ...": "is no dataclass",
    """@dataclass
class Spelled(es.Controller):
    needs = frozenset({"logprob"})""": "controller 'spelled' needs logprob, which is no field of Tokens; these",
    """@dataclass
class Nothing(es.Controller):
    def transform(self, plan, context):
        plan.reweight(1 + context.tokens.entropy)""": "'nothing': transform returned a NoneType instead",
    """@dataclass
class Short(es.Controller):
    def transform(self, plan, context):
        return plan.reweight(torch.ones(3))""": r"'short': the plan's weight has shape \(3,\) for \d+ tokens",
    """@dataclass
class Learned(es.Controller):
    def transform(self, plan, context):
        with torch.enable_grad():
            return plan.reweight(torch.ones(1, requires_grad=True) * 2)""": "'learned': the plan's weight has a",
    """@dataclass
class Forgot(es.Controller):
    def __post_init__(self):
        self.low = 0""": r"controller 'forgot': its __post_init__ must call super\(\).__post_init__\(\) first",
    """@dataclass
class Copies(es.Controller):
    def transform(self, plan, context):
        replace(context.tokens, advantage=-context.tokens.advantage)
        return plan""": "controller 'copies' fails on a few tokens: TypeError: a copy of the tokens would read",
    """@dataclass
class Named(es.Controller):
    state = "low"
""": r"named: state must be a tuple of names, such as \('low',\)",
    """@dataclass
class Locked(es.Controller):
    def __post_init__(self):
        super().__post_init__()
        self.lock = threading.Lock()
    def transform(self, plan, context):
        return plan""": "controller 'locked' cannot be copied to find what it reads: .* name these fields in `needs`",
}


def write(code, folder, monkeypatch):
    (folder / "broken_rules.py").write_text(HEAD + code + "\n")
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("broken_rules", None)
    name = code.partition("class ")[2].partition("(")[0]
    return f"broken_rules:{name}"


@pytest.mark.parametrize("code", REFUSED)
def test_a_rule_that_cannot_be_right_is_refused(code, tmp_path, monkeypatch, own_controllers):
    spec = write(code, tmp_path, monkeypatch)
    with pytest.raises(ValueError, match=REFUSED[code]) as refused:
        es.make(spec).plan(ragged_batch(0).tokens)
    assert "\n" not in str(refused.value)


def test_one_name_may_be_a_text(tmp_path, monkeypatch, own_controllers):
    code = "@dataclass\nclass Texted(es.Controller):\n    needs = 'entropy'"
    assert es.make(write(code, tmp_path, monkeypatch)).needs == {"entropy", "old_logp"}


def test_writing_into_the_trainers_numbers_is_noticed(tmp_path, monkeypatch, own_controllers):
    code = """@dataclass
class Writes(es.Controller):
    def transform(self, plan, context):
        context.tokens.advantage.mul_(2)
        return plan"""
    spec = write(code, tmp_path, monkeypatch)
    said = "plan writes into Tokens.advantage, which is the trainer's"
    assert CHECKS["plans change nothing"](spec, {}) == said
