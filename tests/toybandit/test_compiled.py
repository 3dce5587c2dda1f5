"""Compiled simulations: the same numbers, and one line where there is nothing to compile, or to compile with."""

import os
import shutil
import warnings

import numpy as np
import pytest
import torch
from packaging.version import Version

from toybandit import Config, compiled, simulate

SMALL = {"states": 5, "arms": 7, "group": 6, "rollouts": 4, "passes": 3}
KINDS = {
    "a closed loop": {"controller": "clip_higher+entropic", "target": 0.6, "controller_args": {"tau": 0.0}},
    "schedules": {
        "controller": "clip_higher+entropic",
        "target": "linear(1x, 0.4x)",
        "controller_args": {"entropic.tau": 0.0, "eps_high": ["linear(0.2, 0.3, 3)", 0.25, "cosine(0.1, 0.3, 2)"]},
    },
    "a maximum, npg": {"controller": "clip_higher+steer", "update": "npg"},
    "moments, adam": {"controller": "thermostat", "update": "adam", "lr": 0.05},
    "expected gradient, coupled": {"controller": "entropy_bonus", "gradient": "exact", "group": None, "coupling": 0.3},
    "episodes": {"controller": "grpo", "length": 3, "branching": 2},
    "features, adam": {
        "features": 3,
        "coupling": 0.2,
        "states": 6,
        "pool": 12,
        "held_out": 4,
        "mini_batches": 2,
        "max_grad_norm": 0.01,
        "update": "adam",
        "lr": 0.005,
    },
    "features, momentum": {"features": 3, "momentum": 0.5},
}
QUICK = ("expected gradient, coupled",)
"""The kind that is compiled in two seconds; others take up to seven."""
ABLE = shutil.which(os.environ.get("CXX", "g++")) is not None and Version(torch.__version__) >= Version("2.12")
needs_compiler = pytest.mark.skipif(not ABLE, reason="no C++ compiler, or a torch before 2.12, which runs uncompiled")


def assert_equal(fast, slow):
    for name in ("entropy", "reward", "logits", "probabilities"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=0, atol=1e-12, err_msg=name)
    assert set(fast.metrics) == set(slow.metrics)
    for name, values in slow.metrics.items():
        np.testing.assert_allclose(fast.metrics[name], values, rtol=1e-10, atol=1e-12, err_msg=name)


@needs_compiler
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind not in QUICK)) for kind in KINDS])
def test_equal_to_what_is_not_compiled(kind):
    config = Config(**SMALL | KINDS[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fast = simulate(config, [3, 8, 1], compile=True)
    assert_equal(fast, simulate(config, [3, 8, 1]))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("looks", [{"controller": "forking_tokens"}, {"advantage": "nsr", "controller": "gspo"}])
def test_what_cannot_be_compiled_runs_as_it_is(looks):
    config = Config(**SMALL | looks)
    with pytest.warns(UserWarning, match="cannot be compiled and runs uncompiled"):
        fast = simulate(config, [3, 8], compile=True)
    assert_equal(fast, simulate(config, [3, 8]))


@pytest.mark.parametrize("controller", ["random_positive_clip", "thermostat"])
def test_what_is_compiled_is_the_pass_itself(monkeypatch, controller):
    """The functions that are handed to the compiler, with the numbers of their updates; nothing is compiled here."""
    monkeypatch.setattr(compiled, "machine_code", lambda function: function)
    config = Config(controller=controller, **SMALL)
    assert_equal(simulate(config, [3, 8, 1], compile=True), simulate(config, [3, 8, 1]))


def test_no_compiler(monkeypatch):
    compiled.machine_code.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ValueError, match=r"^compile needs the C\+\+ compiler 'no-such-compiler': install it[^\n]+$"):
        simulate(Config(**SMALL), [0], compile=True)
