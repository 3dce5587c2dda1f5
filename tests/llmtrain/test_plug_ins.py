"""Tasks, verifiers and rollout engines that installed distributions declare as entry points."""

import sys

import pytest

from llmtrain.rollout.engine_names import engine_class
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.settings.config import DataConfig, TaskConfig, TrainConfig
from llmtrain.tasks import generated_task
from llmtrain.training.check import check_task
from llmtrain.verifiers import get_verifier

TASKS = """
from llmtrain.data import Question
from llmtrain.tasks import Task
from llmtrain.verifiers import get_verifier

def echo(config):
    asked = [Question(f"{n}=", str(n), source="echo") for n in range(config.train_problems + config.test_problems)]
    train, test = asked[: config.train_problems], asked[config.train_problems :]
    return Task([train], test, lambda: get_verifier("tail", workers=1), lambda asked, sft: [], lambda most: None)
"""
TAIL = """
def check(response, truth):
    return response.endswith(truth)
"""
ENGINES = """
from llmtrain.rollout.hf_engine import HFEngine

class Slow(HFEngine): ...
"""
DECLARED = """
[llmtrain.tasks]
echo = plug_tasks:echo
countdown = plug_tasks:echo

[llmtrain.verifiers]
tail = plug_tail:check
absent = plug_tail:absent
exact = plug_tail:check

[llmtrain.rollout_engines]
slow = plug_engines:Slow
hf = plug_engines:Slow
"""


@pytest.fixture(autouse=True)
def declared(distribution):
    distribution("echoes", DECLARED, plug_tasks=TASKS, plug_tail=TAIL, plug_engines=ENGINES)


def test_a_declared_task_is_built_and_its_declared_verifier_judges_in_a_process_of_its_own():
    task = generated_task(TaskConfig(name="echo", train_problems=3, test_problems=1))
    assert [question.prompt for question in task.test] == ["3="]
    try:
        assert [verdict.correct for verdict in task.verify(task.train[0][:2], ["so 0", "so 2"])] == [True, False]
    finally:
        task.close()
    assert "plug_tail" not in sys.modules


def test_a_declared_engine_is_found():
    assert engine_class("slow").__name__ == "Slow"
    assert issubclass(engine_class("slow"), HFEngine)


def test_a_built_in_name_is_never_replaced():
    assert engine_class("hf") is HFEngine
    task = generated_task(TaskConfig(train_problems=3, test_problems=1))
    assert [question.source for question in task.test] == ["countdown"]
    with get_verifier("exact") as verify:
        assert not verify(["so 0"], ["0"])[0].correct


def test_a_verifier_is_checked_before_a_run_without_importing_it():
    check_task(TrainConfig(data=DataConfig(train_files=("owner/name",), verifier="math echo=tail")))
    assert "plug_tail" not in sys.modules


@pytest.mark.parametrize(
    ("find", "name", "names"),
    [
        (get_verifier, "absent", "echoes: .*'plug_tail:absent'"),
        (get_verifier, "tale", "tail"),
        (engine_class, "slov", "slow"),
        (lambda name: generated_task(TaskConfig(name=name)), "ekho", "echo"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(find, name, names):
    with pytest.raises(ValueError, match=rf"^[^\n]*'{name}'[^\n]*{names}") as told:
        find(name)
    assert "\n" not in str(told.value)
