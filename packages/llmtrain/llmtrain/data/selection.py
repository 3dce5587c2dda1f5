"""Subsets of questions for the study of data diversity: at random, or the largest K-means clusters of their prompts.

    prompts ► last layer, mean over tokens (Q, D) ► K-means ► clusters, largest first ► the first `size` questions

Source: "Revisiting entropy", 6.3 and appendix D.3. The paper's subsets are whole clusters (10,001, 5,031, 2,538, ...
questions); here the last cluster is cut, so that a subset has the requested size, equal to that of a random subset.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


ITERATIONS = 100


def random_subset(n_questions: int, size: int, seed: int) -> list[int]:
    """Return `size` of the indices 0, ..., n_questions − 1, drawn without replacement, ascending.

    Raises:
        ValueError: unless 1 <= size <= n_questions.
    """
    _check_size(size, n_questions)
    return sorted(np.random.default_rng(seed % 2**64).choice(n_questions, size, replace=False).tolist())


def kmeans_clusters(embeddings: NDArray[np.float32], clusters: int, seed: int) -> list[NDArray[np.int64]]:
    """Return the question indices of each cluster, nearest to its centre first; largest cluster first.

    embeddings: (Q, D). Of clusters with equal size, the one with the earliest question is first.

    Raises:
        ValueError: unless 1 <= clusters <= Q and all numbers are finite.
    """
    if not 1 <= clusters <= len(embeddings):
        raise ValueError(f"clusters must be within 1 and {len(embeddings)}, the number of questions; got {clusters}")
    if not np.isfinite(embeddings).all():
        raise ValueError("embeddings have numbers that are not finite")
    from scipy.cluster.vq import kmeans2

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One of the clusters is empty")  # then there are fewer
        centres, labels = kmeans2(embeddings, clusters, iter=ITERATIONS, minit="++", rng=seed % 2**64)
    distance = np.square(embeddings - centres[labels]).sum(axis=1)
    order = np.lexsort((distance, labels))
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted(groups, key=lambda group: (-len(group), group.min()))


def cut(clusters: Sequence[NDArray[np.int64]], size: int) -> list[NDArray[np.int64]]:
    """Return the first clusters with `size` questions in total; the last one is cut.

    Raises:
        ValueError: unless `size` is between 1 and the number of questions.
    """
    _check_size(size, sum(map(len, clusters)))
    starts = np.cumsum([0, *map(len, clusters)])
    return [cluster[: size - start] for cluster, start in zip(clusters, starts, strict=False) if start < size]


def _check_size(size: int, questions: int) -> None:
    if not 1 <= size <= questions:
        raise ValueError(f"size must be within 1 and {questions}, the number of questions; got {size}")


def embed(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompt_ids: Sequence[Sequence[int]],
    batch_tokens: int = 8192,
) -> NDArray[np.float32]:
    """Return the mean over each prompt's tokens of the last layer's states (after its norm), (Q, D) in float32.

    Prompts of similar length share a forward pass of `batch_tokens` tokens, padding included. The means exclude
    padding. If stderr is a terminal, it shows a progress bar.

    Raises:
        ValueError: for a prompt without tokens.
    """
    import torch
    from rich.console import Console
    from rich.progress import track

    from ..sequences.layout import similar

    for i, ids in enumerate(prompt_ids):
        if not len(ids):
            raise ValueError(f"prompt {i} has no tokens")
    lengths = torch.tensor([len(ids) for ids in prompt_ids])
    device, pad = model.device, tokenizer.pad_token_id or 0
    found = torch.empty(len(prompt_ids), model.config.get_text_config().hidden_size)
    console = Console(stderr=True)
    model.eval()
    parts = track(similar(lengths, batch_tokens), "embed", console=console, disable=not console.is_terminal)
    with torch.inference_mode():
        for part in parts:
            inside = torch.arange(int(lengths[part].max())) < lengths[part, None]
            rows = torch.full(inside.shape, pad)
            rows[inside] = torch.tensor([token for i in part.tolist() for token in prompt_ids[i]])
            mask = inside.to(device)
            states = model.base_model(rows.to(device), attention_mask=mask.long(), use_cache=False).last_hidden_state
            total = torch.where(mask[..., None], states.float(), 0.0).sum(dim=1)
            found[part] = (total / mask.sum(dim=1, keepdim=True)).cpu()
    return found.numpy()
