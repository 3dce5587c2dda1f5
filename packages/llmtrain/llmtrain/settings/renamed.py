"""Older names of settings, still understood. No torch."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

RENAMED = {"target_entropy": "target"}
"""New name of each older key at the root of a configuration."""


def current_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings under their current names. Raise ValueError if a setting has both names."""
    for old, new in RENAMED.items():
        if old in settings and new in settings:
            raise ValueError(f"{old} is the older name of {new}: leave {old} out")
    return {RENAMED.get(key, key): value for key, value in settings.items()}


def current_flags(args: list[str]) -> list[str]:
    """Return command-line arguments with the current names of flags."""
    flags = {"--" + old.replace("_", "-"): "--" + new.replace("_", "-") for old, new in RENAMED.items()}
    found = []
    for item in args:
        flag, equals, value = item.partition("=")
        found.append(flags.get(flag.replace("_", "-"), flag) + equals + value)
    return found


def print_renamed(given: Iterable[str]) -> None:
    """Name the current name of each older key or flag on stderr, in one line each; only rank 0 prints."""
    names = {item.partition("=")[0].removeprefix("--").replace("-", "_") for item in given}
    if os.environ.get("RANK", "0") == "0":
        for old in sorted(names & set(RENAMED)):
            print(f"{old} is now {RENAMED[old]}", file=sys.stderr)
