"""The few numbers of every evaluation during training.

    questions ► encode ► sample ► verify ► numbers of each question (Q, C) ► sum over ranks ► eval/avg@8, ...

A question is answered by one rank, which puts the numbers into its row; all other ranks have zeros there.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from ..data import Question
from ..prompts import encode_all
from ..ranks import Ranks
from ..rollout import Rollouts
from ..verdict import Verdict
from .ballots import votes
from .diversity import ngram_diversity, reflective
from .outcomes import avg_at_k, maj_at_k, pass_at_k

Verify = Callable[[Sequence[Question], Sequence[str]], Sequence[Verdict]]
"""Questions, and a response to each, to verdicts."""
COLUMNS = 4
"""Tokens, finished responses, n-gram diversity and reflective phrases of a question, after outcomes and votes."""


class Sampler(Protocol):
    """What evaluation needs of a rollout engine."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    def generate(self, prompt_ids: Sequence[list[int]], n: int) -> Rollouts: ...


def evaluate(
    sampler: Sampler,
    questions: Sequence[Question],
    verify: Verify,
    k: int,
    *,
    samples: int | None = None,
    batch_size: int = 256,
    ranks: Ranks | None = None,
) -> dict[str, float]:
    """Sample every question and score it.

    Args:
        sampler: draws the responses, those of this rank.
        questions: what to answer.
        verify: judges.
        k: k of avg@k, pass@k and maj@k.
        samples: samples per question, k by default; avg@k takes all of them, and more make pass@k less noisy.
        batch_size: questions sampled at a time.
        ranks: processes that share the questions; each gives the numbers of all.

    Returns:
        `eval/avg@k`, `eval/pass@k` and `eval/maj@k` (with k's value), `eval/pass@1`, `eval/length` (tokens, eos
        included), `eval/finished` (share of responses that ended by themselves), `eval/ngram_diversity` (mean over
        questions), `eval/reflective` (phrases per response). With several sources also `eval/<source>/avg@k`,
        `pass@k` and `maj@k`.

    Raises:
        ValueError: without a question, or for fewer samples than k.
    """
    n, ranks = k if samples is None else samples, ranks or Ranks()
    if not questions:
        raise ValueError("evaluate needs at least one question")
    table = np.zeros((len(questions), 2 * n + COLUMNS))
    for start in range(0, len(questions), batch_size):
        batch = questions[start : start + batch_size]
        rollouts = sampler.generate(encode_all(sampler.tokenizer, [question.prompt for question in batch]), n)
        owners = rollouts.prompt_index.tolist()
        verdicts = verify([batch[owner] for owner in owners], rollouts.texts(sampler.tokenizer))
        table[[start + owner for owner in owners[::n]]] = _rows(rollouts, verdicts, sampler.tokenizer, n)
    table = ranks.total(torch.from_numpy(table)).numpy()
    found = _scores(table[:, : 2 * n], k)
    tokens, finished, diversity, phrases = table[:, 2 * n :].T
    scores = {f"eval/{name}": value for name, value in found.items()} | {
        "eval/length": tokens.sum() / (len(questions) * n),
        "eval/finished": finished.sum() / (len(questions) * n),
        "eval/ngram_diversity": np.nan if np.isnan(diversity).all() else np.nanmean(diversity),
        "eval/reflective": phrases.sum() / (len(questions) * n),
    }
    sources = sorted({question.source for question in questions})
    for source in sources if len(sources) > 1 else ():
        mine = [question.source == source for question in questions]
        some = _scores(table[mine, : 2 * n], k)
        scores |= {f"eval/{source}/{name}": some[name] for name in (f"avg@{k}", f"pass@{k}", f"maj@{k}")}
    return {name: float(value) for name, value in scores.items()}


def _rows(
    rollouts: Rollouts, verdicts: Sequence[Verdict], tokenizer: PreTrainedTokenizerBase, n: int
) -> NDArray[np.float64]:
    """Numbers of each question that was answered here, in the order of its responses (q, 2n + COLUMNS)."""
    texts = rollouts.texts(tokenizer)
    groups = [texts[i : i + n] for i in range(0, len(texts), n)]
    correct = np.array([verdict.correct for verdict in verdicts], dtype=np.float64).reshape(-1, n)
    of_question = (
        rollouts.response_lengths.view(-1, n).sum(1).numpy(),
        rollouts.finished.view(-1, n).sum(1).numpy(),
        [ngram_diversity(group) for group in groups],
        [reflective(group).sum() for group in groups],
    )
    return np.column_stack([correct, votes(verdicts, texts, n), *of_question])


def _scores(answers: NDArray[np.float64], k: int) -> dict[str, float]:
    """Means over questions, from outcomes and votes (Q, 2n)."""
    correct, given = np.split(answers, 2, axis=1)
    found = {
        f"avg@{k}": avg_at_k(correct, correct.shape[1]),
        f"pass@{k}": pass_at_k(correct, k),
        "pass@1": pass_at_k(correct, 1),
        f"maj@{k}": maj_at_k(correct, given, k),
    }
    return {name: values.mean() for name, values in found.items()}
