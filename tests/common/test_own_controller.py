"""Controllers that lie outside the package, named by module:Class."""

import subprocess
import sys

import pytest
import torch

import entrostat as es

RULE = """
from dataclasses import dataclass
from entrostat import Controller
from entrostat.registry import register

@dataclass(kw_only=True)
class HalfWeight(Controller):
    factor: float = 0.5
    def transform(self, plan, context):
        return plan.reweight(self.factor * (1 + 0 * context.tokens.advantage))

@register("third_weight")
@dataclass(kw_only=True)
class ThirdWeight(HalfWeight):
    factor: float = 1 / 3

class Other: ...
"""


@pytest.fixture
def module(tmp_path, monkeypatch, own_controllers):
    """The name of a module in the working folder."""
    (tmp_path / "own_rules.py").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    yield "own_rules"
    sys.modules.pop("own_rules", None)


def weights(controller):
    tokens = es.Tokens(logp=torch.zeros(3), old_logp=torch.zeros(3), advantage=torch.tensor([1.0, -1.0, 2.0]))
    return controller.plan(tokens).weight.expand(3).tolist()


def test_named_by_path(module):
    assert weights(es.make(f"clip_higher+{module}:HalfWeight")) == [0.5, 0.5, 0.5]
    assert weights(es.make(f"{module}:HalfWeight", factor=0.25)) == [0.25, 0.25, 0.25]
    assert es.make(f"{module}:HalfWeight").name == "ppo+half_weight"
    assert es.describe("half_weight")["hyperparameters"]["factor"]["default"] == 0.5


def test_a_registered_name_stays(module):
    controller = es.make(f"{module}:ThirdWeight+{module}:HalfWeight")
    assert controller.name == "ppo+third_weight+half_weight"
    assert weights(es.make("third_weight")) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere:Rule", r"controller 'nowhere:Rule' cannot be imported: No module named 'nowhere'"),
        ("own_rules:Missing", r"'own_rules:Missing' cannot be imported: .*no attribute 'Missing'"),
        ("own_rules:", r"'own_rules:' cannot be imported"),
        (":Rule", r"':Rule' cannot be imported"),
        ("own_rules:Other", r"controller 'own_rules:Other' is no subclass of entrostat.Controller"),
    ],
)
def test_what_cannot_be_used_is_named(module, path, words):
    with pytest.raises(ValueError, match=words):
        es.make(f"ppo+{path}")


@pytest.mark.slow
def test_from_the_command_line_of_the_simulator(module, tmp_path):
    words = "-m toybandit run --env det --states 4 --rollouts 3 --controller clip_higher+own_rules:HalfWeight"
    done = subprocess.run([sys.executable, *words.split(), "--set", "factor=0.1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "clip_higher+own_rules:HalfWeight in det" in done.stdout
