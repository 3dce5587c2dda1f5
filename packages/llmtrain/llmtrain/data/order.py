"""Order of training: the questions and sources at each position.

    mixture = Mixture([17398, 7473], weights=[0.7, 0.3])
    mixture.take(position, 32, seed)        # [(source, index), ...]: the next 32 draws

The order is a pure function of seed and position, so a checkpoint stores only the position. An epoch has as many draws
as there are questions in total:

    slots of an epoch, shuffled    0 1 0 0 1 0 ...     each source has exactly its share of them
    passes over source 0           4 . 1 3 . 0 ...     each pass has its own order
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Mixture:
    """Draws from sources of questions, in an order fixed by a seed.

    Each source is drawn in passes: no question repeats before all others of its source were drawn. Without weights
    a source's share is its size, so an epoch contains every question once.
    """

    def __init__(self, sizes: Sequence[int], weights: Sequence[float] | None = None) -> None:
        """sizes: questions in each source. weights: relative shares of the draws, with any sum.

        Shares are rounded to whole draws per epoch by largest remainder (ties go to the earlier source).

        Raises:
            ValueError: for an empty source, for a wrong number of weights, and for weights that are negative, not
                finite, all zero, or so small that a source is never drawn.
        """
        if not sizes:
            raise ValueError("a mixture needs at least one source")
        for i, size in enumerate(sizes):
            if size < 1:
                raise ValueError(f"source {i} of the mixture has no questions")
        self.sizes = tuple(sizes)
        self.draws = sum(sizes)
        """Draws in an epoch."""
        self.shares = self.sizes if weights is None else self._shares(weights)
        """Draws of each source in an epoch; their sum is `draws`."""
        self._epochs: dict[tuple[int, int], NDArray[np.int64]] = {}

    def _shares(self, weights: Sequence[float]) -> tuple[int, ...]:
        if len(weights) != len(self.sizes):
            raise ValueError(f"{len(weights)} weights for {len(self.sizes)} sources: give one for each")
        wanted = np.asarray(weights, dtype=np.float64)
        for i, weight in enumerate(weights):
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(f"weight {i} of the mixture is {weight}: expected 0 or more")
        if not wanted.any():
            raise ValueError("all weights of the mixture are 0")
        exact = wanted / wanted.max()  # before the sum, which stays finite for huge weights
        exact *= self.draws / exact.sum()
        shares = np.floor(exact).astype(np.int64)
        left = self.draws - int(shares.sum())
        shares[np.argsort(shares - exact, kind="stable")[:left]] += 1
        for i, weight in enumerate(weights):
            if weight > 0 and not shares[i]:
                raise ValueError(f"weight {i} of the mixture, {weight}, is less than one draw in {self.draws}")
        return tuple(int(share) for share in shares)

    def epoch(self, position: int) -> int:
        """Return the epoch, from 1, of the draw at `position` (from 0)."""
        return 1 + position // self.draws

    def take(self, position: int, count: int, seed: int) -> list[tuple[int, int]]:
        """Return (source, index within it) of the `count` draws from `position` on.

        Raises:
            ValueError: for a negative position or count.
        """
        if position < 0 or count < 0:
            raise ValueError(f"position and count must be 0 or more; got {position} and {count}")
        taken: list[tuple[int, int]] = []
        while len(taken) < count:
            epoch, offset = divmod(position + len(taken), self.draws)
            part = self._order(epoch, seed)[offset : offset + count - len(taken)]
            taken += [(source, index) for source, index in part.tolist()]
        return taken

    def _order(self, epoch: int, seed: int) -> NDArray[np.int64]:
        """Return all draws of an epoch (from 0), (draws, 2). The last two epochs are cached: a step may need both."""
        key = (epoch, seed)
        if key not in self._epochs:
            while len(self._epochs) > 1:
                del self._epochs[next(iter(self._epochs))]
            self._epochs[key] = self._draw(epoch, seed)
        return self._epochs[key]

    def _draw(self, epoch: int, seed: int) -> NDArray[np.int64]:
        slots = np.repeat(np.arange(len(self.sizes)), self.shares)
        order = np.stack([stream(seed, 0, epoch).permutation(slots), np.empty_like(slots)], axis=1)
        for source, share in enumerate(self.shares):
            order[order[:, 0] == source, 1] = self._walk(source, epoch * share, share, seed)
        return order

    def _walk(self, source: int, first: int, count: int, seed: int) -> NDArray[np.int64]:
        """Return a source's indices at positions first, ..., first + count − 1 of its passes, (count,)."""
        size = self.sizes[source]
        passes = range(first // size, -(-(first + count) // size))
        walked = [stream(seed, 1, source, number).permutation(size) for number in passes]
        return np.concatenate([np.empty(0, np.int64), *walked])[first % size :][:count]


def stream(seed: int, *stream: int) -> np.random.Generator:
    """Return the generator of one stream of a seed."""
    return np.random.default_rng([seed % 2**64, *stream])
