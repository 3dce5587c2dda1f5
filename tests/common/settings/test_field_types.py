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


WRONG = {
    "optim.steps must be a valid integer; got 2.0": {"steps": 2.0},
    "optim.steps must be a valid integer; got True": {"steps": True},
    "optim.steps must be a valid integer; got '4'": {"steps": "4"},
    "optim.steps must be a valid integer; got None": {"steps": None},
    "optim.lr must be a valid number; got 'fast'": {"lr": "fast"},
    "optim.lr must be a valid number; got True": {"lr": True},
    "optim.lr[1] must be a valid number; got 'fast'": {"lr": [0.1, "fast"]},
    "optim.betas[1] must be given; got (0.9,)": {"betas": [0.9]},
    "optim.betas must have at most 2 items after validation, not 3; got (0.9, 0.9, 1)": {"betas": [0.9, 0.9, 1]},
    "optim.betas must be a list; got 0.9": {"betas": 0.9},
    "optim.name must be text; got 3": {"name": 3},
    "optim.shuffle must be true or false; got 1": {"shuffle": 1},
    "optim.table[0] must be a list; got 1": {"table": [1, 2]},
    "optim.args must be a mapping of keys; got ('a',)": {"args": ["a"]},
    "optim.shares must be a list; got 0.5": {"shares": 0.5},
    "optim.count must be a valid integer; got '1'": {"count": "1"},
    "optim.mode must be '' or 'fast'; got None": {"mode": None},
    "optim.part must be a mapping of keys; got 3": {"part": 3},
    "optim.part.sizes[1] must be a valid integer; got 'x'": {"part": {"sizes": [1, "x"]}},
    "optim.part.sizes must be at least 1; got [0]": {"part": {"sizes": [0]}},
    "optim.lr must be a number, not NaN; got nan": {"lr": float("nan")},
    "optim.lr must be finite; got [0.1, inf]": {"lr": [0.1, float("inf")]},
    "optim.mode must be one of empty, fast; got 'slow'": {"mode": "slow"},
    "optim.mode must be one of empty, fast; got ['fast']": {"mode": ["fast"]},
    "optim.share must lie in [0, 1); got 1": {"share": 1},
    "optim.shares must lie in [0, 1); got [0.5, -1]": {"shares": [0.5, -1]},
    "optim.count must be at least 1; got 0": {"count": 0},
    f"unknown key optim.xyzzy; choose from {', '.join(sorted(vars(Settings())))}": {"xyzzy": 3},
    "unknown key optim.beta; did you mean betas?": {"beta": 3},
    "unknown key optim.sizes: did you mean part.sizes?": {"sizes": 3},
    "unknown key optim.part.lr: did you mean lr?": {"part": {"lr": 3}},
}


@pytest.mark.parametrize(("message", "given"), WRONG.items())
def test_what_does_not_fit_is_named(message, given):
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}\Z"):
        fit_fields(Settings, given, "optim.")


def test_text_of_a_command_line_is_read():
    found = fit_fields(Settings, {"steps": "4", "lr": ["1", "2"], "count": None}, strict=False)
    assert found == {"steps": 4, "lr": (1.0, 2.0), "count": None}


def test_values_are_laid_over_a_section():
    base = Settings(steps=3, part=Part(sizes=(5,)))
    assert merge(base, {"part": {"sizes": [1, 2]}}) == Settings(steps=3, part=Part(sizes=(1, 2)))
    assert merge(base, {"lr": 1, "part": Part()}) == Settings(steps=3, lr=1.0)
