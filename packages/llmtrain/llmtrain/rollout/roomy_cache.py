"""Cache of keys and values with room for later tokens.

transformers' cache copies all of its content for every added token. Here a token is written into its place, and all is
copied only when the room is full: once in ROOM tokens.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer

ROOM = 256
"""Upper limit for the tokens of free room."""


class RoomyLayer(DynamicLayer):
    """Keys and values (B, heads, length, d), stored as the beginning of longer tensors."""

    def __init__(self, room: int, dtype: torch.dtype | None = None) -> None:
        """room: number of tokens to reserve when the tensors are made. dtype: theirs, None for that of the states."""
        super().__init__()
        self.room = room
        self.stored_as = dtype
        self.rooms: list[Tensor] = []
        """Full tensors of keys and values; empty before `batch_repeat_interleave`, because prompts need no room."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.rooms:
            return super().update(key_states, value_states, *args, **kwargs)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if end > self.rooms[0].shape[-2]:
            self._make_room(end, 1)
        for room, states in zip(self.rooms, (key_states, value_states), strict=True):
            room[..., start:end, :] = states
        return self._show(end)

    def batch_repeat_interleave(self, repeats: int | Tensor) -> None:
        self._make_room(self.get_seq_length(), repeats)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these sequences, ascending, moved to the front."""
        length, count = self.get_seq_length(), len(indices)
        some = max(1, count // 8)  # move in parts, to limit temporary memory
        for i, room in enumerate(self.rooms):
            for start in range(0, count, some):
                part = indices[start : start + some]
                room[start : start + len(part), :, :length] = room[part, :, :length]
            self.rooms[i] = room[:count]
        self._show(length)

    def _make_room(self, length: int, repeats: int | Tensor) -> None:
        """Allocate room for `length` tokens and `room` more, each sequence `repeats` times; a number or (B)."""
        assert self.keys is not None
        assert self.values is not None
        held, rooms = self.get_seq_length(), []
        for states in (self.keys, self.values):
            batch, heads, _, size = states.shape
            index = torch.arange(batch, device=states.device).repeat_interleave(repeats)
            shape = len(index), heads, length + self.room, size
            room = states.new_empty(shape, dtype=self.stored_as or states.dtype)
            room[..., :held, :] = states if len(index) == batch else states[index]
            rooms.append(room)
        self.rooms = rooms
        self._show(held)

    def _show(self, length: int) -> tuple[Tensor, Tensor]:
        keys, values = (room[..., :length, :] for room in self.rooms)
        self.keys, self.values = keys, values
        return keys, values


def make_cache(config: PretrainedConfig, tokens: int, dtype: torch.dtype | None = None) -> DynamicCache:
    """Return a cache for a model that samples up to `tokens` tokens; sliding-window layers keep transformers' cache.

    tokens: 0 for transformers' cache in all layers.
    dtype: type to store keys and values in, None for the type that the model computes them in.
    """
    cache, room = DynamicCache(config=config), min(tokens, ROOM)
    if not room:
        return cache
    cache.layers = [RoomyLayer(room, dtype) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache
