"""Short names of runs: the parts in which they differ."""

import re
from collections.abc import Sequence
from itertools import takewhile

LEAST = 6
"""Letters of a common beginning from which it is left out."""


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Return a short name for each of these different names: its last folders, without their common beginning.

    Short names differ, too: "grid/lr1/grpo" and "grid/lr1/steer" become "grpo" and "steer"; "sweep-lr1-grpo" and
    "sweep-lr1-steer" become "…grpo" and "…steer".
    """
    parts = {name: name.split("/") for name in names}
    deepest = max(map(len, parts.values()), default=1)
    for depth in range(1, deepest + 1):
        short = {name: "/".join(folders[-depth:]) for name, folders in parts.items()}
        if len(set(short.values())) == len(short):
            break
    whole = re.match(r"(?:.*[-_./ ])?", beginning(list(short.values())))
    cut = len(whole[0]) if whole and len(short) > 1 else 0
    return {name: f"…{text[cut:]}" if cut >= LEAST else text for name, text in short.items()}


def beginning(names: Sequence[str]) -> str:
    """Return the letters that all names begin with."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in same)
