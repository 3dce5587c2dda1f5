"""docs/scale.md says what the plan says: the steps of two runs, and what each part of them takes or saves."""

import importlib.util
from dataclasses import replace
from pathlib import Path

from llmtrain.plan.cost import make_plan
from llmtrain.plan.efficiency import BANDWIDTH_SHARE
from llmtrain.plan.gpu import GPUS
from llmtrain.plan.plan_presets import get_preset

PAGE = " ".join((Path(__file__).parents[3] / "docs/scale.md").read_text(encoding="utf-8").split())
RUNS = {"qwen2.5-math-7b-8gpu": "h200", "qwen2.5-32b-64gpu": "h100"}
SMALL, LARGE = RUNS


def plan(name, **changes):
    lengths = {"mean_response_length": 2048, "max_response_length": 8192, "max_positions": 16384, "oversampling": 1.0}
    return make_plan(replace(get_preset(name).config, **{"gpu": RUNS[name]} | lengths | changes))


def phases(name):
    return [round(seconds) for seconds in plan(name).phases.values()]


def test_steps_by_phase():
    rollout, training, weights = phases(SMALL)
    assert (
        f"takes {plan(SMALL).seconds:.0f} s a step: {rollout} rollout, {training} training, {weights} weights" in PAGE
    )
    rollout, training, weights = phases(LARGE)
    assert f"takes {plan(LARGE).seconds:.0f} s: {rollout}, {training} and {weights}" in PAGE


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
