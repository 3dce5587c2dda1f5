"""Responses to questions, judged and measured: a line each, as responses.jsonl holds them."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..data import Question
from ..sequences.rollouts import Rollouts
from ..verifiers.verdict import Verdict
from .statistics import Means

Verify = Callable[[Sequence[Question], Sequence[str]], Sequence[Verdict]]
"""Questions, and a response to each, to verdicts."""
DIGITS = 6
"""Decimals of a written log-probability or entropy (nats): fp32 holds no more."""


def answers(
    rollouts: Rollouts,
    means: Means,
    questions: Sequence[Question],
    tokenizer: PreTrainedTokenizerBase,
    verify: Verify,
) -> list[dict[str, Any]]:
    """A line for each of B responses.

    Args:
        rollouts: the responses.
        means: of the tokens of each, (B,).
        questions: those that the prompts of `rollouts` ask.
        tokenizer: makes texts of responses.
        verify: judges.
    """
    texts = rollouts.texts(tokenizer)
    verdicts = verify([questions[owner] for owner in rollouts.prompt_index.tolist()], texts)
    columns = zip(texts, verdicts, rollouts.response_lengths.tolist(), rollouts.finished.tolist(), *means, strict=True)
    return [
        {
            "response": text,
            "extracted": verdict.extracted,
            "correct": verdict.correct,
            "reason": verdict.reason,
            "tokens": tokens,
            "finished": finished,
            "logp": round(float(logp), DIGITS),
            "entropy": round(float(entropy), DIGITS),
        }
        for text, verdict, tokens, finished, logp, entropy in columns
    ]
