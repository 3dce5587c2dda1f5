"""Time of each phase of a rollout step."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Clock:
    """Seconds of each phase since the last reading. Time in a nested phase counts only for the inner phase.

    On a GPU marks are events between its operations, and only `read` waits for it: a phase has the time of the work
    that it gave the GPU.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.failed: str | None = None
        """Innermost phase that ended with an error, until another one begins."""
        self._open: list[str] = []
        self._whole: str | None = None
        self._since: Any = None
        self._passed: list[tuple[str, Any, Any]] = []
        """Phases with the marks at which they began and ended."""

    def _mark(self) -> None:
        """Give the time since the last mark to the innermost open phase."""
        now: Any = time.perf_counter()
        if self.device == "cuda":
            now = torch.cuda.Event(enable_timing=True)
            now.record()
        if self._open:
            self._passed.append((self._open[-1], self._since, now))
        self._since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Run a block and add its time to this phase."""
        self.failed = None
        self._mark()
        self._open.append(self._whole or name)
        try:
            yield
        except BaseException:
            self.failed = self.failed or name
            if self.device != "cuda":  # a call after an error of CUDA would raise another one, which hides it
                self._mark()
            raise
        else:
            self._mark()
        finally:
            self._open.pop()

    @contextmanager
    def whole_phase(self, name: str) -> Iterator[None]:
        """Run a block and add all its time to this phase, that of nested phases too."""
        outside, self._whole = self._whole, self._whole or name
        try:
            with self.phase(name):
                yield
        finally:
            self._whole = outside

    def read(self) -> dict[str, float]:
        """Return `time/<phase>` in seconds for each phase, and reset."""
        self._mark()
        spent: dict[str, float] = defaultdict(float)
        if self.device == "cuda" and self._passed:
            self._since.synchronize()
        for name, begin, end in self._passed:
            spent[f"time/{name}"] += end - begin if self.device != "cuda" else begin.elapsed_time(end) / 1e3
        self._passed = []
        return dict(spent)
