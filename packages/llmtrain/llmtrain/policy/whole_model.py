"""Check that a loaded model is whole: every weight was in its folder and is finite, and it knows the tokenizer's ids.

transformers draws a missing weight at random and warns; policy, reference and rollout engine then differ silently.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

SHOWN = 3
"""Names that a message lists."""


def require_whole(
    path: str | Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, loading: Mapping[str, Any]
) -> None:
    """Raise ValueError, naming what is wrong, unless a model is whole.

    loading: what `from_pretrained(..., output_loading_info=True)` tells.
    """
    for kind, problem in (
        ("missing_keys", "has no weights for"),
        ("unexpected_keys", "has weights that its class does not have:"),
        ("mismatched_keys", "has weights of another shape:"),
    ):
        if names := [name if isinstance(name, str) else name[0] for name in loading.get(kind) or ()]:
            raise ValueError(f"model folder {path} {problem} {listed(names)}")
    strange = [name for name, weight in model.named_parameters() if not _finite(weight)]
    if strange:
        raise ValueError(f"model folder {path} has weights that are not finite: {listed(strange)}")
    embeddings: Any = model.get_input_embeddings()
    rows, largest = len(embeddings.weight), max(tokenizer.get_vocab().values(), default=0)
    if largest >= rows:
        raise ValueError(
            f"model folder {path} has a tokenizer with ids up to {largest}, but a vocabulary of {rows}: "
            "they are not of the same model"
        )


def listed(names: Collection[str]) -> str:
    """Return the first names, sorted, and how many there are besides."""
    shown, more = sorted(names)[:SHOWN], len(names) - SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _finite(weight: torch.Tensor) -> bool:
    if not weight.numel() or not weight.is_floating_point() or weight.is_meta:
        return True
    low, high = weight.detach().aminmax()  # NaN wins both
    return bool(torch.isfinite(low) and torch.isfinite(high))
