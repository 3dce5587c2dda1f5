"""Names that installed distributions declare as entry points."""

import re
import subprocess
import sys

import pytest
import torch

import entrostat as es
from entrostat import advantages
from entrostat.__main__ import main
from entrostat.advantages import REGISTRY as ADVANTAGES

RULES = """
from dataclasses import dataclass
from entrostat import Controller
from entrostat.surrogates import ClippedRatio

@dataclass(kw_only=True)
class Half(Controller):
    \"\"\"Every weight times `factor`.\"\"\"
    factor: float = 0.5
    target: float = 1.0
    def transform(self, plan, context):
        return plan.reweight(self.factor * (1 + 0 * context.tokens.advantage))

@dataclass(kw_only=True)
class Wide(ClippedRatio):
    \"\"\"Wide clip.\"\"\"
    eps_high: float = 0.9

def twice(reward, group_id):
    \"\"\"2·R.\"\"\"
    return 2 * reward

number = 7
"""
DECLARED = """
[entrostat.controllers]
half-weight = plug_rules:Half
steer = plug_rules:Half
absent = plug_rules:Absent
broken = plug_broken:Half
number = plug_rules:number

[entrostat.surrogates]
wide = plug_rules:Wide

[entrostat.advantages]
twice = plug_rules:twice
number = plug_rules:number
"""


@pytest.fixture
def rules(own_controllers, distribution):
    """A distribution with rules, and with entry points that cannot be used."""
    distribution("half-rules", DECLARED, plug_rules=RULES, plug_broken="undefined_name\n")
    known = set(ADVANTAGES)
    yield
    sys.modules.pop("plug_rules", None)
    for name in set(ADVANTAGES) - known:
        del ADVANTAGES[name]


def weights(controller):
    tokens = es.Tokens(logp=torch.zeros(3), old_logp=torch.zeros(3), advantage=torch.tensor([1.0, -1.0, 2.0]))
    return controller.plan(tokens).weight.expand(3).tolist()


def test_a_declared_controller_works_where_a_name_does(rules):
    assert "half-weight" in es.list_controllers()
    assert "plug_rules" not in sys.modules  # listed is not imported
    assert weights(es.make("clip_higher+half-weight", **{"half-weight.factor": 0.25})) == [0.25] * 3
    assert es.make("half-weight+wide").name == "wide+half-weight"
    assert es.describe("half-weight")["hyperparameters"]["factor"]["default"] == 0.5


def test_it_is_described_before_it_is_used(rules):
    assert es.describe("wide")["kind"] == "surrogate"
    assert es.describe("twice", "advantage")["rule"] == "2·R."


def test_a_declared_target_is_found(rules):
    from entrostat.by_name import with_target

    assert with_target("half-weight", {}, 0.4) == {"target": 0.4}


def test_a_declared_advantage_works_where_a_name_does(rules):
    reward, group = torch.tensor([1.0, 0.0]), torch.tensor([0, 0])
    assert es.get_advantage("twice")(reward, group).tolist() == [2.0, 0.0]
    assert es.get_advantage("plug_rules:twice")(reward, group).tolist() == [2.0, 0.0]


def test_a_built_in_name_is_never_replaced(rules, capsys):
    es.make("steer")
    assert "plug_rules" not in sys.modules
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "plug-in half-weight (entrostat.controllers of half-rules): plug_rules:Half" in lines
    unused = "plug-in steer (entrostat.controllers of half-rules): plug_rules:Half, not used: the name is built in"
    assert unused in lines


OF = "of the distribution half-rules"
WRONG = {
    f"controller 'absent' {OF} cannot be imported: .*no attribute 'Absent'": lambda: es.make("ppo+absent"),
    f"controller 'broken' {OF} cannot be imported: name 'undefined_name' is": lambda: es.make("ppo+broken"),
    f"controller 'number' {OF} is no subclass of entrostat.Controller": lambda: es.make("ppo+number"),
    "unknown controller 'half-wait'; did you mean half-weight": lambda: es.make("ppo+half-wait"),
    "'xyzzy'; choose from adapo, .*, half-weight, .*, or give module:Class": lambda: es.make("ppo+xyzzy"),
    f"advantage 'number' {OF} is no function": lambda: es.get_advantage("number"),
    r"advantage 'grpo' is registered twice, in .*advantages\.groups and in ": lambda: advantages.register("grpo")(min),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_what_cannot_be_used_is_told_in_one_line(rules, message, wrong):
    with pytest.raises(ValueError, match=rf"^[^\n]*{message}[^\n]*\Z"):
        wrong()


def test_a_name_that_two_distributions_declare_is_refused(rules, distribution):
    distribution("other-rules", "[entrostat.controllers]\nhalf-weight = elsewhere:Half\n")
    message = "'half-weight' is declared by (half|other)-rules and (half|other)-rules: uninstall one of them, or give"
    with pytest.raises(ValueError, match=message):
        es.make("half-weight")


def test_entry_points_are_read_only_for_a_name_that_is_not_built_in(rules, monkeypatch):
    monkeypatch.delitem(sys.modules, "importlib.metadata")
    es.make("clip_higher+steer")
    es.get_advantage("qae k=0.6")
    assert "importlib.metadata" not in sys.modules
    es.make("half-weight")
    assert "importlib.metadata" in sys.modules


CELLS = {
    "controller": """
from dataclasses import dataclass
import entrostat as es
from entrostat.registry import register
@register("again")
@dataclass(kw_only=True)
class Again(es.Controller):
    def transform(self, plan, context): return plan
""",
    "advantage": """
from entrostat.advantages import register
@register("again", source="mine")
def again(reward, group_id): return reward
""",
    "claim": """
from toybandit.claims import claim
@claim("again", paper="p", words="w", threshold="t", null="n", mutations=())
def again(effort): return None
""",
    "trial": """
from toybandit.trial import trial
@trial("again")
def again(): return None
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_may_run_again(kind):
    """And another module may not take its name: prometheus/client_python#1042."""
    code = f"""
cell = {CELLS[kind]!r}
notebook = {{"__name__": "__main__"}}
exec(cell, notebook); exec(cell, notebook)
try:
    exec(cell, {{"__name__": "another"}})
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{kind} 'again' is registered twice")


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("exits:Rule", "import sys; sys.exit(2)", "exits ends the program; put what it runs under if __name__"),
        ("exits.py:Rule", "", "names a file: give its module, exits:Rule, from the folder exits.py is in"),
    ],
)
def test_what_an_import_path_does_instead(path, text, message, tmp_path, monkeypatch):
    (tmp_path / "exits.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(ValueError, match=re.escape(message)):
        es.make(path)
