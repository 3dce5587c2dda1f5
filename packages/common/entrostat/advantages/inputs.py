"""Checks of what an advantage is told: rewards, groups, and the inputs that some need beside them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..numbers.segments import Segments

OF_RESPONSES = ("greedy", "rewards", "length")
"""Inputs with a number for each response."""
OF_TOKENS = ("logp", "s2", "prm_logp", "ref_logp", "response")
"""Inputs with a number for each token."""
OF_ONE_POLICY = 1e-2
"""Rounding, of half precision, by which Σπ² may seem to be below π²."""
ABOVE_ONE = 1e-3
"""Rounding (nats, or of a sum of squares) by which a probability may seem to exceed 1."""


def check_tensors(name: str, reward: Any, group_id: Any = None, **others: Any) -> None:
    """Raise TypeError or ValueError unless rewards, groups and lengths are tensors of as many numbers."""
    if not isinstance(reward, Tensor) or not reward.ndim or reward.is_complex():
        what = "a single number" if isinstance(reward, Tensor) else type(reward).__name__
        what = f"of {reward.dtype}" if isinstance(reward, Tensor) and reward.is_complex() else what
        raise TypeError(f"advantage {name!r}: reward must be a tensor with a number for each response, not {what}")
    given = {"group_id": group_id, "length": others.get("length")}
    for key, value in given.items():
        if value is None or isinstance(value, Segments):
            continue
        if not isinstance(value, Tensor) or (key == "group_id" and value.is_floating_point()):
            what = f"of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
            of, hint = ("integers", ": number the prompts") if key == "group_id" else ("numbers of tokens", "")
            raise TypeError(f"advantage {name!r}: {key} must be a tensor of {of}, not {what}{hint}")
        if value.shape[-1:] != reward.shape[-1:]:
            raise ValueError(
                f"advantage {name!r}: {key} has shape {tuple(value.shape)} for {reward.shape[-1]} responses"
            )
        if key == "group_id" and value.ndim > reward.ndim:
            raise ValueError(f"advantage {name!r}: group_id has more dimensions than the rewards: {tuple(value.shape)}")


def check_told(name: str, reward: Tensor, given: Mapping[str, Any]) -> None:
    """Raise TypeError or ValueError if an input beside rewards and groups is not what its name says."""
    told = {key: given[key] for key in (*OF_RESPONSES, *OF_TOKENS, "weight") if given.get(key) is not None}
    tokens = next((len(x) for x in (told.get("response"),) if isinstance(x, Tensor) and x.ndim), None)
    for key, value in told.items():
        if not isinstance(value, Tensor) or not value.ndim:
            what = "a single number" if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(f"advantage {name!r}: {key} must be a tensor, not {what}")
        count = {"weight": None}.get(key, reward.shape[-1] if key in OF_RESPONSES else tokens)
        if count is not None and value.shape[-1] != count:
            each = "responses" if key in OF_RESPONSES else "tokens"
            raise ValueError(f"advantage {name!r}: {key} has shape {tuple(value.shape)} for {count} {each}")
        if not bool(value.isfinite().all()):
            raise ValueError(f"advantage {name!r}: {key} is not finite everywhere")
        if key in ("logp", "prm_logp", "ref_logp") and bool((value > ABOVE_ONE).any()):
            raise ValueError(f"advantage {name!r}: {key} must be log-probabilities, at most 0; got {value.max():g}")
        if key == "length" and bool((value < 0).any()):
            raise ValueError(f"advantage {name!r}: length must not be negative; got {value.min():g}")
        if key == "response" and (value.is_floating_point() or value.dtype in (torch.bool, torch.uint8)):
            raise TypeError(f"advantage {name!r}: response must be a tensor of int64, not of {value.dtype}")
        if key == "s2" and bool(((value < 0) | (value > 1 + ABOVE_ONE)).any()):
            raise ValueError(f"advantage {name!r}: s2 must be Σπ² of each token, from 0 to 1; got {value.max():g}")
        if key == "response" and value.numel() and not 0 <= int(value.min()) <= int(value.max()) < reward.shape[-1]:
            last, got = reward.shape[-1] - 1, int(value.min() if value.min() < 0 else value.max())
            raise ValueError(f"advantage {name!r}: response must number the responses from 0 to {last}; got {got}")
    if "logp" in told and "s2" in told and bool((told["s2"] < told["logp"].exp() ** 2 - OF_ONE_POLICY).any()):
        raise ValueError(f"advantage {name!r}: s2 is below π² of a token's logp: they are not of one policy")
