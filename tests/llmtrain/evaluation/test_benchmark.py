"""Sampling to a file: order, seeds, and an interrupted evaluation that resumes with the same result."""

import json

import pytest
from evaluated import SAMPLING, ids, questions, subject, verify

from llmtrain.evaluation.benchmark import Benchmark, by_question, sample, units, whole_units


def benchmark(count, source="a"):
    asked = questions(count, source)
    return Benchmark(source, asked, ids(asked), SAMPLING)


@pytest.fixture(scope="module")
def plan():
    return units([benchmark(5, "a"), benchmark(3, "b")], sequences=6)


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    return sample(subject(), plan, verify, tmp_path_factory.mktemp("whole"), seed=4).read_bytes()


def test_batches_cover_every_question_once(plan):
    assert [(u.benchmark.source, u.number, u.start, u.stop) for u in plan] == [
        ("a", 0, 0, 2),
        ("a", 1, 2, 4),
        ("a", 2, 4, 5),
        ("b", 0, 0, 2),
        ("b", 1, 2, 3),
    ]
    assert [u.stop - u.start for u in units([benchmark(2)], sequences=1)] == [1, 1]


def test_lines_come_in_order_and_say_everything(whole):
    lines = [json.loads(line) for line in whole.splitlines()]
    wanted = [(s, q, i) for s, count in (("a", 5), ("b", 3)) for q in range(count) for i in range(3)]
    assert [(line["source"], line["question"], line["sample"]) for line in lines] == wanted
    assert set(lines[0]) >= {"response", "extracted", "correct", "reason", "tokens", "finished", "logp", "entropy"}
    assert {line["correct"] for line in lines} == {True, False}
    assert all(line["correct"] == (str(line["question"]) in line["response"]) for line in lines)
    first = [[line["response"] for line in lines if line["source"] == s][:6] for s in "ab"]
    assert first[0] != first[1]  # the same prompts in the first batch: each source has draws of its own


def test_each_batch_has_draws_of_its_own(tmp_path):
    asked = questions(1) * 4
    plan = units([Benchmark("a", asked, ids(asked), SAMPLING)], sequences=6)
    lines = [json.loads(line) for line in sample(subject(), plan, verify, tmp_path).open()]
    assert [line["response"] for line in lines[:6]] != [line["response"] for line in lines[6:]]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.45, 0.7, 0.95, 0.9999, 1.0])
def test_an_interrupted_evaluation_goes_on(plan, whole, tmp_path, share):
    (tmp_path / "responses.jsonl").write_bytes(whole[: int(len(whole) * share)])
    told = []
    path = sample(
        subject(), plan, verify, tmp_path, seed=4, report=lambda unit, correct, resumed: told.append((unit, resumed))
    )
    assert path.read_bytes() == whole
    assert [unit for unit, _ in told] == plan
    resumed = [was for _, was in told]
    assert resumed == sorted(resumed, reverse=True)
    assert all(resumed) if share == 1 else not all(resumed)
    assert any(resumed) == (share > 0.4)


def test_a_batch_is_in_the_file_when_it_is_reported(plan, tmp_path):
    held = []
    sample(
        subject(),
        plan,
        verify,
        tmp_path,
        report=lambda *_: held.append(len((tmp_path / "responses.jsonl").open().readlines())),
    )
    assert held == [6, 12, 15, 21, 24]


def test_ctrl_c_leaves_whole_batches(plan, whole, tmp_path):
    def interrupted(asked, responses):
        if asked[0].source == "b":
            raise KeyboardInterrupt
        return verify(asked, responses)

    with pytest.raises(KeyboardInterrupt):
        sample(subject(), plan, interrupted, tmp_path, seed=4)
    assert whole_units(tmp_path / "responses.jsonl", plan) == 3
    assert sample(subject(), plan, verify, tmp_path, seed=4).read_bytes() == whole


def test_another_seed_draws_others(plan, whole, tmp_path):
    assert sample(subject(), plan, verify, tmp_path, seed=5).read_bytes() != whole


def test_questions_are_read_back_one_by_one(plan, whole, tmp_path):
    (tmp_path / "responses.jsonl").write_bytes(whole)
    groups = list(by_question(tmp_path / "responses.jsonl"))
    assert [(g[0]["source"], g[0]["question"], len(g)) for g in groups[4:6]] == [("a", 4, 3), ("b", 0, 3)]
    assert len(groups) == 8
