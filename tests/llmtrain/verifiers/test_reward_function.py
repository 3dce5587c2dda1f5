"""Reward functions of one's own: what they are given, what they may return, and what a failure costs."""

import pytest

from llmtrain.data import read
from llmtrain.settings.config import DataConfig, RewardConfig, RolloutConfig, TrainConfig
from llmtrain.tasks import get_task
from llmtrain.verifiers.reward_function import RewardFunction
from llmtrain.verifiers.scoring import scored

GROUP = {"prompt": "2+2=", "ground_truth": "4", "data_source": "sums", "level": 3, "responses": ["4", "five", ""]}

MODULE = """
import os, time

def whole(responses, ground_truth, level):
    if "hang" in responses:
        time.sleep(60)
    if "exit" in responses:
        os._exit(1)
    return [level * (text == ground_truth) - len(text) / 8 for text in responses]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "my_rewards:whole"


def one(response, level):
    return level + len(response)


def verl(data_source, solution_str, ground_truth, extra_info=None):
    return float(data_source == "sums" and solution_str == ground_truth)


def every(response, **columns):
    return len(columns)


def group(responses, prompt):
    return [0.5] * len(responses) if prompt else []


@pytest.mark.parametrize(
    ("function", "scores"), [(one, [4, 7, 3]), (verl, [1, 0, 0]), (every, [4, 4, 4]), (group, [0.5, 0.5, 0.5])]
)
def test_arguments_are_given_by_name(function, scores):
    assert scored(function, GROUP) == {"scores": scores, "lost": [None] * 3, "failure": None}


def test_a_failing_response_costs_itself_and_a_failing_group_the_group():
    found = scored(lambda response: 1 / len(response), GROUP)
    raised = found.pop("raised")
    assert found == {"scores": [1, 0.25, 0], "lost": [None, None, "error"], "failure": None}
    assert raised.line.startswith("ZeroDivisionError: division by zero (test_reward_function.py, line ")
    for bad in ([1.0], [1.0, float("nan"), 2.0], None):
        assert scored(lambda responses, bad=bad: bad, GROUP | {"bad": bad})["lost"] == ["error"] * 3


def test_a_hanging_or_crashing_group_has_no_reward(module):
    groups = [GROUP, GROUP | {"responses": ["hang", "4"]}, GROUP | {"responses": ["exit", "4"]}, GROUP]
    with RewardFunction(module, workers=1, timeout=1.0) as rewards:
        found = rewards.score(groups)
    assert found == [[2.875, -0.5, 0], [0, 0], [0, 0], [2.875, -0.5, 0]]
    assert rewards.failures == {"timeout": 2, "crash": 2}


def test_rows_keep_their_columns_if_asked(jsonl):
    rows = [{"question": "2+2=", "answer": "4", "level": 3, "more": {"a": [1]}}]
    (question,) = read(jsonl(rows), keep_columns=True).questions
    assert question.columns == rows[0]
    (plain,) = read(jsonl(rows)).questions
    assert (plain.columns, plain) == ({}, question)
    assert hash(plain) == hash(question)


def test_columns_of_parquet(parquet):
    rows = [{"question": "2+2=", "answer": "4", "level": 3, "more": {"a": 1, "b": "x"}}]
    assert read(parquet(rows), keep_columns=True).questions[0].columns == rows[0]


def test_a_task_scores_the_responses_to_its_questions(module, jsonl):
    file = jsonl([{"question": "2+2=", "answer": "4", "level": 3}])
    config = TrainConfig(
        data=DataConfig(train_files=(file,), verifier="exact", verifier_workers=1),
        reward=RewardConfig(function=module),
        rollout=RolloutConfig(n=2),
    )
    task = get_task(config)
    try:
        assert task.score([task.train[0][0]], [["4", "5"]]) == [[2.875, -0.125]]
    finally:
        task.close()
