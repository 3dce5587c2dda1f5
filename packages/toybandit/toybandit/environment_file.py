"""Environments from a YAML file.

    base: noisy                     # source of all numbers not given here
    states: 2
    success: [[.9, .2, .2], [.2, .9, .2]]   # or success_beta: [2, 5]
    logits: [0, 0, 3]               # one row for all states
    kernel: [[1, .5], [.5, 1]]
    lr: 0.1

Keys are the numbers of `Environment`; `states` and `arms` follow from the tables unless they are given.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from entrostat.settings.choosing import unknown
from entrostat.settings.field_types import fit_fields
from entrostat.settings.plain_yaml import load_yaml

from .environments import ENVIRONMENTS, TABLES, Environment, as_tables


def read_environment(path: str | Path) -> Environment:
    """Return the environment described in a file. Raise ValueError, one line with the file's name, if it has none."""
    content = load_yaml(path)
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{path}: expected keys and values, such as states: 8")
    try:
        return environment_from(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def environment_from(content: Mapping[str, Any]) -> Environment:
    """Return the environment of plain keys and values. Raise ValueError on an unknown key or an invalid value."""
    numbers = dict(content)
    base = numbers.pop("base", "noisy")
    if not isinstance(base, str) or base not in ENVIRONMENTS:
        raise ValueError(unknown("base", str(base), ENVIRONMENTS, word=repr(base)))
    numbers = fit_fields(Environment, as_tables(numbers))
    for name in TABLES:
        if numbers.get(name) is not None:
            numbers.setdefault("arms" if name != "kernel" else "states", len(numbers[name][0]))
            if name != "kernel" and len(numbers[name]) > 1:
                numbers.setdefault("states", len(numbers[name]))
    if "arms" in numbers and "right_arms" not in numbers:
        numbers["right_arms"] = min(ENVIRONMENTS[base].right_arms, numbers["arms"])
    return replace(ENVIRONMENTS[base], **numbers)
