"""`python -m entrostat check-controller`: every controller passes, and each check notices a rule that is wrong."""

import sys

import pytest
import torch

from entrostat.__main__ import main
from entrostat.about.check_controller import CHECKS, checked
from entrostat.by_name import REGISTRY, make

RULES = """
from dataclasses import dataclass, replace
from typing import ClassVar
import torch
from entrostat import Controller
from entrostat.numbers.per_run import reading, column

@dataclass(kw_only=True)
class Right(Controller):
    '''A < 0 weighs more while the entropy is low.'''
    target: float = 0.5
    state: ClassVar = ("gap",)
    def __post_init__(self):
        super().__post_init__()
        self.gap = torch.tensor(0.0, dtype=torch.float64)
    def observe(self, stats):
        entropy = reading(stats.entropy)
        self.gap = torch.where(entropy.isnan(), self.gap, self.gap + self.target - entropy)
    def transform(self, plan, context):
        wrong = context.tokens.advantage < 0
        return plan.reweight(1 + 0.3 * wrong * column(self.gap, context.tokens.advantage).tanh())

class Idle(Right):
    def transform(self, plan, context):
        return plan

class Undeclared(Right):
    @property
    def needs(self):
        return frozenset({"old_logp"})
    def transform(self, plan, context):
        return plan.reweight(1 + context.tokens.logp.exp())

class Remembering(Right):
    def __post_init__(self):
        super().__post_init__()
        self.seen = []
    def observe(self, stats):
        super().observe(stats)
        self.seen.append(stats.step)

class Infinite(Right):
    def transform(self, plan, context):
        return plan.reweight(1 / context.tokens.advantage.abs())

class Averaged(Right):
    def transform(self, plan, context):
        inner = plan.surrogate
        halved = lambda logp, s: inner(logp, s) / logp.shape[-1]
        return replace(super().transform(plan, context), surrogate=halved)

class Ordered(Right):
    def transform(self, plan, context):
        return plan.reweight(torch.linspace(0.5, 1.5, context.tokens.size, dtype=torch.float64))

class Mixing(Right):
    def transform(self, plan, context):
        return plan.reweight(1 + 0.3 * (context.tokens.advantage < 0) * self.gap.mean().tanh())

class Local(Right):
    def transform(self, plan, context):
        a = context.tokens.advantage
        return plan.reweight(0.5 + (a > a.mean(-1, keepdim=True)))

class Alone(Right):
    def transform(self, plan, context):
        if type(context.reduce).__name__ == "DistReduce":
            context.reduce.mine()
        return super().transform(plan, context)

class Counting(Right):
    state: ClassVar = ("gap", "plans")
    def __post_init__(self):
        super().__post_init__()
        self.plans = torch.tensor(0)
    def transform(self, plan, context):
        self.plans = self.plans + 1
        return super().transform(plan, context)

class Forgetful(Right):
    state: ClassVar = ()

class Poisoned(Right):
    def observe(self, stats):
        self.gap = self.gap + self.target - torch.as_tensor(stats.entropy, dtype=torch.float64)
"""
FAULTS = {
    "Idle": "acts",
    "Undeclared": "reads what it needs",
    "Remembering": "keeps its state",
    "Infinite": "finite",
    "Averaged": "micro-batches",
    "Ordered": "order",
    "Mixing": "runs side by side",
    "Counting": "plans change nothing",
    "Forgetful": "checkpoint",
    "Poisoned": "not a number",
    "Local": "ranks",
}
"""Check that notices each wrong rule."""


@pytest.fixture
def rules(tmp_path, monkeypatch, own_controllers):
    """A module of rules in the working folder."""
    (tmp_path / "tried_rules.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "tried_rules"
    sys.modules.pop("tried_rules", None)


def test_each_check_notices_its_fault(rules):
    assert set(FAULTS.values()) == set(CHECKS)
    for name, check in FAULTS.items():
        if check != "ranks":
            spec = f"{rules}:{name}"
            assert CHECKS[check](spec, {}), name
            assert not CHECKS[check](f"{rules}:Right", {}), check


@pytest.mark.slow
def test_ranks_notice_a_mean_of_their_own(rules):
    assert "2 ranks give another update than one process" in CHECKS["ranks"](f"{rules}:Local", {})
    assert (
        dict(checked(f"{rules}:Alone", {}))["ranks"]
        == "on a rank: AttributeError: 'DistReduce' object has no attribute 'mine'"
    )
    assert dict(checked(f"{rules}:Right", {})) == dict.fromkeys(CHECKS, "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::entrostat.CompositionWarning")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_controller_passes_all_but_ranks(name):
    """The ranks of all controllers are those of test_invariance.py."""
    quick = {check: CHECKS[check] for check in CHECKS if check not in ("ranks", "acts")}
    assert {check: function(name, {}) for check, function in quick.items()} == dict.fromkeys(quick, "")


def test_one_cause_is_one_fault(rules):
    said = "undeclared reads Tokens.logp, which its `needs` does not name: name it, or leave `needs` out"
    assert list(checked(f"{rules}:Undeclared", {})) == [("reads what it needs", said)]


def test_a_line_for_each_check_and_the_exit_code(rules, capsys, monkeypatch):
    monkeypatch.setitem(CHECKS, "ranks", lambda spec, settings: "")
    assert main(["check-controller", f"{rules}:Right", "target=0.4"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "acts                  ok"
    assert told.endswith(f"{rules}:Right passes all checks\n")
    assert main(["check-controller", f"{rules}:Forgetful"]) == 1
    told = capsys.readouterr().out
    assert "checkpoint            after a checkpoint the update is another: name all that observe changes" in told
    assert "keeps its state       observe changes forgetful.gap, which is not in its `state`: a resumed run" in told
    assert told.endswith("has 2 faults\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere:Rule"], "controller 'nowhere:Rule' cannot be imported"),
        (["steer", "x=1"], "has the hyperparameter 'x'"),
        (["stear"], "unknown controller 'stear'; did you mean steer"),
    ],
)
def test_what_cannot_be_made_is_one_line(words, said, capsys):
    assert main(["check-controller", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_state_that_a_checkpoint_lacks_shows(rules):
    """Otherwise `Forgetful` would be found by chance: its state really differs."""
    rule = make(f"{rules}:Forgetful").parts[0]
    assert torch.equal(rule.gap, torch.tensor(0.0, dtype=torch.float64))
    assert rule.state_dict() == {}
