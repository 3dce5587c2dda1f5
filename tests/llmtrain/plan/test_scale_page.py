"""docs/scale.md says what the plan says: the steps of two runs, and what each part of them takes or saves."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from llmtrain.plan.cost import make_plan
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


def test_compiled_layers():
    path = Path(__file__).parents[3] / "benchmarks/compiled_layers.py"
    benchmark = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(path.stem, path))
    spec.loader.exec_module(benchmark)
    bounds = [f"at most {benchmark.saved_seconds(plan(x).layout):.0f} s of {plan(x).seconds:.0f}" for x in RUNS]
    assert f"| no gain | {bounds[0]} | {bounds[1]} |" in PAGE


def test_launches_of_attention():
    """Ten launches of 5 µs for each sequence and layer, of the seconds of a micro-batch of an H100."""
    shares = []
    for name in RUNS:
        one = plan(name, gpu="h100")
        layout, size = one.layout, one.config.micro_batch_tokens
        busy = ("forward and backward", "recomputation", "attention", "output layer")
        seconds = sum(one.training[part] for part in busy) / (layout.tokens / layout.ranks / size)
        sequences = size / layout.mean_sequence
        assert f"{seconds:.1f} s" in PAGE
        assert round(sequences) == 7
        shares.append(100 * sequences * layout.model.layers * 10 * 5e-6 / seconds)
    assert shares == pytest.approx([0.5, 0.25], abs=0.05)
    assert ".5% and .3%" in PAGE
