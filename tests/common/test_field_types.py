from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from entrostat.field_types import fit_fields


@dataclass
class Settings:
    steps: int = 1
    lr: float | tuple[float, ...] = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    name: str | None = None
    shuffle: bool = False
    table: tuple[tuple[float, ...], ...] | None = None
    args: Mapping[str, Any] | None = None


def test_values_become_what_fields_are():
    given = {
        "steps": np.int64(3),
        "lr": [1, 2],
        "betas": (0, np.float32(0.5)),
        "table": [[1], [2.5]],
        "args": {"a": [1]},
    }
    found = fit_fields(Settings, given)
    assert found == {"steps": 3, "lr": (1.0, 2.0), "betas": (0.0, 0.5), "table": ((1.0,), (2.5,)), "args": {"a": [1]}}
    assert type(found["steps"]) is int
    assert {type(rate) for rate in found["lr"]} == {float}
    assert fit_fields(Settings, {"name": None, "shuffle": True}) == {"name": None, "shuffle": True}


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("steps", 2.0, "integer"),
        ("steps", True, "integer"),
        ("steps", "4", "integer"),
        ("steps", None, "integer"),
        ("lr", "fast", "finite number or [finite number, ...]"),
        ("lr", float("nan"), "finite number or [finite number, ...]"),
        ("lr", [0.1, float("inf")], "finite number or [finite number, ...]"),
        ("lr", True, "finite number or [finite number, ...]"),
        ("betas", [0.9], "[finite number, finite number]"),
        ("betas", 0.9, "[finite number, finite number]"),
        ("name", 3, "text or null"),
        ("shuffle", 1, "true or false"),
        ("table", [1, 2], "[[finite number, ...], ...] or null"),
        ("args", ["a"], "mapping or null"),
    ],
)
def test_what_does_not_fit_is_named(key, value, kind):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fit_fields(Settings, {key: value}, "optim.")
    assert str(caught.value) == f"optim.{key} must be of type {kind}; got {value!r}"


def test_unknown_keys_are_named():
    with pytest.raises(ValueError, match=r"^unknown key optim\.stepz; choose from args, betas, lr, name"):
        fit_fields(Settings, {"stepz": 3}, "optim.")
