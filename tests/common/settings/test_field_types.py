import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from entrostat.settings.field_types import fit_fields, merge


@dataclass
class Part:
    sizes: Annotated[tuple[int, ...], "[1, inf)"] = ()


@dataclass
class Settings:
    steps: int = 1
    lr: float | tuple[float, ...] = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    name: str | None = None
    shuffle: bool = False
    table: tuple[tuple[float, ...], ...] | None = None
    args: Mapping[str, Any] | None = None
    mode: Literal["", "fast"] = ""
    share: Annotated[float, "[0, 1)"] = 0.5
    shares: Annotated[tuple[float, ...], "[0, 1)"] = ()
    count: Annotated[int | None, "[1, inf)"] = None
    part: Part = field(default_factory=Part)


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
    ("key", "value", "message"),
    [
        ("steps", 2.0, "steps must be a valid integer; got 2.0"),
        ("steps", True, "steps must be a valid integer; got True"),
        ("steps", "4", "steps must be a valid integer; got '4'"),
        ("steps", None, "steps must be a valid integer; got None"),
        ("lr", "fast", "lr must be a valid number; got 'fast'"),
        ("lr", True, "lr must be a valid number; got True"),
        ("lr", [0.1, "fast"], "lr[1] must be a valid number; got 'fast'"),
        ("betas", [0.9], "betas[1] must be given; got (0.9,)"),
        ("betas", [0.9, 0.9, 1], "betas must have at most 2 items after validation, not 3; got (0.9, 0.9, 1)"),
        ("betas", 0.9, "betas must be a list; got 0.9"),
        ("name", 3, "name must be text; got 3"),
        ("shuffle", 1, "shuffle must be true or false; got 1"),
        ("table", [1, 2], "table[0] must be a list; got 1"),
        ("args", ["a"], "args must be a mapping of keys; got ('a',)"),
        ("shares", 0.5, "shares must be a list; got 0.5"),
        ("count", "1", "count must be a valid integer; got '1'"),
        ("mode", None, "mode must be '' or 'fast'; got None"),
        ("part", 3, "part must be a mapping of keys; got 3"),
        ("part", {"sizes": [1, "x"]}, "part.sizes[1] must be a valid integer; got 'x'"),
        ("part", {"sizes": [0]}, "part.sizes must be at least 1; got [0]"),
    ],
)
def test_what_does_not_fit_is_named(key, value, message):
    with pytest.raises(ValueError, match=f"^{re.escape('optim.' + message)}$"):
        fit_fields(Settings, {key: value}, "optim.")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lr", float("nan"), "must be a number, not NaN"),
        ("lr", [0.1, float("inf")], "must be finite"),
        ("mode", "slow", "must be one of empty, fast"),
        ("mode", ["fast"], "must be one of empty, fast"),
        ("share", 1, "must lie in [0, 1)"),
        ("shares", [0.5, -1], "must lie in [0, 1)"),
        ("count", 0, "must be at least 1"),
    ],
)
def test_what_is_outside_is_named(key, value, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fit_fields(Settings, {key: value}, "optim.")
    assert str(caught.value) == f"optim.{key} {message}; got {value!r}"


def test_unknown_keys_are_named():
    with pytest.raises(ValueError, match=r"^unknown key optim\.xyzzy; choose from args, betas, count, lr, mode, name"):
        fit_fields(Settings, {"xyzzy": 3}, "optim.")
    with pytest.raises(ValueError, match=r"^unknown key optim\.beta; did you mean betas\?$"):
        fit_fields(Settings, {"beta": 3}, "optim.")
    with pytest.raises(ValueError, match=r"^unknown key optim\.sizes: did you mean part\.sizes\?$"):
        fit_fields(Settings, {"sizes": 3}, "optim.")
    with pytest.raises(ValueError, match=r"^unknown key optim\.part\.lr: did you mean lr\?$"):
        fit_fields(Settings, {"part": {"lr": 3}}, "optim.")


def test_text_of_a_command_line_is_read():
    found = fit_fields(Settings, {"steps": "4", "lr": ["1", "2"], "count": None}, strict=False)
    assert found == {"steps": 4, "lr": (1.0, 2.0), "count": None}


def test_values_are_laid_over_a_section():
    base = Settings(steps=3, part=Part(sizes=(5,)))
    assert merge(base, {"part": {"sizes": [1, 2]}}) == Settings(steps=3, part=Part(sizes=(1, 2)))
    assert merge(base, {"lr": 1, "part": Part()}) == Settings(steps=3, lr=1.0)
