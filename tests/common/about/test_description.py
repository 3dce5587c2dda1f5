"""What is told of each name, and that docs/controllers.md tells it too."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from entrostat import describe, list_controllers, make
from entrostat.__main__ import main
from entrostat.about.description import KINDS, QUADRANTS, markdown, names
from entrostat.by_name import REGISTRY

ROOT = Path(__file__).parents[3]
EVERYTHING = [(name, kind) for kind in KINDS for name in names(kind)]


def test_steer_as_data():
    about = describe("steer")
    assert about["kind"] == "controller"
    assert about["rule"].startswith("Weight falling from 1 to lambda_min")
    assert "equation 3" in about["notes"]
    assert about["needs"] == ["entropy", "logp", "old_logp"]
    assert about["state"] == []
    doc = "Weight of the token with the largest Ω, at most 1."
    assert about["hyperparameters"]["lambda_min"] == {"default": 0.7, "allowed": "(0, inf)", "doc": doc}
    assert about["hyperparameters"]["mapping"]["allowed"] == ("exponential", "linear", "binary")
    assert about["hyperparameters"]["mask_clipped"]["allowed"] is None
    assert about["presets"]["paper"] == {}
    assert about["presets"]["released"]["lambda_min"] == 0.8
    assert about["source"].startswith("STEER")
    assert about["quadrants"] == ["I", "II", "III", "IV"]


def test_an_inherited_hyperparameter_keeps_its_doc_and_takes_its_own_default():
    eps = describe("clip_higher")["hyperparameters"]["eps_high"]
    doc = "Width of the clip range above 1, used if A > 0."
    assert eps == {"default": 0.28, "allowed": "[0, inf)", "doc": doc}
    assert describe("gspo")["hyperparameters"]["aggregation"]["default"] == "seq-mean-token-mean"


def test_names_of_two_kinds():
    assert describe("grpo")["name"] == "ppo"
    assert describe("grpo", "advantage")["rule"].startswith("(R − mean)")
    assert describe("w_reinforce")["hyperparameters"]["positive"]["default"] == 0.1
    assert describe("opo")["needs"] == ["reward", "group_id", "length"]
    with pytest.raises(ValueError, match="unknown controller 'grpo'"):
        describe("grpo", "controller")
    with pytest.raises(ValueError, match="unknown name 'gae'"):
        describe("gae")


@pytest.mark.parametrize(("name", "kind"), EVERYTHING)
def test_nothing_is_left_unsaid(name, kind):
    about = describe(name, kind)
    assert about["kind"] == kind
    assert about["rule"]
    assert about["source"]
    assert set(about["quadrants"]) <= set(QUADRANTS)
    for key, setting in about["hyperparameters"].items():
        assert setting["doc"], key
        if isinstance(setting["allowed"], tuple):
            assert all(choice in setting["doc"] for choice in setting["allowed"]), key
    if kind == "controller":
        assert about["quadrants"]
    if kind != "advantage":
        assert list(about["hyperparameters"]) == [field.name for field in fields(REGISTRY[name])]
        for preset in about["presets"].values():
            make(name, **preset)


def test_every_controller_is_described():
    assert {name for name, kind in EVERYTHING if kind != "advantage"} == set(list_controllers()) - {"grpo"}


def test_the_page_is_what_the_code_says(monkeypatch, capsys):
    """Rewritten by: python -m entrostat docs > docs/controllers.md"""
    monkeypatch.chdir(ROOT)
    assert main(["docs"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/controllers.md").read_text()


def test_every_row_leads_to_its_section():
    page = markdown()
    links = re.findall(r"^\| \[`[^`]+`\]\(#([^)]+)\)", page, re.MULTILINE)
    headings = re.findall(r"^### `([^`]+)`( \(advantage\))?$", page, re.MULTILINE)
    assert links == [name + ("-advantage" if kind else "") for name, kind in headings]


def test_everything_was_measured():
    """Rewritten by: python benchmarks/measure_controllers.py"""
    results = json.loads((ROOT / "docs/data/measured.json").read_text())["results"]
    assert set(results) == {name for name, kind in EVERYTHING if kind != "advantage"}
    assert len({tuple(result["entropy"][:1]) for result in results.values()}) == 1


def test_tables_have_a_cell_for_every_column():
    page = markdown({"setting": "s", "results": {"ppo": {"entropy": [1.6, 0.3], "reward": 0.6}}})
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    columns = {len(row.replace("\\|", "").split("|")) for row in rows}
    assert columns == {4, 5}
    assert "| 1.60 → 0.30, 0.600 |" in page
    assert "not measured" in page
    assert "entropy, reward" not in markdown()
