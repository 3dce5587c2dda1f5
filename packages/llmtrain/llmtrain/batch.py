"""Sequences as the learner sees them: packed token ids, cut into micro-batches by a token budget.

Shapes: B sequences, N response tokens over all of them, M tokens of prompts and responses together.
"""

import heapq
from dataclasses import dataclass

import torch
from torch import Tensor

from .rollout import Rollouts


@dataclass(frozen=True, eq=False)
class Batch:
    """B sequences, packed one after another; each is a prompt followed by its response."""

    ids: Tensor
    """Token ids (M,), int64."""
    prompt_lengths: Tensor
    """(B,), int64; at least 1."""
    response_lengths: Tensor
    """(B,), int64; at least 1."""

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
        """The batch of some of the sequences, in the order given."""
        lengths = self.lengths
        return Batch(
            self.ids[ranges(starts(lengths)[sequences], lengths[sequences])],
            self.prompt_lengths[sequences],
            self.response_lengths[sequences],
        )

    def response_index(self, sequences: Tensor) -> Tensor:
        """Where the response tokens of `sequences` lie among all N response tokens, in order."""
        return ranges(starts(self.response_lengths)[sequences], self.response_lengths[sequences])

    def packed(self, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Token ids of `sequences` one after the other, (m,), and the position of each in its sequence, (m,)."""
        lengths = self.lengths[sequences]
        return self.ids[ranges(starts(self.lengths)[sequences], lengths)], ranges(torch.zeros_like(lengths), lengths)

    def padded(self, sequences: Tensor) -> Tensor:
        """Token ids of `sequences`, padded on the right with 0: (b, longest)."""
        lengths = self.lengths[sequences, None]
        column = torch.arange(int(lengths.max()))
        inside = column < lengths
        index = starts(self.lengths)[sequences, None] + column
        return torch.where(inside, self.ids[index.clamp(max=len(self.ids) - 1)], 0)


def starts(lengths: Tensor) -> Tensor:
    """First index of each of consecutive runs of the given lengths."""
    return lengths.cumsum(0) - lengths


def ranges(first: Tensor, lengths: Tensor) -> Tensor:
    """Concatenation of first[i], first[i]+1, … first[i]+lengths[i]−1."""
    return torch.repeat_interleave(first - starts(lengths), lengths) + torch.arange(int(lengths.sum()))


def micro_batches(lengths: Tensor, sequences: Tensor, budget: int) -> list[Tensor]:
    """Cut `sequences` into slices of similar length whose padded size stays within `budget` tokens.

    lengths: of all sequences, (B,). A sequence longer than the budget gets a slice of its own.
    """
    rest = sequences[lengths[sequences].argsort(descending=True, stable=True)]
    slices = []
    while len(rest):
        count = max(1, budget // int(lengths[rest[0]]))
        slices.append(rest[:count])
        rest = rest[count:]
    return slices


def packs(lengths: Tensor, sequences: Tensor, budget: int) -> list[Tensor]:
    """Cut `sequences` into as few slices of about as many tokens each as stay within `budget` tokens.

    lengths: of all sequences, (B,). The longest goes first, each where the least is. One that is longer than the budget
    gets a slice of its own.
    """
    order = sequences[lengths[sequences].argsort(descending=True, stable=True)].tolist()
    size = dict(zip(sequences.tolist(), lengths[sequences].tolist(), strict=True))
    count = max(1, -(-sum(size.values()) // budget)) if order else 0
    while count:
        heap = [(0, place) for place in range(count)]
        slices: list[list[int]] = [[] for _ in heap]
        for sequence in order:
            tokens, place = heapq.heappop(heap)
            if tokens and tokens + size[sequence] > budget:
                break
            slices[place].append(sequence)
            heapq.heappush(heap, (tokens + size[sequence], place))
        else:
            return [torch.tensor(part) for part in slices if part]
        count += 1
    return []


def padded(slices: list[Tensor], count: int) -> list[Tensor]:
    """`count` slices: those given, then empty ones, with which a rank keeps step with the others."""
    return slices + [torch.empty(0, dtype=torch.long)] * (count - len(slices))
