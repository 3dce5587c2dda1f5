"""The committed evidence is that of the committed studies."""

import gzip
import importlib
import json
from pathlib import Path

import pytest

from entrostat.logs.diagnosis import evidence
from entrostat.logs.diagnosis.facts import measure

ROOT = Path(__file__).parents[3]
LOGS = ROOT / "docs" / "data" / "findings"


def test_it_is_what_the_studies_give(monkeypatch):
    """Rewritten by: python benchmarks/evidence.py"""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    made = importlib.import_module("evidence")
    assert evidence.PATH.read_text(encoding="utf-8") == made.written(made.evidence())


@pytest.mark.parametrize(
    "path", sorted(LOGS.glob("countdown/ppo/*.json.gz")), ids=lambda path: "/".join(path.parts[-3:])
)
def test_grpo_collapses_in_the_study(path):
    """Its collapse is what the penalty and the targets are compared with."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    columns = content["metrics"]
    metrics = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert "collapsed" in measure(metrics, content["config"]).conditions


def test_numbers_of_a_line_are_those_of_the_file():
    for study in evidence.results()["studies"].values():
        lines = "\n".join(evidence.paid("kl_ref", "beta").lines)
        for entry in study["entries"]:
            if entry["controller"] == "kl_ref":
                one = entry["pass@8"]
                assert f"{one['difference']:+.3f} ± {one['half']:.3f}" in lines


def test_a_verdict_is_that_of_its_interval():
    for study in evidence.results()["studies"].values():
        for entry in study["entries"]:
            for score in evidence.SCORES:
                one = entry[score]
                apart = abs(one["difference"]) > one["half"]
                assert (one["verdict"] != evidence.ALIKE) == apart
                assert not apart or one["verdict"] == ("higher" if one["difference"] > 0 else "lower")


def test_a_controller_without_a_study_is_not_supported():
    assert evidence.paid("nobody", "beta") == evidence.none()
    assert evidence.alike("nobody").supports is False
    assert evidence.held(["nobody"]).supports is False
