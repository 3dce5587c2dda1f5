"""Columns of text that tell the runs of one file apart, though no known name says so.

columns = TextColumns()
columns.add(step, {"model": "small", "entropy": 0.5})      for each row
columns.dividing(conflicts=True)                           ("model",)
"""

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any

from .rows import KINDS, NODES, RANKS, RUNS, spelled

NAMED = {
    *("model", "model_name", "model_id", "exp", "exp_name", "exp_id", "experiment_name", "experiment_id", "condition"),
    *("run_uuid", "run_number", "run_index", "dir_name", "logdir", "job", "job_name", "job_id", "config"),
    *("config_name", "setting", "replicate"),
}
"""Names of columns that tell runs apart if their values share steps, of texts or whole numbers."""
MOST_VALUES = 20
"""Upper limit for the values of a column that tells runs apart."""
MOST_COLUMNS = 100
"""Upper limit for the columns of text that are looked at."""
LONGEST = 200
"""Upper limit for a text that names a run."""
SHARED = 0.5
"""Share of its steps that the shorter of two runs has in common with the other."""


class TextColumns:
    """Steps of each value of each column of text."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, set[int]]] = {}
        self.other = {*KINDS, *RUNS, *RANKS, *NODES}
        """Columns that cannot tell runs apart, or have done so."""

    def add(self, step: int, metrics: Mapping[str, Any]) -> None:
        for name, value in metrics.items():
            if (text := text_of(name, value)) is None or name in self.other or spelled(name) in self.other:
                continue
            if name not in self.steps and len(self.steps) == MOST_COLUMNS:
                continue
            values = self.steps.setdefault(name, {})
            values.setdefault(text, set()).add(step)
            if len(values) > MOST_VALUES:
                del self.steps[name]
                self.other.add(name)

    def dividing(self, conflicts: bool) -> tuple[str, ...]:
        """Return the columns that tell runs apart; empty if there are none.

        conflicts: True if values of a metric replace each other, or the log starts again; else only columns of NAMED.
        """
        found = sorted(name for name, values in self.steps.items() if _share(values.values()))
        if named := tuple(name for name in found if spelled(name) in NAMED):
            return named
        return tuple(sorted(found, key=lambda name: (len(self.steps[name]), name))[:1]) if conflicts else ()


def text_of(name: str, value: Any) -> str | None:
    """Return a value as the name of a run; None if it can be none."""
    if isinstance(value, str):
        return value.strip() if 0 < len(value.strip()) <= LONGEST else None
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value and value % 1 == 0
    return f"{name} {value:.0f}" if whole and spelled(name) in NAMED else None


def _share(values: Collection[set[int]]) -> bool:
    """Return True if there are two values or more, of two steps or more each, and any two have steps in common."""
    if len(values) < 2 or min(map(len, values)) < 2:
        return False
    return all(len(one & other) >= SHARED * min(len(one), len(other)) for one, other in combinations(values, 2))
