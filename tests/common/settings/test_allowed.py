"""Numbers that are none, or outside their range, are refused by name; what is published is not."""

from dataclasses import dataclass, fields, is_dataclass
from math import inf, nan
from typing import Literal

import pytest
import torch

from entrostat import make
from entrostat.by_name import PRESETS, REGISTRY
from entrostat.settings.allowed import PositiveInt, Probability, allowed, complaint

NUMBERS = [
    (name, field.name, field.default, allowed(cls, field.name) or "(-inf, inf)")
    for name, cls in sorted(REGISTRY.items())
    for field in fields(cls)
    if isinstance(field.default, int | float) and not isinstance(field.default, bool)
]
RUNS = torch.tensor([0.5, nan])


@pytest.mark.parametrize(("name", "hyperparameter", "default", "interval"), NUMBERS)
def test_a_number_is_no_nan_and_finite_unless_it_may_be_infinite(name, hyperparameter, default, interval):
    for value in (nan, RUNS):
        with pytest.raises(ValueError, match=f"{name}: {hyperparameter} must be a number, not NaN"):
            REGISTRY[name](**{hyperparameter: value})
    if "inf]" not in interval:
        with pytest.raises(ValueError, match=f"{name}: {hyperparameter} must be finite"):
            REGISTRY[name](**{hyperparameter: inf})
    else:
        REGISTRY[name](**{hyperparameter: -inf if hyperparameter == "omega_low" else inf})
    REGISTRY[name](**{hyperparameter: torch.tensor([default, default])})


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_published_values_are_valid(name, preset):
    make(name, preset)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("entropic", {"target": -0.1}, "target must not be negative"),
        ("entropic", {"kp": -1.0}, "kp must not be negative"),
        ("entropic", {"ki": -1.0}, "ki must not be negative"),
        ("entropic", {"kd": torch.tensor([0.0, -1.0])}, "kd must not be negative"),
        ("thermostat", {"target": -0.1}, "target must not be negative"),
        ("adaptive_entropy", {"target": -0.1}, "target must not be negative"),
        ("adaptive_entropy", {"delta": -0.1}, "delta must not be negative"),
        ("adaptive_entropy", {"initial": -0.1}, "initial must lie between coef_min and coef_max"),
        ("adaptive_entropy", {"initial": torch.tensor([0.0, 0.1])}, "initial must lie between coef_min and coef_max"),
        ("positive_reweight", {"target": -0.1}, "target must not be negative"),
        ("positive_reweight", {"delta": -0.1}, "delta must not be negative"),
        ("positive_reweight", {"lambda_init": -1.0}, r"lambda_init must lie in \[0, lambda_max\]"),
        ("positive_reweight", {"lambda_max": 0.5}, r"lambda_init must lie in \[0, lambda_max\]"),
        ("aepo", {"target": -0.1}, "target must not be negative"),
        ("entrocraft", {"target": -0.1}, "target must not be negative"),
        ("clip_cov", {"k": -0.1}, r"k must lie in \[0, 1\]"),
        ("clip_cov", {"k": 1.1}, r"k must lie in \[0, 1\]"),
        ("clip_cov", {"omega_low": 5.0, "omega_high": 1.0}, "omega_low must be below omega_high"),
        ("kl_cov", {"k": torch.tensor([0.1, 1.1])}, r"k must lie in \[0, 1\]"),
        ("kl_cov", {"beta": -1.0}, "beta must not be negative"),
        ("steer", {"lambda_min": 5.0}, "lambda_min must not be above 1"),
        ("steer", {"lambda_max": 0.5}, "lambda_max must be at least 1"),
        ("steer", {"omega_floor": -0.1}, "omega_floor must not be negative"),
        ("opefo", {"lambda_static": -0.1}, r"lambda_static must lie in \[0, 1\]"),
        ("ppl_advantage", {"alpha": -0.1}, "alpha must not be negative"),
        ("dmmpt", {"entropy_low": -0.1}, "entropy_low must not be negative"),
        ("position_advantage", {"slope": -1.0}, "slope must not be negative"),
        ("ppo", {"eps_high": 10**400}, "eps_high is too large for a float64"),
        ("entropic", {"alpha_max": 10**400}, "alpha_max is too large for a float64"),
    ],
)
def test_ranges(name, settings, message):
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        make(name, **settings)


@pytest.mark.parametrize(
    ("interval", "inside", "outside", "message"),
    [
        (None, (-5, 0, torch.tensor([1.0, 2.0])), (inf, torch.tensor([0.0, -inf])), "must be finite"),
        ("[0, inf)", (0, 3.5), (-1e-50, torch.tensor([1, -1])), "must not be negative"),
        ("(0, inf)", (1e-50,), (0, -1), "must be positive"),
        ("(0, inf]", (1e-50, inf), (0, -inf), "must be positive"),
        ("(1, inf)", (1.0000001,), (1, 0.5), "must be above 1"),
        ("[1, inf)", (1,), (0.9999999,), "must be at least 1"),
        ("[0, 1]", (0, 1), (-1e-50, 1.0000001), "must lie in [0, 1]"),
        ("[0, 1)", (0, 0.9999999), (-0.5, 1), "must lie in [0, 1)"),
        ("(0, 1]", (1e-50, 1), (0, 1.5), "must lie in (0, 1]"),
        ("[-inf, inf]", (-inf, 0, inf), (), ""),
        (("a", "b"), ("a", "b"), ("c", 1), "must be one of a, b"),
    ],
)
def test_what_is_allowed(interval, inside, outside, message):
    for value in inside:
        assert complaint(value, interval) is None
    for value in outside:
        assert complaint(value, interval) == message
    if not isinstance(interval, tuple):
        assert complaint(nan, interval) == "must be a number, not NaN"


def test_what_a_subclass_gives_another_default_keeps_its_range():
    for cls in REGISTRY.values():
        for base in cls.__mro__[1:]:
            for field in fields(base) if is_dataclass(base) else ():
                assert allowed(cls, field.name) == allowed(base, field.name), (cls, field.name)


def test_a_weight_that_only_one_variant_starts_from():
    make("positive_reweight", variant="stage", lambda_max=0.5)


@pytest.mark.parametrize("name", ["entropy_bonus", "truncated_entropy_bonus"])
def test_a_bonus_may_be_negative(name):
    make(name, coef=-0.1)


def test_a_range_within_a_union_counts():
    """None passes, and numbers outside are refused, however deep the range stands."""

    @dataclass
    class Settings:
        steps: PositiveInt | None = None
        share: Probability | str | None = None
        mode: Literal["a", "b"] | None = None
        name: str | None = None

    ranges = {name: allowed(Settings, name) for name in ("steps", "share", "mode", "name")}
    assert ranges == {"steps": "[1, inf)", "share": "[0, 1]", "mode": ("a", "b"), "name": None}
