"""Batches of sequences for the learner: packed token ids.

Shapes: B sequences, N response tokens over all of them, M tokens of prompts and responses together.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .ragged import ranges, starts
from .rollouts import Rollouts


@dataclass(frozen=True, eq=False)
class Batch:
    """B sequences as a model reads them, packed one after another; each is a prompt followed by its response."""

    ids: Tensor
    """Token ids (M,), int64."""
    prompt_lengths: Tensor
    """Tokens of each prompt (B,), int64; at least 1."""
    response_lengths: Tensor
    """Tokens of each response (B,), int64; at least 1, or 0 in a pass that only keeps step with other ranks."""

    @staticmethod
    def of(rollouts: Rollouts) -> "Batch":
        parts, responses = [], rollouts.response_ids.split(rollouts.response_lengths.tolist())
        prompts = [torch.tensor(ids) for ids in rollouts.prompt_ids]
        for i, response in zip(rollouts.prompt_index.tolist(), responses, strict=True):
            parts += [prompts[i], response]
        prompt_lengths = torch.tensor([len(ids) for ids in rollouts.prompt_ids])[rollouts.prompt_index]
        nothing = torch.empty(0, dtype=torch.long)
        return Batch(torch.cat([nothing, *parts]), prompt_lengths, rollouts.response_lengths)

    def __len__(self) -> int:
        return len(self.prompt_lengths)

    @property
    def lengths(self) -> Tensor:
        """Tokens of each sequence, prompt and response, (B,)."""
        return self.prompt_lengths + self.response_lengths

    def select(self, sequences: Tensor) -> "Batch":
        """Return the batch of these sequences, in the given order."""
        lengths = self.lengths
        return Batch(
            self.ids[ranges(starts(lengths)[sequences], lengths[sequences])],
            self.prompt_lengths[sequences],
            self.response_lengths[sequences],
        )

    def response_index(self, sequences: Tensor) -> Tensor:
        """Return the indices of the response tokens of `sequences` among all N response tokens, in order."""
        return ranges(starts(self.response_lengths)[sequences], self.response_lengths[sequences])

    def targets(self, sequences: Tensor) -> Tensor:
        """Return the response tokens of `sequences`, in the order of `response_index(sequences)`."""
        first = starts(self.lengths)[sequences] + self.prompt_lengths[sequences]
        return self.ids[ranges(first, self.response_lengths[sequences])]

    def padded(self, sequences: Tensor) -> Tensor:
        """Return the token ids of `sequences`, padded on the right with 0: (b, longest)."""
        lengths = self.lengths[sequences, None]
        column = torch.arange(int(lengths.max()))
        inside = column < lengths
        index = starts(self.lengths)[sequences, None] + column
        return torch.where(inside, self.ids[index.clamp(max=len(self.ids) - 1)], 0)


def padded(slices: list[Tensor], count: int) -> list[Tensor]:
    """Return `count` slices: the given ones, then empty ones, with which a rank keeps step with the others."""
    return slices + [torch.empty(0, dtype=torch.long)] * (count - len(slices))
