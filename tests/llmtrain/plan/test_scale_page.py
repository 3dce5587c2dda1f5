"""docs/scale.md says what the plan says: the steps of two runs, and what each part of them takes or saves."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

from llmtrain.plan.cost import make_plan
from llmtrain.plan.efficiency import BANDWIDTH_SHARE
from llmtrain.plan.gpu import GPUS
from llmtrain.plan.plan_presets import get_preset

DOCS = Path(__file__).parents[3] / "docs"
PAGE = " ".join((DOCS / "scale.md").read_text(encoding="utf-8").split())
H100 = json.loads((DOCS / "scale/h100.json").read_text(encoding="utf-8"))
RUNS = {"qwen2.5-math-7b-8gpu": "h200", "qwen2.5-32b-64gpu": "h100"}
SMALL, LARGE = RUNS


def plan(name, **changes):
    lengths = {"mean_response_length": 2048, "max_response_length": 8192, "max_positions": 16384, "oversampling": 1.0}
    return make_plan(replace(get_preset(name).config, **{"gpu": RUNS[name]} | lengths | changes))


def phases(name):
    return [round(seconds) for seconds in plan(name).phases.values()]


def test_steps_by_phase():
    for name, said in (
        (SMALL, "{} s a step: {} rollout, {} training, {:.1f} weights"),
        (LARGE, "{} s: {}, {} and {:.1f}"),
    ):
        rollout, training, _ = phases(name)
        assert said.format(round(plan(name).seconds), rollout, training, plan(name).sync) in PAGE


def test_training_against_trl():
    runs = json.loads((DOCS / "data/benchmarks.json").read_text(encoding="utf-8"))["trainer"]["tiny"]["runs"]
    seconds = {run["trainer"]: run["seconds"] for run in runs}
    assert f"training {seconds['trl'] / seconds['llmtrain']:.2f} times as fast as" in PAGE


def test_log_probabilities_of_the_rollout():
    small, large = (
        f"{plan(x).training['log-probabilities of the rollout']:.0f} s of {plan(x).seconds:.0f}" for x in RUNS
    )
    assert f"| {small} | {large} |" in PAGE


def test_partial_rollouts():
    """The best of 4,096 and 2,048 tokens."""
    gains = [plan(x).seconds / min(plan(x, partial_tokens=k).seconds for k in (4096, 2048)) for x in RUNS]
    assert f"| no gain: what goes on is computed again | × {gains[0]:.2f} | × {gains[1]:.2f} |" in PAGE


def test_elastic_engines():
    """By the seconds of a rollout; nodes are small, so that single GPUs can join."""

    def rollout(name, gpus, own, **changes):
        apart = {"colocated": False, "gpus": gpus, "rollout_gpus": own, "gpus_per_node": 4}
        return f"{plan(name, **apart, **changes).rollout.total:.0f} s"

    assert f"4 of 8 GPUs sampling: {rollout(SMALL, 8, 4)}; 4 more: {rollout(SMALL, 12, 8)}" in PAGE
    few, more = rollout(LARGE, 64, 32), rollout(LARGE, 80, 48)
    partial = rollout(LARGE, 80, 48, partial_tokens=2048)
    assert f"32 of 64: {few}; 16 more: {more}, with 2,048 partial tokens {partial}" in PAGE


def test_attention():
    small, large = (f"{plan(x).training['attention']:.0f} s of {plan(x).seconds:.0f}" for x in RUNS)
    assert f"| attention itself {small} | {large} |" in PAGE


def test_compiled_layers():
    path = Path(__file__).parents[3] / "benchmarks/compiled_layers.py"
    benchmark = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(path.stem, path))
    spec.loader.exec_module(benchmark)
    bounds = [f"at most {benchmark.saved_seconds(plan(x).layout):.0f} s of {plan(x).seconds:.0f}" for x in RUNS]
    assert f"| {bounds[0]} | {bounds[1]} |" in PAGE
    name = benchmark.ON_GPU
    shape, tokens, layers = benchmark.SIZES[name], benchmark.TOKENS[name], benchmark.LAYERS[name]
    heads = shape["num_attention_heads"] + shape["num_key_value_heads"]
    rotated = heads * shape["hidden_size"] // shape["num_attention_heads"]
    each = benchmark.saved_bytes(shape["hidden_size"], shape["intermediate_size"], rotated)
    passes = [x * tokens * layers * each / (GPUS["h100"].bandwidth * BANDWIDTH_SHARE) for x in (3, 4)]
    assert f"of {1e3 * passes[0]:.0f} and {1e3 * passes[1]:.0f} that it could save" in PAGE
    for row in H100["compiled layers"]:
        assert f"| {row['eager, s']:0<5} | {row['compiled, s']} | {row['eager / compiled']} |" in PAGE


def test_attention_on_an_h100():
    later = {row["layers"] + row["sequences × tokens"] for row in H100["attention"]}
    for row in H100["attention"]:
        batch, *others = (row["ms"][case] for case in ("batch", "each", "dense", "at once"))
        shape = row["sequences × tokens"].replace("1024", "1,024").replace("2048", "2,048")
        assert f"{shape} | {batch:.1f} | {' | '.join(f'{x / batch:.2f}' for x in others)} |" in PAGE
    for row in H100["attention, a wait in each layer"]:
        if "qwen2.5-7b" + row["sequences × tokens"] in later:
            continue
        shape, *numbers = (
            x.replace("1024", "1,024").replace("2341", "2,341").replace("8192", "8,192") for x in row.values()
        )
        assert f"{shape} | {' | '.join(numbers)} |" in PAGE


def test_the_run_on_an_h100():
    runs = H100["first-hour"]
    predicted, measured = (runs["small"]["found"][key] for key in ("predicted", "measured"))
    reserved = measured["memory_gib"]["memory/reserved_gib"]
    assert f"| memory of training, GiB | {predicted['memory_gib']:.1f} | {reserved:.1f} |" in PAGE
    for name, phase in (("training", "training"), ("weights", "weight sync"), ("rollout", "rollout")):
        seconds = (one["seconds"][phase] for one in (predicted, measured))
        assert f"| {name}, s | {' | '.join(f'{x:.2f}' for x in seconds)} |" in PAGE
    slower = runs["small, a call for each sequence"]["found"]["measured"]["seconds"]["training"]
    assert f"{measured['seconds']['training']:.1f} s a step with one call and took {slower:.1f} s" in PAGE
    assert f"{measured['seconds']['training'] / predicted['seconds']['training']:.1f} times in training" in PAGE
    first, second, *rest = H100["seconds of rollouts"]
    assert f"The first two rollouts took {first:.0f} and {second:.0f} s" in PAGE
    assert max(rest) < 5
    entropy = runs["cpu"]["found"]["entropy"]
    assert max(abs(a - b) for a, b in zip(*entropy.values(), strict=True)) < 2.1e-8
    assert " and ".join(f"{x:.7f}" for x in entropy["on-cpu"]) in PAGE
