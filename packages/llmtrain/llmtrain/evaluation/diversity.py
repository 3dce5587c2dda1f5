"""How different the responses to a question are, and what they look like.

    responses (n texts) ─► words ─► n-grams, each with its count in each response ─► n-gram diversity, Self-BLEU

A word is a run of letters and digits, or a single other character that is not a space; case counts. Both metrics
depend on how many responses a question has, so compare them at the same n. Torch-free.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

ORDERS = 4
"""N-grams of 1 to ORDERS words are looked at (Revisiting Entropy, C.1)."""
REFLECTIVE = ("wait", "alternatively", "let's reconsider")
"""Phrases of a response that looks at itself again, those that EntroPIC D.6 names."""

_WORD = re.compile(r"\w+|[^\w\s]")
_PHRASE = re.compile(rf"\b(?:{'|'.join(map(re.escape, REFLECTIVE))})\b", re.IGNORECASE)


class Grams(NamedTuple):
    """The n-grams of one order in a group of responses, an entry for each response and n-gram in it."""

    gram: Ints
    """Which, numbered from 0 (E,)."""
    owner: Ints
    """The response that it is in (E,)."""
    times: Ints
    """How often (E,)."""


def ngrams(responses: Sequence[str]) -> Iterator[Grams]:
    """The n-grams of 1, 2, ... ORDERS words of each response."""
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
    """Entries from occurrences (M,)."""
    pair, count = np.unique(gram * responses + owner, return_counts=True)
    return Grams(*np.divmod(pair, max(responses, 1)), count)


class Diversity(NamedTuple):
    """How different the responses to a question are."""

    ngrams: float
    self_bleu: float


def diversity(responses: Sequence[str]) -> Diversity:
    """Both metrics, from n-grams that are counted once."""
    found = list(ngrams(responses))
    return Diversity(_unique_share(found), _self_bleu(found, len(responses)))


def _unique_share(found: Sequence[Grams]) -> float:
    """Unique n-grams among all n-grams of a question's responses, mean over n = 1..4 (Revisiting Entropy, eq. 8).

    Li et al. 2016 call it distinct-n. Orders longer than any response are left out; NaN when no response has a word.
    """
    shares = [len(np.unique(g.gram)) / g.times.sum() for g in found if len(g.gram)]
    return float(np.mean(shares)) if shares else float("nan")


def _self_bleu(found: Sequence[Grams], size: int) -> float:
    """Mean BLEU of each response with the others as references, 0 to 1 (Zhu et al. 2018; Revisiting Entropy, C.1).

    BLEU of a response is the mean of its BLEU-1 to BLEU-4, made by sacrebleu from the words above with its exponential
    smoothing and effective order. NaN with fewer than two responses that have a word.
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
    """The count of each entry, but no more than the n-gram has in the one other response with most of it (E,)."""
    order = np.lexsort((-grams.times, grams.gram))
    gram, count = grams.gram[order], grams.times[order]
    first = np.ones(len(gram), dtype=bool)
    first[1:] = gram[1:] != gram[:-1]
    most = count[first][np.cumsum(first) - 1]  # of any response
    following = np.append(count[1:], 0) * ~np.append(first[1:], True)  # the second most, where this entry has most
    out = np.empty_like(count)
    out[order] = np.minimum(count, np.where(first, following, most))
    return out


def _nearest_other(lengths: Ints) -> Ints:
    """For each of R >= 2 lengths the nearest of the others, the shorter of two (R,)."""
    gap = np.abs(lengths[:, None] - lengths).astype(np.float64) + 0.5 * (lengths > lengths[:, None])
    np.fill_diagonal(gap, np.inf)
    return lengths[gap.argmin(axis=1)]


def reflective(responses: Sequence[str]) -> Ints:
    """How often each response says one of REFLECTIVE, as whole words in any case (R,) (EntroPIC, D.6)."""
    return np.array([len(_PHRASE.findall(text.replace("’", "'"))) for text in responses], dtype=np.int64)


def length_summary(tokens: ArrayLike) -> dict[str, float]:
    """Mean, quartiles and longest of response lengths (R,), in tokens."""
    found = np.asarray(tokens, dtype=np.float64)
    if not found.size:
        raise ValueError("no response has a length")
    low, median, high = np.quantile(found, (0.25, 0.5, 0.75))
    return {"mean": found.mean(), "q25": low, "median": median, "q75": high, "max": found.max()}
