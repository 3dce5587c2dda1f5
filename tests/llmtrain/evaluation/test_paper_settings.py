"""Presets of the papers, and benchmarks recognised by name."""

import pytest

from llmtrain.evaluation.paper_settings import BENCHMARKS, PRESETS, benchmark, in_training, longest_response
from llmtrain.settings.config import EvalConfig, RolloutConfig, TrainConfig
from llmtrain.settings.sampling import Sampling


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("aime24", "aime24"),
        ("aime_2024_dapo_boxed", "aime24"),
        ("aime_2025_dapo_boxed", "aime25"),
        ("AIME25.parquet", "aime25"),
        ("HuggingFaceH4/aime_2024", "aime24"),
        ("amc23", "amc23"),
        ("amc2023_dapo_boxed", "amc23"),
        ("math500", "math500"),
        ("MATH-500", "math500"),
        ("minerva_math", "minerva"),
        ("olympiadbench", "olympiadbench"),
        ("omni_math", "omni_math"),
        ("gsm8k_test.jsonl", "gsm8k"),
        ("openai/gsm8k", "gsm8k"),
        ("math_dapo", "math_dapo"),
        ("my_questions", "my_questions"),
    ],
)
def test_benchmarks_are_recognised(name, means):
    assert benchmark(name) == means


def test_presets_as_the_papers_have_them():
    assert PRESETS["entropy_mechanism"].of("amc2023_dapo_boxed") == Sampling(
        temperature=0.6, samples=32, max_new_tokens=8192
    )
    assert PRESETS["entropy_mechanism"].of("math500").temperature == 0
    assert all(PRESETS["revisiting"].of(name).samples == 64 for name in BENCHMARKS)
    for paper in ("steer", "opefo"):
        assert {(x.temperature, x.top_p) for x in map(PRESETS[paper].of, BENCHMARKS)} == {(1, 0.7)}
        assert {name: PRESETS[paper].of(name).samples for name in ("aime25", "gsm8k")} == {"aime25": 32, "gsm8k": 1}
    assert PRESETS["steer"].of("livecodebench").samples == 4
    four = [PRESETS["entropic"].of(name).samples for name in ("math500", "olympiadbench", "minerva_math", "aime24")]
    assert four == [4, 4, 4, 32]
    assert {(x.temperature, x.top_p) for x in map(PRESETS["entropic"].of, BENCHMARKS)} == {(0.6, 0.95)}
    assert PRESETS["entropic_reasoning"].of("aime24").max_new_tokens == 64 * 1024


WRONG = [
    ("temperature", lambda: Sampling(max_new_tokens=8, temperature=-1)),
    ("temperature .*NaN", lambda: Sampling(max_new_tokens=8, temperature=float("nan"))),
    ("temperature .*finite", lambda: Sampling(max_new_tokens=8, temperature=float("inf"))),
    (r"top_p .*\(0, 1\]", lambda: Sampling(max_new_tokens=8, top_p=0)),
    ("samples", lambda: Sampling(max_new_tokens=8, samples=0)),
    (r"eval\.max_samples .*eval\.settings", lambda: EvalConfig(max_samples=4)),
]


@pytest.mark.parametrize(("message", "wrong"), WRONG)
def test_impossible_settings_are_refused(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()


def run(**settings):
    return TrainConfig(rollout=RolloutConfig(temperature=0.8, max_new_tokens=20), eval=EvalConfig(**settings))


def test_a_run_samples_as_in_rollouts_as_a_paper_or_as_it_says():
    own = Sampling(temperature=0.8, samples=16, max_new_tokens=20)
    assert in_training(run(samples=16))("aime24") == own
    steer = in_training(run(settings="steer"))
    assert (steer("aime24"), steer("math500")) == tuple(map(PRESETS["steer"].of, ("aime24", "math500")))
    said = in_training(run(settings="steer", temperature=0.0, top_p=1.0, max_new_tokens=9))("aime24")
    assert said == Sampling(temperature=0.0, top_p=1.0, samples=32, max_new_tokens=9)
    assert in_training(run(settings="steer", max_samples=4))("aime24").samples == 4
    assert in_training(run(settings="steer", max_samples=4))("math500").samples == 1


def test_the_longest_response_of_an_evaluation():
    assert longest_response(run()) == 20
    assert longest_response(run(max_new_tokens=7)) == 7
    assert longest_response(run(settings="steer")) == 3072
