"""Record of a benchmark, computed from its responses: all numbers of results.json, the table and the figures.

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
from ..verifiers.math.answer_text import MAX_ANSWER_CHARS, compact, tidy
from ..verifiers.math.plain_number import number
from ..verifiers.verdict import Verdict
from .calibration import Calibration, calibration, densities
from .correlations import spearman
from .difficulty import Group, by_difficulty, covariances
from .diversity import diversity, length_summary, reflective
from .outcomes import ABSTAINED, Interval, Numbers, avg_at_k, interval, maj_at_k, pass_at_k


def ballot(answer: str) -> str:
    """Return the key that equal answers share."""
    if len(answer) > MAX_ANSWER_CHARS:
        return answer
    text = tidy(answer)
    value = number(text)
    return compact(text) if value is None else str(value)


def votes(verdicts: Sequence[Verdict], responses: Sequence[str], n: int) -> NDArray[np.int64]:
    """Return the number of each response's answer (Q, n), from the verdicts (Q·n,) in order of questions.

    If no verdict contains an answer, the whole response is the answer (Countdown, exact). Otherwise responses without
    an answer abstain.
    """
    whole = all(verdict.extracted is None for verdict in verdicts)
    answers = list(responses) if whole else [verdict.extracted for verdict in verdicts]
    numbers: dict[str, int] = {}
    given = [ABSTAINED if answer is None else numbers.setdefault(ballot(answer), len(numbers)) for answer in answers]
    return np.array(given, dtype=np.int64).reshape(-1, n)


STD_EPS = 1e-6
"""Number added to a group's standard deviation, as in GRPO."""


@dataclass(frozen=True)
class Answered:
    """The n responses to a question as arrays (n,), with their diversity."""

    correct: NDArray[np.bool_]
    votes: NDArray[np.int64]
    tokens: NDArray[np.int64]
    finished: NDArray[np.bool_]
    logp: Numbers
    """Mean log p over the tokens of each response (nats)."""
    entropy: Numbers
    reflective: NDArray[np.int64]
    ngram_diversity: float
    self_bleu: float

    @staticmethod
    def of(lines: Sequence[dict[str, Any]]) -> "Answered":
        """Return the answers of one question from its lines of responses.jsonl."""
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
    """Results of a model on a benchmark. Intervals are over questions; log-probabilities and entropies in nats."""

    source: str
    questions: int
    samples: int
    sampling: Sampling
    avg: Interval
    """avg@n, over all samples."""
    pass_at: dict[int, Interval]
    """Unbiased pass@k by k, from 1 to n."""
    maj_at: dict[int, Interval]
    length: dict[str, float]
    """Tokens per response: mean, quartiles, maximum."""
    finished: float
    """Share of responses that ended with a stop token."""
    entropy: float
    """Mean entropy over all response tokens."""
    prompt_entropy: Interval
    prompt_entropy_ratio: float
    """Ratio to the start model's prompt entropy; NaN without a start model."""
    prompt_entropy_spearman: float
    """Spearman's ρ with accuracy over questions (Revisiting Entropy, C.3)."""
    ngram_diversity: Interval
    self_bleu: Interval
    reflective: float
    """Reflective phrases per response."""
    reflective_share: float
    """Share of responses with a reflective phrase."""
    calibration: Calibration
    densities: dict[str, list[float]]
    difficulty: list[Group]
    """Empty with one sample per question, which has no advantage."""
    accuracy_of_question: list[float]
    prompt_entropy_of_question: list[float]


SURE_PLACES = 5
"""Decimals of a prompt's entropy that do not depend on the rest of its batch, so that equal prompts tie in rank."""


def measure(
    source: str,
    sampling: Sampling,
    answered: Sequence[Answered],
    prompt_entropy: Numbers,
    start_entropy: Numbers | None = None,
    ks: Sequence[int] = (),
    seed: int = 0,
) -> Record:
    """Return the record of a benchmark.

    Args:
        source: name of the benchmark.
        sampling: its sampling settings.
        answered: its questions (Q), all with the same number n of samples.
        prompt_entropy: entropy of each question's prompt (Q,), in nats.
        start_entropy: prompt entropy of the start model (Q,), in nats.
        ks: values of k for pass@k and maj@k besides 1, 2, 4, ... and n; values above n are left out.
        seed: seed of the intervals and of the subsets for maj@k.
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
    """Return Cov by difficulty from outcomes (Q, n), mean log p and length of each response (Q·n,), with GRPO's A."""
    reward, owner = correct.astype(np.float64), np.repeat(np.arange(len(correct)), correct.shape[1])
    centred = reward - reward.mean(axis=1, keepdims=True)
    advantage = centred / (reward.std(axis=1, ddof=1, keepdims=True) + STD_EPS)
    found = covariances(logp, advantage.ravel(), owner, tokens)
    return by_difficulty(found, np.bincount(owner, tokens), correct.mean(axis=1))
