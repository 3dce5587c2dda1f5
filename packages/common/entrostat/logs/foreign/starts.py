"""Starts of a run in one log: a resumed run goes on from an earlier step, another run begins at the first."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

Steps = dict[int, dict[str, float | None]]
"""Metrics of each step. None: no number."""


class Run(NamedTuple):
    """Steps of a run, however often it was resumed."""

    steps: Steps
    repeated: tuple[int, int] | None = None
    """First and last step that were taken again; None if there are none."""
    replaced: Mapping[str, int] = MappingProxyType({})
    """Number of values that a later one replaced at the same step, by metric."""


class Starts:
    """Steps in the order in which a log has them.

    A value that is no number does not replace one: it may be a gap of a table whose row is an evaluation.

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
        self.replaced = Counter[str]()
        """Number of values of the part that were replaced, by metric."""

    def add(self, step: int, metrics: Mapping[str, float | None]) -> None:
        before = self.ended[-1].steps if self.ended else {}
        known = self.part.get(step) or before.get(step, {})
        told = [name for name, value in metrics.items() if value is not None] or metrics
        if self.part and step < self.last and not known.keys().isdisjoint(told):
            self._end()
        self.last = max(self.last, step) if self.part else step
        self._put(self.part, step, metrics)

    def _put(self, steps: Steps, step: int, metrics: Mapping[str, float | None]) -> None:
        """Add the metrics of a step to those that are known of it, and count the values that they replace."""
        line = steps.setdefault(step, {})
        for name, value in metrics.items():
            known = line.get(name)
            if known is not None and value is not None and value != known:
                self.replaced[name] += 1
            line[name] = known if value is None else value

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
            steps, repeated, replaced = self.ended.pop()
            for step, line in part.items():
                self._put(steps, step, line)
            self.ended.append(Run(steps, repeated, self.replaced + Counter(replaced)))
            self.end = max(self.end, self.last)
        elif self.ended and first > self.begin:
            before, repeated, replaced = self.ended.pop()
            kept = {step: line for step, line in before.items() if step < first}
            low, high = repeated or (first, self.end)
            again = min(low, first), max(high, self.end)
            self.ended.append(Run(kept | part, again, self.replaced + Counter(replaced)))
            self.end = self.last
        else:
            self.ended.append(Run(part, None, self.replaced))
            self.begin, self.end = min(part), self.last
        self.replaced = Counter()
