"""Diversity, reflective phrases and lengths of the responses to a question.

    responses (n texts) ─► words ─► n-grams with their counts in each response ─► n-gram diversity, Self-BLEU

A word is a run of letters and digits, or any other single character except spaces; words are case-sensitive. Both
metrics depend on the number n of responses to a question, so compare them only at equal n. Torch-free.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

ORDERS = 4
"""Longest n-gram, in words (Revisiting Entropy, C.1)."""
REFLECTIVE = ("wait", "alternatively", "let's reconsider")
"""Phrases of self-reflection, as listed in EntroPIC D.6."""

_WORD = re.compile(r"\w+|[^\w\s]")
_PHRASE = re.compile(rf"\b(?:{'|'.join(map(re.escape, REFLECTIVE))})\b", re.IGNORECASE)


class Grams(NamedTuple):
    """N-grams of one order in a group of responses: one entry for each distinct n-gram of each response."""

    gram: Ints
    """Number of the n-gram, from 0 (E,)."""
    owner: Ints
    """Number of the response (E,)."""
    times: Ints
    """Count of the n-gram in the response (E,)."""


def ngrams(responses: Sequence[str]) -> Iterator[Grams]:
    """Yield the n-grams of 1, 2, ... ORDERS words of the responses."""
    words = [_WORD.findall(text) for text in responses]
    owner = np.repeat(np.arange(len(words)), [len(some) for some in words])
    number: dict[str, int] = {}
    word = np.array([number.setdefault(w, len(number)) for some in words for w in some], dtype=np.int64)
    gram = word
    for order in range(1, ORDERS + 1):
        last = owner[order - 1 :]
        within = owner[: len(last)] == last
        yield _counted(gram[within], last[within], len(words))
        gram = np.unique(gram[:-1] * len(number) + word[order:], return_inverse=True)[1]


def _counted(gram: Ints, owner: Ints, responses: int) -> Grams:
    """Return entries with counts from M occurrences: `gram` and `owner` (M,)."""
    pair, count = np.unique(gram * responses + owner, return_counts=True)
    return Grams(*np.divmod(pair, max(responses, 1)), count)


class Diversity(NamedTuple):
    """Diversity of the responses to a question."""

    ngrams: float
    self_bleu: float


def diversity(responses: Sequence[str]) -> Diversity:
    """Return n-gram diversity and Self-BLEU of the responses."""
    found = list(ngrams(responses))
    return Diversity(_unique_share(found), _self_bleu(found, len(responses)))


def _unique_share(found: Sequence[Grams]) -> float:
    """Return the share of unique n-grams in a question's responses, mean over n = 1..4 (Revisiting Entropy, eq. 8).

    Li et al. 2016 call it distinct-n. Orders longer than every response are left out; NaN if no response has a word.
    """
    shares = [len(np.unique(g.gram)) / g.times.sum() for g in found if len(g.gram)]
    return float(np.mean(shares)) if shares else float("nan")


def _self_bleu(found: Sequence[Grams], size: int) -> float:
    """Return mean BLEU of responses with the others as references, 0 to 1 (Zhu et al. 2018; Revisiting Entropy, C.1).

    BLEU of a response is the mean of its BLEU-1 to BLEU-4, computed by sacrebleu from the words defined above with
    exponential smoothing and effective order. NaN if fewer than two responses have a word.
    """
    from sacrebleu.metrics.bleu import BLEU

    total = np.stack([np.bincount(g.owner, g.times, size) for g in found], axis=1).astype(int)
    matched = np.stack([np.bincount(g.owner, _matched(g), size) for g in found], axis=1).astype(int)
    filled = total[:, 0] > 0
    if filled.sum() < 2:
        return float("nan")
    total, matched = total[filled], matched[filled]
    nearest = _nearest_other(total[:, 0])
    scores = [
        BLEU.compute_bleu(
            matched[i, :order].tolist(),
            total[i, :order].tolist(),
            int(total[i, 0]),
            int(nearest[i]),
            smooth_method="exp",
            effective_order=True,
            max_ngram_order=order,
        ).score
        for i in range(len(total))
        for order in range(1, ORDERS + 1)
    ]
    return float(np.mean(scores)) / 100


def _matched(grams: Grams) -> Ints:
    """Return each entry's count, limited to the n-gram's highest count in any other response (E,)."""
    order = np.lexsort((-grams.times, grams.gram))
    gram, count = grams.gram[order], grams.times[order]
    first = np.ones(len(gram), dtype=bool)
    first[1:] = gram[1:] != gram[:-1]
    most = count[first][np.cumsum(first) - 1]  # over all responses
    following = np.append(count[1:], 0) * ~np.append(first[1:], True)  # second-highest count, used for the highest
    out = np.empty_like(count)
    out[order] = np.minimum(count, np.where(first, following, most))
    return out


def _nearest_other(lengths: Ints) -> Ints:
    """Return for each of R >= 2 lengths the nearest other length, the shorter one in a tie (R,)."""
    gap = np.abs(lengths[:, None] - lengths).astype(np.float64) + 0.5 * (lengths > lengths[:, None])
    np.fill_diagonal(gap, np.inf)
    return lengths[gap.argmin(axis=1)]


def reflective(responses: Sequence[str]) -> Ints:
    """Return counts of REFLECTIVE phrases, as whole words in any case, in each response (R,) (EntroPIC, D.6)."""
    return np.array([len(_PHRASE.findall(text.replace("’", "'"))) for text in responses], dtype=np.int64)


def length_summary(tokens: ArrayLike) -> dict[str, float]:
    """Return mean, quartiles and maximum of response lengths (R,), in tokens."""
    found = np.asarray(tokens, dtype=np.float64)
    if not found.size:
        raise ValueError("no response has a length")
    low, median, high = np.quantile(found, (0.25, 0.5, 0.75))
    return {"mean": found.mean(), "q25": low, "median": median, "q75": high, "max": found.max()}
