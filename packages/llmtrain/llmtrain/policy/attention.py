"""Attention of a packed row without attention between its sequences, of short rows, and of a single new token.

For a packed row transformers passes torch a dense mask of width² numbers, and with a mask no kernel skips the masked
part, neither the future nor other sequences. Without one each sequence costs only its own length². All sequences take
one call of torch's variable-length attention on a GPU in bf16 or fp16, where to start a call may take longer than its
work, and elsewhere a call each.

Where several query heads share a head of keys and values, transformers copies keys and values for each of them. For a
single token the query heads of a group are attended to as if they were tokens instead, and nothing is copied.

On a CPU torch's kernel of attention is slow for short rows, most of all its backward pass in bf16. Plain matrix
products with a softmax between them take an eighth to half of its time, and in fp32 with a mask half to all of it
(`python -m benchmarks.attention_calls --short`). They keep the scores for the backward pass, so longer rows stay with
the kernel.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import varlen
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .precision import dtype_of_products

NAME = "by_sequence"
"""Name of this attention in transformers."""
REFUSED = "_refused_by_sequence"
"""Mark of a model that does not run with it: some families index the mask themselves."""
ASKS = re.compile(r"_attn_implementation\s*(?:==\s*\"sdpa\"|in\s*\()")
"""Source code that compares the name of an attention."""
NARROW = (torch.bfloat16, torch.float16)
"""Dtypes of the kernel for sequences of different lengths."""
WIDEST = 256
"""Largest size of a head that this kernel takes."""
SHORT = 256
"""Longest rows, in tokens, whose scores are held on a CPU in bf16; half as many in fp32 under a mask."""
VARLEN_OPTIONS = inspect.signature(varlen.varlen_attn).parameters
"""Arguments of torch's attention for sequences of different lengths: no scale before torch 2.11."""


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
    """Return torch's attention, within each sequence if the mask holds their lengths; that of a shared cache.

    Lengths are whole numbers on the CPU, of any shape: transformers leaves a mask of four dimensions as it is.
    """
    if (layer := getattr(key, "layer", None)) is not None:
        if options.get("position_bias") is not None:
            raise ValueError("responses cannot share the keys of a prompt: this attention has a bias of positions")
        return layer.attend(query, options.get("scaling"), options.get("softcap")), None
    if options.get("s_aux") is not None:
        raise ValueError("this attention has sinks")
    plain = options.get("position_bias") is None and options.get("softcap") is None
    if query.shape[2] == 1 and query.shape[1] > key.shape[1] and plain:
        return attend_in_groups(query, key, value, attention_mask, options.get("scaling")), None
    if attention_mask is None or attention_mask.dtype != torch.long:
        return attend_row(module, query, key, value, attention_mask, **options), None
    if attention_mask.numel() == 1:
        return attend_row(module, query, key, value, None, **options), None
    return attend_within(module, query, key, value, attention_mask.flatten(), **options), None


def attend_row(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
) -> Tensor:
    """Return the attention (B, T, H, d) of whole rows, under a mask or causal: direct or by torch's kernel."""
    softcap = options.get("softcap")  # which transformers leaves out where it takes torch's kernel
    if softcap is not None or (query.device.type == "cpu" and gains_directly(module, query, key, mask, **options)):
        return attend_directly(query, key, value, mask, options.get("scaling"), softcap)
    query, key, value, mask = in_its_dtype(query, key, value, mask)
    if (bias := options.get("position_bias")) is not None:
        options["position_bias"] = bias.to(query.dtype)
    with as_given(query):
        return sdpa_attention_forward(module, query, key, value, mask, **options)[0]


def gains_directly(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    **_: Any,
) -> bool:
    """Return True if direct attention is exact for these inputs on a CPU, and faster than torch's kernel."""
    if dropout or position_bias is not None:
        return False
    if dtype_of(query) not in NARROW:
        return mask is not None and key.shape[2] <= SHORT // 2
    causal = query.shape[2] == key.shape[2] and is_causal is not False and getattr(module, "is_causal", True)
    return key.shape[2] <= SHORT and (mask is not None or causal)


def dtype_of(x: Tensor) -> torch.dtype:
    """Return the dtype in which attention multiplies x: that of autocast, or its own."""
    kind = x.device.type
    return dtype_of_products(kind, torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x.dtype


def in_its_dtype(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return the inputs of torch's kernel in the dtype in which it multiplies; a mask of truth values as it is."""
    dtype = dtype_of(query)
    if mask is not None and mask.is_floating_point():
        mask = mask.to(dtype)
    return query.to(dtype), key.to(dtype), value.to(dtype), mask


def as_given(x: Tensor) -> AbstractContextManager[object]:
    """Return a context without autocast on the device of x."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


@torch.compiler.disable
def attend_directly(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    softcap: float | None = None,
) -> Tensor:
    """Return the attention (B, T, H, d) as matrix products; a mask is bool or added to the scores, None is causal.

    softcap: scores x become softcap·tanh(x / softcap), as in Gemma 2.
    """
    dtype = dtype_of(query)
    query, key, value = (x.to(dtype) for x in (query, key, value))
    with as_given(query):
        tokens, groups = query.shape[2], key.shape[1]
        query = query * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        scores = query.unflatten(1, (groups, -1)).flatten(2, 3) @ key.mT  # (B, groups, heads of a group · T, L)
        if softcap is not None:
            scores = (scores / softcap).tanh() * softcap
        if mask is None:
            mask = torch.ones(tokens, key.shape[2], dtype=torch.bool, device=key.device).tril(key.shape[2] - tokens)
        if mask.dtype == torch.bool:
            low = torch.finfo(dtype).min  # not −∞: a row of padding sees nothing, and must not become NaN
            mask = torch.zeros(mask.shape, dtype=dtype, device=key.device).masked_fill_(~mask, low)
        each = mask.repeat(*(1,) * (mask.dim() - 2), query.shape[1] // groups, 1)  # for each head of a group
        found = scores.add_(each).softmax(-1) @ value
        return found.unflatten(2, (-1, tokens)).flatten(1, 2).transpose(1, 2).contiguous()  # models may view it


@torch.compiler.disable
def attend_within(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, **options: Any
) -> Tensor:
    """Return the attention (1, T, H, d) within sequences of these lengths (n,), of T tokens in all."""
    dtype = dtype_of(query)
    fits = query.is_cuda and dtype in NARROW and query.shape[-1] <= WIDEST
    fits = fits and not options.get("dropout") and options.get("softcap") is None
    each = lengths.tolist()
    if fits and "scale" in VARLEN_OPTIONS:
        query, key, value = (x[0].transpose(0, 1).to(dtype) for x in (query, key, value))
        return attend_at_once(query, key, value, each, options.get("scaling"))[None]
    parts = zip(*(x.split(each, dim=2) for x in (query, key, value)), strict=True)
    return torch.cat([attend_row(module, q, k, v, None, **options) for q, k, v in parts], dim=1)


def attend_at_once(query: Tensor, key: Tensor, value: Tensor, each: list[int], scaling: float | None) -> Tensor:
    """Return the causal attention (T, H, d) within sequences of these lengths, of T tokens in all, in one call."""
    options: dict[str, Any] = {"scale": scaling, "window_size": (-1, 0)}
    if "enable_gqa" in VARLEN_OPTIONS:
        options["enable_gqa"] = True
    else:
        key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    edges, longest = edges_of(tuple(each), query.device), max(each)
    found = varlen.varlen_attn(query, key, value, edges, edges, longest, longest, **options)
    assert isinstance(found, Tensor)
    return found


@lru_cache(maxsize=8)
def edges_of(each: tuple[int, ...], device: torch.device) -> Tensor:
    """Return where sequences of these lengths begin, and where the last one ends, (n + 1,).

    All layers use the same tensor: to copy it for each of them the CPU would wait for the GPU. It may be kept by a
    rollout and used by an update, which cannot save a tensor of inference mode.
    """
    with torch.inference_mode(False):
        return nn.functional.pad(torch.tensor(each).cumsum(0), (1, 0)).to(device, torch.int32)


def attend_in_groups(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    """Return the attention (B, 1, H, d) of queries (B, H, 1, d) to keys and values of fewer heads (B, H/G, L, d)."""
    if mask is not None and mask.dtype == torch.long:
        mask = None  # the length of the only sequence
    query, key, value, mask = in_its_dtype(query, key, value, mask)
    groups = query[:, :, 0].unflatten(1, (key.shape[1], -1))
    with as_given(query):
        found = nn.functional.scaled_dot_product_attention(groups, key, value, attn_mask=mask, scale=scaling)
    return found.flatten(1, 2)[:, None]


def attend_by_sequence(model: PreTrainedModel) -> None:
    """Make a model that uses torch's attention use this one; no-op for other models, and for those that refused it."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, lengths_or_mask)
    takes = model.config._attn_implementation == "sdpa" and not getattr(model, REFUSED, False)
    if takes and not asks_for_its_name(model):
        model.set_attn_implementation(NAME)


def asks_for_its_name(model: PreTrainedModel) -> bool:
    """Return True if a family does something else unless its attention is called eager or sdpa, such as a mask."""
    try:
        return bool(ASKS.search(inspect.getsource(sys.modules[type(model).__module__])))
    except (OSError, TypeError):  # its source is not at hand
        return False


def attend_as_before(model: PreTrainedModel) -> bool:
    """Make a model use torch's attention again, and for good; return False if it did so anyway."""
    if model.config._attn_implementation != NAME:
        return False
    setattr(model, REFUSED, True)
    model.set_attn_implementation("sdpa")
    return True


def alone_in_a_row(model: PreTrainedModel) -> str:
    """Return why a model needs a row for each sequence; empty if it can share rows as far as is known.

    What shows only in long rows cannot be found with the few tokens of the proof.
    """
    config = model.config.get_text_config()
    if getattr(model, "_is_stateful", False):
        return "it carries a state from token to token"
    for name in ("attention_chunk_size", "attn_temperature_tuning"):
        if getattr(config, name, None):
            return f"it counts places in a row, not positions in a sequence ({name})"
    return ""


def longest_alike(model: PreTrainedModel) -> int | None:
    """Return the length (tokens) up to which rotations are those of each sequence alone; None for any length.

    Rotations of type dynamic and longrope follow the longest sequence of a batch beyond it.
    """
    config = model.config.get_text_config()
    found = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    for rope in (found, *(part for part in found.values() if isinstance(part, dict))):
        if (rope.get("rope_type") or rope.get("type")) in ("dynamic", "longrope"):
            own = rope.get("original_max_position_embeddings")
            return own or getattr(config, "original_max_position_embeddings", None) or config.max_position_embeddings
    return None


def longer_than_alike(model: PreTrainedModel, tokens: int, longest: int) -> str:
    """Return the complaint about a sequence of so many tokens in a model with the limit of `longest_alike`."""
    return (
        f"a sequence of {tokens} tokens: beyond {longest} the rotations (rope) of {type(model).__name__} (model_type "
        f"{model.config.model_type}) follow the longest sequence of a batch; use shorter sequences"
    )


def window_of(model: PreTrainedModel) -> int | None:
    """Return the sliding window or chunk size of limited layers (tokens); None if all layers attend to all before."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None) or getattr(config, "attention_chunk_size", None)
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]
    limited = any(kind.startswith(("sliding", "chunked")) for kind in kinds)
    return window if limited and window and window < getattr(config, "max_position_embeddings", math.inf) else None
