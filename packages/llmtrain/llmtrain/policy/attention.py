"""Attention of a packed row, computed separately for each sequence, and of a single new token per sequence.

For a packed row transformers passes torch a dense mask of width² numbers, and with a mask no kernel skips the masked
part, neither the future nor other sequences. Without one each sequence costs only its own length².

Where several query heads share a head of keys and values, transformers copies keys and values for each of them. For a
single token the query heads of a group are attended to as if they were tokens instead, and nothing is copied.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "by_sequence"
"""Name of this attention in transformers."""


def lengths_or_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    mask_function: Callable[..., Tensor],
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    use_vmap: bool = False,
    **others: Any,
) -> Tensor | None:
    """Return the lengths (n,), on the CPU, of the n sequences of a packed row; for other inputs torch's mask."""
    rest = attention_mask is not None or local_size is not None or allow_is_causal_skip or use_vmap
    if rest or batch_size > 1 or q_length != kv_length:
        given = {"attention_mask": attention_mask, "local_size": local_size, "use_vmap": use_vmap, **others}
        given |= {"mask_function": mask_function, "allow_is_causal_skip": allow_is_causal_skip}
        return sdpa_mask(batch_size, q_length, kv_length, **given)
    place = torch.arange(1, q_length, device=others["device"])
    begins = place[~mask_function(0, 0, place, place - 1)].cpu()  # tokens that do not attend to the token before
    ends = torch.tensor([q_length])
    return torch.diff(torch.cat([begins, ends]), prepend=torch.tensor([0]))


def attend(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Return torch's attention, computed separately for each sequence if the mask holds their lengths."""
    if query.shape[2] == 1 and query.shape[1] > key.shape[1] and options.get("position_bias") is None:
        return attend_in_groups(query, key, value, attention_mask, options.get("scaling")), None
    if attention_mask is None or attention_mask.dim() > 1:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    parts = zip(*(x.split(attention_mask.tolist(), dim=2) for x in (query, key, value)), strict=True)
    found = [sdpa_attention_forward(module, q, k, v, None, **options)[0] for q, k, v in parts]
    return torch.cat(found, dim=1), None


def attend_in_groups(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    """Return the attention (B, 1, H, d) of queries (B, H, 1, d) to keys and values of fewer heads (B, H/G, L, d)."""
    if mask is not None and mask.dim() < 4:
        mask = None  # the length of the only sequence
    groups = query[:, :, 0].unflatten(1, (key.shape[1], -1))
    found = nn.functional.scaled_dot_product_attention(groups, key, value, attn_mask=mask, scale=scaling)
    return found.flatten(1, 2)[:, None]


def attend_by_sequence(model: PreTrainedModel) -> None:
    """Make a model that uses torch's attention use this one; no-op for other models."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, lengths_or_mask)
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME)


def window_of(model: PreTrainedModel) -> int | None:
    """Return the sliding window or chunk size of limited layers (tokens); None if all layers attend to all before."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None) or getattr(config, "attention_chunk_size", None)
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]
    limited = any(kind.startswith(("sliding", "chunked")) for kind in kinds)
    return window if limited and window and window < config.max_position_embeddings else None
