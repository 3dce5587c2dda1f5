"""Environments of one's own, from a YAML file.

    base: noisy                     # what is not said comes from here
    states: 2
    success: [[.9, .2, .2], [.2, .9, .2]]   # or success_beta: [2, 5]
    logits: [0, 0, 3]               # one row for all states
    kernel: [[1, .5], [.5, 1]]
    lr: 0.1

Keys are the numbers of `Environment`; `states` and `arms` follow from the tables where they are not said.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .environments import ENVIRONMENTS, Environment, as_table, check_types

TABLES = ("success", "logits", "kernel")


def read_environment(path: str | Path) -> Environment:
    """The environment described in a file. ValueError of one line, naming the file, when it describes none."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text())
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected keys and values, such as states: 8")
    try:
        return environment_from(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def environment_from(content: Mapping[str, Any]) -> Environment:
    """The environment of plain keys and values. ValueError on an unknown key or a value that does not fit."""
    numbers = dict(content)
    base = numbers.pop("base", "noisy")
    if not isinstance(base, str) or base not in ENVIRONMENTS:
        raise ValueError(f"unknown base {base!r}; choose from {', '.join(ENVIRONMENTS)}")
    known = [field.name for field in fields(Environment)]
    for key in numbers:
        if key not in known:
            raise ValueError(f"unknown key {key!r}; an environment has base, {', '.join(known)}")
    for name in TABLES:
        if numbers.get(name) is not None:
            numbers[name] = as_table(name, numbers[name])
            numbers.setdefault("arms" if name != "kernel" else "states", len(numbers[name][0]))
            if name != "kernel" and len(numbers[name]) > 1:
                numbers.setdefault("states", len(numbers[name]))
    for name in ("lr", "success_beta"):
        if isinstance(numbers.get(name), list):
            numbers[name] = tuple(numbers[name])
    check_types(Environment, numbers)
    if "arms" in numbers and "right_arms" not in numbers:
        numbers["right_arms"] = min(ENVIRONMENTS[base].right_arms, numbers["arms"])
    return replace(ENVIRONMENTS[base], **numbers)
