"""From the responses of a benchmark to its record: everything that results.json, the table and the figures show.

    lines of one question ─► Answered ─┐
    ...                                ├─► measure ─► Record
    prompt entropies (Q,) ─────────────┘

Torch-free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..settings.sampling import Sampling
from ..verifiers.verdict import Verdict
from .ballots import votes
from .calibration import Calibration, calibration, densities
from .correlations import spearman
from .difficulty import Group, by_difficulty, covariances
from .diversity import diversity, length_summary, reflective
from .outcomes import Interval, Numbers, avg_at_k, interval, maj_at_k, pass_at_k

STD_EPS = 1e-6
"""Added to a group's standard deviation, as GRPO does."""


@dataclass(frozen=True)
class Answered:
    """The n responses to a question, as arrays (n,), and how they differ."""

    correct: NDArray[np.bool_]
    votes: NDArray[np.int64]
    tokens: NDArray[np.int64]
    finished: NDArray[np.bool_]
    logp: Numbers
    """Mean over the tokens of each response (nats)."""
    entropy: Numbers
    reflective: NDArray[np.int64]
    ngram_diversity: float
    self_bleu: float

    @staticmethod
    def of(lines: Sequence[dict[str, Any]]) -> "Answered":
        """From the lines of responses.jsonl that belong to one question."""
        texts = [line["response"] for line in lines]
        verdicts = [Verdict(line["correct"], line["reason"], line["extracted"]) for line in lines]

        different = diversity(texts)

        def column(name: str) -> NDArray:
            return np.array([line[name] for line in lines])

        return Answered(
            correct=column("correct"),
            votes=votes(verdicts, texts, len(texts))[0],
            tokens=column("tokens"),
            finished=column("finished"),
            logp=column("logp"),
            entropy=column("entropy"),
            reflective=reflective(texts),
            ngram_diversity=different.ngrams,
            self_bleu=different.self_bleu,
        )


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a model did on a benchmark. Intervals are over questions; log-probabilities and entropies in nats."""

    source: str
    questions: int
    samples: int
    sampling: Sampling
    avg: Interval
    """avg@n: all samples."""
    pass_at: dict[int, Interval]
    """Unbiased pass@k, k from 1 to n."""
    maj_at: dict[int, Interval]
    length: dict[str, float]
    """Tokens of a response: mean, quartiles, longest."""
    finished: float
    """Share of responses that ended by themselves."""
    entropy: float
    """Mean over all response tokens."""
    prompt_entropy: Interval
    prompt_entropy_ratio: float
    """To the start model's, NaN without one."""
    prompt_entropy_spearman: float
    """With accuracy, over questions (Revisiting Entropy, C.3)."""
    ngram_diversity: Interval
    self_bleu: Interval
    reflective: float
    """Phrases per response."""
    reflective_share: float
    """Share of responses with one."""
    calibration: Calibration
    densities: dict[str, list[float]]
    difficulty: list[Group]
    """Empty with one sample per question, which has no advantage."""
    accuracy_of_question: list[float]
    prompt_entropy_of_question: list[float]


SURE_PLACES = 5
"""Decimals of a prompt's entropy that do not depend on what it was batched with: equal prompts are to tie in rank."""


def measure(
    source: str,
    sampling: Sampling,
    answered: Sequence[Answered],
    prompt_entropy: Numbers,
    start_entropy: Numbers | None = None,
    ks: Sequence[int] = (),
    seed: int = 0,
) -> Record:
    """The record of a benchmark.

    Args:
        source: its name.
        sampling: how it was sampled.
        answered: its questions (Q), all with the same number n of samples.
        prompt_entropy: of each question's prompt (Q,).
        start_entropy: the same before training.
        ks: k of pass@k and maj@k besides 1, 2, 4, ... and n; those above n are left out.
        seed: of intervals, and of the subsets of maj@k.
    """
    correct = np.stack([one.correct for one in answered])
    ballots = np.stack([one.votes for one in answered])
    n, accuracy = correct.shape[1], correct.mean(axis=1)
    chosen = sorted({2**i for i in range(n.bit_length())} | {n} | {k for k in ks if 1 <= k <= n})
    columns = ("tokens", "finished", "logp", "entropy", "reflective")
    flat = {name: np.concatenate([getattr(one, name) for one in answered]) for name in columns}
    of_prompts = interval(prompt_entropy, seed)
    of_start = np.nan if start_entropy is None else interval(start_entropy, seed).mean
    return Record(
        source=source,
        questions=len(answered),
        samples=n,
        sampling=sampling,
        avg=interval(avg_at_k(correct, n), seed),
        pass_at={k: interval(pass_at_k(correct, k), seed) for k in chosen},
        maj_at={k: interval(maj_at_k(correct, ballots, k, seed), seed) for k in chosen},
        length=length_summary(flat["tokens"]),
        finished=float(flat["finished"].mean()),
        entropy=float(np.average(flat["entropy"], weights=flat["tokens"])),
        prompt_entropy=of_prompts,
        prompt_entropy_ratio=of_prompts.mean / of_start,
        prompt_entropy_spearman=spearman(np.round(prompt_entropy, SURE_PLACES), accuracy),
        ngram_diversity=interval([one.ngram_diversity for one in answered], seed),
        self_bleu=interval([one.self_bleu for one in answered], seed),
        reflective=float(flat["reflective"].mean()),
        reflective_share=float((flat["reflective"] > 0).mean()),
        calibration=calibration(flat["logp"], correct.ravel()),
        densities=densities(flat["logp"], correct.ravel()),
        difficulty=_difficulty(correct, flat["logp"], flat["tokens"]) if n > 1 else [],
        accuracy_of_question=accuracy.tolist(),
        prompt_entropy_of_question=prompt_entropy.tolist(),
    )


def _difficulty(correct: NDArray[np.bool_], logp: Numbers, tokens: NDArray[np.int64]) -> list[Group]:
    """Of outcomes (Q, n), mean log p and length of each response (Q·n,), under GRPO's advantage."""
    reward, owner = correct.astype(np.float64), np.repeat(np.arange(len(correct)), correct.shape[1])
    centred = reward - reward.mean(axis=1, keepdims=True)
    advantage = centred / (reward.std(axis=1, ddof=1, keepdims=True) + STD_EPS)
    found = covariances(logp, advantage.ravel(), owner, tokens)
    return by_difficulty(found, np.bincount(owner, tokens), correct.mean(axis=1))
