"""Cache in which the responses to a prompt share its keys and values, and that keeps its place while tokens are added.

A prompt's keys and values stay as they were computed, (P, H, L, d); a response has room for its own, (B, H, room, d).
A new token attends to both under one softmax. Its scores for the prompt are those of one matrix product for all
responses to that prompt, so a prompt is read once for all of them, instead of being copied and read for each.

Nothing here asks the device for a number while tokens are added, so that a step can be captured as a CUDA graph.

Shapes: P prompts of at most L tokens, left-padded; w responses to each, B rows in all; H heads of keys and values, G
query heads for each of them, d their size.
"""

import math
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from ..policy.attention import as_given

LINE = 16
"""The room of a response is a multiple of so many tokens: products with odd parts of a row are slow on a CPU."""
ROOM = 128
"""Tokens of room at a time on a device whose steps are captured: each time all is copied and captured anew."""


@dataclass(frozen=True)
class Grid:
    """Places of B rows in a grid of P prompts and w columns, so that responses to a prompt are side by side."""

    prompts: int
    width: int
    place: Tensor | None
    """Place of each row in the flattened grid (B); None if the rows fill it in order."""

    @classmethod
    def of(cls, owner: Tensor, device: torch.device) -> "Grid":
        """Return the grid of rows in the order of their prompts `owner` (B), on the CPU, which are 0..P−1."""
        counts = owner.bincount()
        width = int(counts.max())
        if int(counts.min()) == width:
            return cls(len(counts), width, None)
        column = torch.arange(len(owner)) - (counts.cumsum(0) - counts)[owner]
        return cls(len(counts), width, (owner * width + column).to(device))

    def spread(self, rows: Tensor) -> Tensor:
        """Return rows (B, H, G, D) by prompt, (P, H, w·G, D); free places are 0."""
        if self.place is not None:
            free = rows.new_zeros(self.prompts * self.width, *rows.shape[1:])
            rows = free.index_copy_(0, self.place, rows)
        return rows if self.width == 1 else rows.unflatten(0, (self.prompts, -1)).transpose(1, 2).flatten(2, 3)

    def collect(self, spread: Tensor) -> Tensor:
        """Return the rows (B, H, G, D) of what `spread` returned."""
        if self.width > 1:
            spread = spread.unflatten(2, (self.width, -1)).transpose(1, 2).flatten(0, 1)
        return spread if self.place is None else spread.index_select(0, self.place)


class SharedLayer(DynamicLayer):
    """Keys and values of one layer: of the prompts, then of the tokens that were added to each response."""

    def __init__(self, cache: "SharedCache", window: int | None) -> None:
        """window: tokens that a token attends to, itself included; None: all before it."""
        super().__init__()
        self.cache: SharedCache = weakref.proxy(cache)
        self.window = window
        self.prompts: list[Tensor] = []
        self.own: list[Tensor] = []

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.own:
            return super().update(key_states, value_states, *args, **kwargs)
        at = self.cache.at
        for held, states in zip(self.own, (key_states, value_states), strict=True):
            if isinstance(at, Tensor):
                held.index_copy_(2, at, states.to(held.dtype))
            else:
                held[:, :, at : at + 1] = states
        self.cache.written += 1
        keys, values = self.own
        return keys, values

    def get_seq_length(self) -> Any:
        return self.cache.width + self.cache.at if self.own else super().get_seq_length()

    def share(self, rows: int, room: int, dtype: torch.dtype | None) -> None:
        """Go from prompts to responses: make `room` for `rows` of them. dtype: type to store, None for the states'."""
        assert self.keys is not None
        assert self.values is not None
        self.prompts = [x.to(dtype or x.dtype).contiguous() for x in (self.keys, self.values)]
        self.keys = self.values = None
        self.own = [x.new_zeros(rows, x.shape[1], room, x.shape[3]) for x in self.prompts]
        self._mark()

    def grow(self, room: int) -> None:
        for i, held in enumerate(self.own):
            self.own[i] = held.new_zeros(*held.shape[:2], room, held.shape[3])
            self.own[i][:, :, : held.shape[2]] = held
        self._mark()

    def keep(self, rows: Tensor, prompts: Tensor | None) -> None:
        """Keep these rows, ascending, and these prompts; None for all prompts."""
        some = max(1, len(rows) // 8)  # move in parts, to limit temporary memory
        for i, held in enumerate(self.own):
            for start in range(0, len(rows), some):
                part = rows[start : start + some]
                held[start : start + len(part)] = held.index_select(0, part)
            self.own[i] = held[: len(rows)]
        if prompts is not None:
            self.prompts = [x.index_select(0, prompts) for x in self.prompts]
        self._mark()

    def _mark(self) -> None:
        """Let the attention find this layer by the keys that it is given."""
        self.own[0].layer = weakref.proxy(self)  # type: ignore[attr-defined]

    def attend(self, query: Tensor, scaling: float | None, softcap: float | None = None) -> Tensor:
        """Return the attention (B, 1, H·G, d) of queries (B, H·G, 1, d).

        softcap: scores x become softcap·tanh(x / softcap).
        """
        cache, (keys, values), (prompt_keys, prompt_values) = self.cache, self.own, self.prompts
        grid, dtype = cache.grid, keys.dtype
        prompt_bias, own_bias = cache.biases[self.window]
        with as_given(query):
            query = query * (query.shape[-1] ** -0.5 if scaling is None else scaling)
            groups = query[:, :, 0].to(dtype).unflatten(1, (keys.shape[1], -1))  # (B, H, G, d)
            of_prompt, own = _product(grid.spread(groups), prompt_keys.mT), _product(groups, keys.mT)
            if softcap is not None:
                of_prompt, own = ((x / softcap).tanh() * softcap for x in (of_prompt, own))
            if prompt_bias is not None:
                of_prompt = of_prompt + prompt_bias
            scores = torch.cat([grid.collect(of_prompt), own + own_bias], -1)
            weights = scores.softmax(-1, dtype=torch.float32).to(dtype)
            length = cache.width
            found = grid.collect(grid.spread(weights[..., :length]) @ prompt_values) + weights[..., length:] @ values
        cache.read += 1
        return found.flatten(1, 2)[:, None]


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b (…, m, n); on a GPU in fp32, as scores of attention are."""
    if a.is_cuda and a.dtype != torch.float32:
        return torch.bmm(a.flatten(0, 1), b.flatten(0, 1), out_dtype=torch.float32).unflatten(0, a.shape[:2])
    return a @ b


class SharedCache(DynamicCache):
    """Cache of prompts, then of responses that share them; `share` is between the two."""

    may_leave: bool = True

    def __init__(
        self,
        config: PretrainedConfig,
        lengths: Tensor,
        device: torch.device,
        dtype: torch.dtype | None = None,
        captured: bool = False,
    ) -> None:
        """Begin with prompts of these lengths (P), on the CPU.

        dtype: type to store in, None for that of the states. captured: write at a place that the device counts.
        """
        super().__init__(config=config)
        self.shared = [SharedLayer(self, getattr(layer, "sliding_window", None)) for layer in self.layers]
        self.layers = [*self.shared]
        self.lengths, self.device, self.dtype, self.captured = lengths, device, dtype, captured
        self.width = int(lengths.max())
        self.at: int | Tensor = 0
        """Tokens that each response has in the cache: a number, or (1,) on the device if steps are captured."""
        self.written = self.read = 0
        self.biases: dict[int | None, tuple[Tensor | None, Tensor]] = {}
        """Addends to the scores for prompts (P, 1, 1, L) and own tokens (room), by window: 0, or −∞ where hidden."""
        self.mask: Tensor | None = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
        """Given to the model, which builds none of its own for a mask of four dimensions."""

    def share(self, counts: Tensor, tokens: int) -> None:
        """Go from prompts to `counts` responses to each (P), on the CPU, with room for up to `tokens` tokens."""
        device = self.device
        width = math.gcd(*counts.tolist())  # responses that share a copy of their prompt
        if bool((counts > width).any()):
            self.lengths = self.lengths.repeat_interleave(counts // width)
            repeats: Any = (counts // width).to(device)
            self.batch_repeat_interleave(repeats)
        self.owner = torch.arange(len(self.lengths)).repeat_interleave(width)
        self.grid = Grid.of(self.owner, device)
        self.tokens = tokens
        self.at = torch.zeros(1, dtype=torch.long, device=device) if self.captured else 0
        self.room = self._more(0)
        self._hide_padding()
        for layer in self.shared:
            layer.share(len(self.owner), self.room, self.dtype)

    def _hide_padding(self) -> None:
        padding = (self.width - self.lengths)[:, None]
        self.padded = (torch.arange(self.width) < padding).to(self.device) if bool(padding.any()) else None

    def _more(self, used: int) -> int:
        """Return the tokens of room to make when `used` are full."""
        more = max(ROOM if self.captured else LINE, used // 8)
        return min(used + more + -more % LINE, self.tokens + -self.tokens % LINE)

    def fits(self, used: int) -> bool:
        """Return whether there is room for one token after `used`; if not, make some, at another place."""
        if used < self.room:
            return True
        self.room = self._more(used)
        for layer in self.shared:
            layer.grow(self.room)
        return False

    def before(self) -> None:
        """Call before each token: hide what it may not see."""
        self.written = self.read = 0
        ahead = self.at - torch.arange(self.room, device=self.device)  # tokens from each place to the new one
        for window in {layer.window for layer in self.shared}:
            own, prompt = ahead < 0, self.padded
            if window is not None:
                own = own | (ahead >= window)
                far = self.width - torch.arange(self.width, device=self.device) + self.at >= window
                prompt = far[None] if prompt is None else prompt | far
            self.biases[window] = None if prompt is None else _bias(prompt[:, None, None]), _bias(own)

    def after(self) -> None:
        """Call after each token. Raises RuntimeError if a layer's attention did not go through its cache."""
        if self.written != self.read:
            raise RuntimeError("its attention changes keys before it uses them")
        self.at += 1

    def keep(self, rows: Tensor) -> None:
        """Keep these rows, ascending; prompts without rows leave too."""
        owner = self.owner[rows.cpu()]
        left, owner = owner.unique(return_inverse=True)
        prompts = None
        if len(left) < self.grid.prompts:
            self.lengths, prompts = self.lengths[left], left.to(self.device)
            self._hide_padding()
        self.owner, self.grid = owner, Grid.of(owner, self.device)
        for layer in self.shared:
            layer.keep(rows, prompts)


def _bias(hidden: Tensor) -> Tensor:
    return torch.where(hidden, -torch.inf, 0.0)


def can_share(config: PretrainedConfig) -> bool:
    """Return whether every layer of a model attends to all tokens before, or to a sliding window of them."""
    kinds = getattr(config.get_text_config(), "layer_types", None) or []
    layers = DynamicCache(config=config).layers
    return (
        bool(layers)
        and all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
        and not any(kind.startswith("chunked") for kind in kinds)
    )
