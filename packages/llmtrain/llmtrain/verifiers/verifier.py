"""Base class of verifiers: judges of responses that may hold processes."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from .verdict import Verdict

FAILURES = ("timeout", "crash", "error")
"""Kinds of checks without an answer."""


class Verifier(AbstractContextManager, ABC):
    """Judge of responses; a with block closes it."""

    def __init__(self) -> None:
        self.failures: dict[str, int] = Counter()
        """Checks without an answer so far, by kind, see FAILURES. Their responses count as wrong."""

    def __call__(
        self, responses: Sequence[str], ground_truths: Sequence[Any], sources: Sequence[str] = ()
    ) -> list[Verdict]:
        """Return one verdict for each pair, in order.

        sources: source of each question, for verifiers that depend on it (`BySource`); others ignore them.

        Raises:
            ValueError: for two sequences of different lengths, and for a ground truth the verifier cannot use.
        """
        if len(responses) != len(ground_truths):
            raise ValueError(f"{len(responses)} responses for {len(ground_truths)} ground truths")
        return self.judge(responses, ground_truths)

    @abstractmethod
    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        """Return the verdicts, given as many ground truths as responses."""

    def close(self) -> None:
        """End the processes, if there are any."""

    def __exit__(self, *error: object) -> None:
        self.close()
