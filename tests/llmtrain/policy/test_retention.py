"""Checkpoints that stay: the newest, every so many steps, the best by the run log."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtrain.policy.checkpoint import step_of
from llmtrain.policy.retention import best, scored, to_keep
from llmtrain.settings.config import CheckpointConfig

SCORES = {2: 0.3, 4: 0.5, 6: 0.5, 8: 0.1}


def made(tmp_path, steps=(2, 4, 6, 8, 10), scores=SCORES):
    for step in steps:
        (tmp_path / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    lines = [{"step": step, "reward": 0.0, "eval/a/avg@2": scores.get(step)} for step in range(11)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({}, [8, 10]),
        ({"keep_last": 1}, [10]),
        ({"keep_last": 9}, [2, 4, 6, 8, 10]),
        ({"keep_last": 1, "keep_every": 4}, [4, 8, 10]),
        ({"keep_last": 1, "keep_best": "eval/a/avg@2"}, [6, 10]),  # the newest of equal ones
        ({"keep_last": 1, "keep_best": "eval/none"}, [10]),
    ],
)
def test_what_stays(tmp_path, config, kept):
    found = to_keep(made(tmp_path), CheckpointConfig(**config))
    assert sorted(map(step_of, found)) == kept


def test_a_run_without_a_log_keeps_the_newest(tmp_path):
    made(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    found = to_keep(tmp_path, CheckpointConfig(keep_best="reward"))
    assert sorted(map(step_of, found)) == [8, 10]


def test_the_best_is_named(tmp_path):
    assert best(made(tmp_path), "eval/a/avg@2").name == "step-000006"
    with pytest.raises(ValueError, match=r"no checkpoint of .* has the metric 'eval/b'; .* have eval/a/avg@2"):
        best(tmp_path, "eval/b")


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 99), st.floats(-1, 1), min_size=1))
def test_the_best_has_the_highest_value(value):
    known = scored([Path(f"step-{step:06d}") for step in value], value)
    assert known[max(known, key=known.__getitem__)] == max(value.values())
