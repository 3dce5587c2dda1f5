"""Lines of responses.jsonl: each response to a question with its verdict and statistics."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..data import Question
from ..sequences.rollouts import Rollouts
from ..verifiers.verdict import Verdict
from .statistics import Means

Verify = Callable[[Sequence[Question], Sequence[str]], Sequence[Verdict]]
"""Function from questions and one response to each to verdicts."""
DIGITS = 6
"""Decimals of log-probabilities and entropies (nats) in the file: the precision of fp32."""


def answers(
    rollouts: Rollouts,
    means: Means,
    questions: Sequence[Question],
    tokenizer: PreTrainedTokenizerBase,
    verify: Verify,
) -> list[dict[str, Any]]:
    """Return one line for each of B responses.

    Args:
        rollouts: responses.
        means: mean log-probability and entropy of each response, (B,).
        questions: questions of the prompts in `rollouts`.
        tokenizer: decodes the responses.
        verify: judges the texts.
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
            "copied": verdict.copied,
            "tokens": tokens,
            "finished": finished,
            "logp": round(float(logp), DIGITS),
            "entropy": round(float(entropy), DIGITS),
        }
        for text, verdict, tokens, finished, logp, entropy in columns
    ]
