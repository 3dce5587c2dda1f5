"""Tests of this plug-in; it must be installed: pip install -e . && pytest"""

import pytest
import torch

import entrostat as es
from entrostat.about.check_controller import checked
from entrostat.logs.foreign.foreign_runs import read_path
from llmtrain.settings.config import TaskConfig
from llmtrain.tasks import generated_task
from toybandit.claims import CLAIMS, HOLDS
from toybandit.claims.registry import QUICK


def test_wrong_responses_weigh_more_below_the_floor():
    controller = es.make("floor", target=0.4)
    tokens = es.Tokens(logp=torch.zeros(3), old_logp=torch.zeros(3), advantage=torch.tensor([1.0, 0.0, -1.0]))
    controller.observe(es.StepStats(entropy=0.3))
    assert controller.plan(tokens).weight.tolist() == pytest.approx([1, 1, 1.25])
    controller.observe(es.StepStats(entropy=0.5))
    assert controller.plan(tokens).weight.tolist() == [1, 1, 1]


def test_it_passes_all_checks():
    assert not {name: fault for name, fault in checked("floor", {"target": 1.0}) if fault}


def test_the_claim_holds_and_its_fault_turns_it():
    (claim,) = CLAIMS.choose(["floor-helps"])
    record = claim(QUICK, power=True)
    assert (record.verdict, record.unnoticed) == (HOLDS, ())


def test_lines_of_names_and_values_are_a_log(tmp_path):
    (tmp_path / "run.txt").write_text("step=1 H=0.5 R=0\nstep=2 H=0.4 R=1\nend\n")
    (run,) = read_path(tmp_path / "run.txt")
    assert run.source == "lines of name=value"
    assert [(line["step"], line["entropy"], line["reward"]) for line in run.metrics] == [(1, 0.5, 0.0), (2, 0.4, 1.0)]
    assert run.notes == ("1 lines without a readable step are left out",)


def test_sums_are_verified():
    task = generated_task(TaskConfig(name="sums", train_problems=3, test_problems=1))
    question = task.train[0][0]
    try:
        verdicts = task.verify([question] * 3, [f"7, no: {question.ground_truth}", "7", ""])
    finally:
        task.close()
    assert [verdict.correct for verdict in verdicts] == [True, False, False]
    assert verdicts[2].reason == "no number"
