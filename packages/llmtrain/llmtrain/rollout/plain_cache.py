"""transformers' own cache, for models whose layers keep more than keys and values, or attend in ways of their own."""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PretrainedConfig


class PlainCache(DynamicCache):
    """Each response has a copy of its prompt; all that a layer holds is copied for every token."""

    def __init__(self, config: PretrainedConfig, lengths: Tensor, device: torch.device, *, may_leave: bool) -> None:
        """Begin with prompts of these lengths (P), on the CPU. may_leave: rows can be repeated and dropped."""
        super().__init__(config=config)
        self.may_leave, self.device = may_leave, device
        width = int(lengths.max())
        padded = torch.arange(width) >= (width - lengths)[:, None]
        self.mask: Tensor | None = None if bool(padded.all()) else padded.long().to(device)

    def share(self, counts: Tensor, tokens: int) -> None:
        """Go from prompts to `counts` responses to each (P), on the CPU."""
        if self.may_leave:
            repeats: Any = counts.to(self.device)
            self.batch_repeat_interleave(repeats)
            if self.mask is not None:
                self.mask = self.mask.repeat_interleave(repeats, 0)

    def fits(self, used: int) -> bool:
        return True

    def before(self) -> None:
        if self.mask is not None:
            self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.mask), 1)], 1)

    def after(self) -> None:
        pass

    def keep(self, rows: Tensor) -> None:
        self.batch_select_indices(rows)
        if self.mask is not None:
            self.mask = self.mask[rows]
