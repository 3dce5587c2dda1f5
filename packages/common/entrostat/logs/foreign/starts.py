"""Starts of a run in one log: a resumed run goes on from an earlier step, another run begins at the first."""

from collections.abc import Mapping
from typing import NamedTuple

Steps = dict[int, dict[str, float | None]]
"""Metrics of each step. None: no number."""


class Run(NamedTuple):
    """Steps of a run, however often it was resumed."""

    steps: Steps
    repeated: tuple[int, int] | None = None
    """First and last step that were taken again; None if there are none."""


class Starts:
    """Steps in the order in which a log has them.

    If a metric comes again for an earlier step, and the log goes on from there, the run has started again: from the
    first step it is another run, from a later one it was resumed, and all that it had done after that is left out. If
    the log goes on where it was, the value is a correction.
    """

    def __init__(self) -> None:
        self.ended: list[Run] = []
        self.part: Steps = {}
        """Steps since the last start."""
        self.last = 0
        """Largest of them."""
        self.begin = self.end = 0
        """Smallest and largest step of the last run that has ended."""

    def add(self, step: int, metrics: Mapping[str, float | None]) -> None:
        before = self.ended[-1].steps if self.ended else {}
        known = self.part.get(step) or before.get(step, {})
        if self.part and step < self.last and not known.keys().isdisjoint(metrics):
            self._end()
        self.last = max(self.last, step) if self.part else step
        self.part.setdefault(step, {}).update(metrics)

    def runs(self) -> list[Run]:
        """Return the runs of all that was added."""
        if self.part:
            self._end()
        return self.ended

    def _end(self) -> None:
        """Join the part to the run that it continues, or let it be another run."""
        part, self.part = self.part, {}
        first = next(iter(part))
        after = next((step for step in part if step != first), self.end + 1)
        if self.ended and after > self.end:
            for step, line in part.items():
                self.ended[-1].steps.setdefault(step, {}).update(line)
            self.end = max(self.end, self.last)
            return
        if self.ended and first > self.begin:
            before, repeated = self.ended[-1]
            kept = {step: line for step, line in before.items() if step < first}
            low, high = repeated or (first, self.end)
            self.ended[-1] = Run(kept | part, (min(low, first), max(high, self.end)))
        else:
            self.ended.append(Run(part))
            self.begin = min(part)
        self.end = self.last
