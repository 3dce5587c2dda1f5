"""Time of each phase of a rollout step."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Clock:
    """Seconds of each phase since the last reading. Time in a nested phase counts only for the inner phase."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.spent: dict[str, float] = defaultdict(float)
        self.failed: str | None = None
        """Innermost phase that ended with an error."""
        self._open: list[str] = []
        self._since = 0.0

    def _mark(self) -> None:
        """Add the time since the last mark to the innermost open phase."""
        if self.device == "cuda" and self.failed is None:
            torch.cuda.synchronize()
        now = time.perf_counter()
        if self._open:
            self.spent[self._open[-1]] += now - self._since
        self._since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Run a block and add its time to this phase."""
        self._mark()
        self._open.append(name)
        try:
            yield
        except BaseException:
            self.failed = self.failed or name
            raise
        finally:
            self._mark()
            self._open.pop()

    @contextmanager
    def whole_phase(self, name: str) -> Iterator[None]:
        """Run a block and add all its time to this phase, that of nested phases too."""
        self._mark()
        outside, self.spent = self.spent, defaultdict(float)
        try:
            with self.phase(name):
                yield
        finally:
            outside[name] += sum(self.spent.values())
            self.spent = outside

    def read(self) -> dict[str, float]:
        """Return `time/<phase>` in seconds for each phase, and reset."""
        self._mark()
        spent, self.spent = self.spent, defaultdict(float)
        return {f"time/{name}": seconds for name, seconds in spent.items()}
