"""Base class of verifiers: judges of responses that may hold processes."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from .asked import stands_in, text_of
from .own_error import OwnError
from .thinking import UNFINISHED, after_mark, after_thinking
from .verdict import Verdict

FAILURES = ("timeout", "crash", "error", "undecided")
"""Kinds of checks without an answer."""


class Verifier(AbstractContextManager, ABC):
    """Judge of responses; a with block closes it."""

    thinks = False
    """True if thinking before the answer is left out by its usual marks, see `thinking`."""
    answer_after = ""
    """Mark that the answer follows, such as </think>; a response without it has no answer. "": none."""

    def __init__(self) -> None:
        self.failures: dict[str, int] = Counter()
        """Checks without an answer so far, by kind, see FAILURES. Their responses count as wrong."""
        self.errors: list[OwnError] = []
        """First error that a user's function raised; empty if none did."""

    def __call__(
        self,
        responses: Sequence[str],
        ground_truths: Sequence[Any],
        sources: Sequence[str] = (),
        prompts: Sequence[Any] = (),
    ) -> list[Verdict]:
        """Return one verdict for each pair, in order.

        Args:
            responses: Texts of a model.
            ground_truths: Truth for each.
            sources: Source of each question, for verifiers that depend on it (`BySource`); others ignore them.
            prompts: Text or chat messages that each response answers. With them, `math` takes no answer that is a
                formula still to be worked out, and a verdict says if the answer stands in its prompt.

        Raises:
            ValueError: for sequences of different lengths, and for a ground truth the verifier cannot use.
        """
        if len(responses) != len(ground_truths):
            raise ValueError(f"{len(responses)} responses for {len(ground_truths)} ground truths")
        if prompts and len(prompts) != len(responses):
            raise ValueError(f"{len(responses)} responses for {len(prompts)} prompts")
        texts = [text_of(prompt) for prompt in prompts] or [""] * len(responses)
        parts = [self._answer_part(response) for response in responses]
        rows = [row for row in zip(parts, ground_truths, texts, strict=True) if row[0] is not None]
        judged = self.judge_asked(*map(list, zip(*rows, strict=True))) if rows else []
        if len(judged) != len(rows):
            raise ValueError(f"{type(self).__name__} gave {len(judged)} verdicts on {len(rows)} responses")
        left = iter(judged)
        return [
            Verdict(False, UNFINISHED) if part is None else _seen(next(left), text)
            for part, text in zip(parts, texts, strict=True)
        ]

    def _answer_part(self, response: str) -> str | None:
        """Return the part of a response that may hold its answer, or None if there is none."""
        if self.answer_after:
            return after_mark(response, self.answer_after)
        return after_thinking(response) if self.thinks else response

    def judge_asked(
        self, responses: Sequence[str], ground_truths: Sequence[Any], questions: Sequence[str]
    ) -> list[Verdict]:
        """Return the verdicts on responses to questions, "" for unknown ones; by default questions are ignored."""
        return self.judge(responses, ground_truths)

    @abstractmethod
    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        """Return the verdicts, given as many ground truths as responses."""

    def close(self) -> None:
        """End the processes, if there are any."""

    def __exit__(self, *error: object) -> None:
        self.close()


def judged(verifier: Verifier, questions: Sequence[Any], responses: Sequence[str]) -> list[Verdict]:
    """Return the verdict on each response to its question, as llmtrain.data has them."""
    truths, sources, prompts = ([getattr(q, name) for q in questions] for name in ("ground_truth", "source", "prompt"))
    return verifier(responses, truths, sources, prompts)


def _seen(verdict: Verdict, question: str) -> Verdict:
    """Return the verdict, marked if a correct answer stands in its question."""
    if not verdict.correct or not verdict.extracted or not question:
        return verdict
    return replace(verdict, copied=stands_in(verdict.extracted, question))
