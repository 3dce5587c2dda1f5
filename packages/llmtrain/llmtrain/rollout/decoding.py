"""Decoding: one more token for all unfinished rows at a time.

    draw ─► [who goes on? ─► finished rows leave ─► step: forward ─► draw]*

On a GPU a step is captured as a CUDA graph and replayed: it asks the device for nothing, and its tensors keep their
place until rows leave or the cache needs more room. There rows leave by halves, and only every LOOK tokens the host
asks who goes on. On a CPU the same step runs as it is.

Shapes: B rows, b of them still decoded, T tokens at most, R statistics of a token.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

DROP_BELOW = 0.8
"""Share of unfinished rows below which finished rows leave the batch on a CPU; each time a part of the cache moves."""
LOOK = 8
"""Tokens between two looks at who goes on, where the host would have to wait for the device."""


class Memory(Protocol):
    """Cache of a model, and what it takes to add a token."""

    mask: Tensor | None
    may_leave: bool

    def fits(self, used: int) -> bool: ...
    def before(self) -> None: ...
    def after(self) -> None: ...
    def keep(self, rows: Tensor) -> None: ...


class Decoding:
    """Rows that are decoded together, and what was drawn for all rows."""

    def __init__(
        self,
        forward: Callable[[Tensor, Tensor], Tensor],
        sample: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        memory: Memory,
        *,
        position: Tensor,
        uniforms: Tensor,
        limits: Tensor,
        ends: Tensor,
        statistics: int,
        capture: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
    ) -> None:
        """
        forward: takes tokens (b, 1) and their positions (b, 1), returns logits (b, V).
        sample: takes logits (b, V) and uniforms (b), returns tokens (b) and statistics (b, R).
        position: of each row's next token (B). uniforms: (B, T). limits: tokens that a row may have (B).
        ends: tokens that end a row. statistics: R.
        capture: makes a step, returns what repeats it; None to run every step as written.
        """
        self.forward, self.sample, self.memory, self.capture = forward, sample, memory, capture
        self.uniforms, self.limits, self.ends = uniforms, limits, ends
        rows, device = len(position), position.device
        self.tokens = torch.zeros(uniforms.shape, dtype=torch.long, device=device)
        self.stats = torch.zeros(*uniforms.shape, statistics, device=device)
        self.lengths = limits.clone()
        self.finished = torch.zeros(rows, dtype=torch.bool, device=device)
        self.rows = torch.arange(rows, device=device)
        self.t = torch.zeros(1, dtype=torch.long, device=device)
        """Place of the next token in a response."""
        self.token, self.position, self.open = torch.zeros_like(position), position.clone(), limits > 0
        self.length, self.ended, self.limit = limits.clone(), self.finished.clone(), limits

    def run(self, logits: Tensor) -> int:
        """Draw all tokens, the first from these logits (B, V); return how many times."""
        self._draw(logits)
        replay: Callable[[], None] | None = None
        waits = self.rows.device.type != "cpu"
        drawn = 1
        for t in range(1, self.uniforms.shape[1]):
            if not waits or t % LOOK == 0:
                going_on = int(self.open.sum())
                if not going_on:
                    break
                if (stay := self._rows_to_keep(going_on)) < len(self.rows):
                    self._keep(stay)
                    replay = None
            if not self.memory.fits(t - 1):
                replay = None
            if replay is not None:
                replay()
            elif self.capture is None:
                self._step()
            else:
                replay = self.capture(self._step)
            drawn += 1
        self._put_back()
        return drawn

    def _step(self) -> None:
        self.memory.before()
        logits = self.forward(self.token[:, None], self.position[:, None])
        self.memory.after()
        self.position += 1
        self._draw(logits)

    def _draw(self, logits: Tensor) -> None:
        token, found = self.sample(logits, self.uniforms[self.rows, self.t])
        # A finished row overwrites only entries past its length.
        self.tokens[self.rows, self.t], self.stats[self.rows, self.t] = token, found
        ended = (token[:, None] == self.ends).any(1) & self.open
        self.t += 1
        self.length.copy_(torch.where(ended, self.t, self.length))
        self.ended |= ended
        self.open &= ~ended & (self.limit > self.t)
        self.token.copy_(token)

    def _rows_to_keep(self, going_on: int) -> int:
        rows = len(self.rows)
        if not self.memory.may_leave:
            return rows
        if self.capture is None:
            return going_on if going_on < DROP_BELOW * rows else rows
        while going_on <= rows // 2:
            rows //= 2
        return rows

    def _keep(self, count: int) -> None:
        """Keep those rows that go on, and as many others as make up the count."""
        self._put_back()
        keep = self.open.to(torch.int8).argsort(descending=True, stable=True)[:count].sort().values
        self.memory.keep(keep)
        names: Any = ("rows", "token", "position", "open", "length", "ended", "limit")
        for name in names:
            setattr(self, name, getattr(self, name)[keep])

    def _put_back(self) -> None:
        self.lengths[self.rows], self.finished[self.rows] = self.length, self.ended


def capture_cuda(step: Callable[[], None]) -> Callable[[], None]:
    """Make a step, then capture it; return the replay of its graph."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay
