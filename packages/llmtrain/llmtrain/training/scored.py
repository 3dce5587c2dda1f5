"""Responses with their scores, before advantages."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..sequences.rollouts import Rollouts, join


@dataclass(frozen=True)
class Scored:
    """This rank's responses to P prompts, B of them, with their scores."""

    rollouts: Rollouts
    scores: Tensor
    """(1 + terms, B): 1 if correct and 0 if not, then the reward terms to add."""
    sources: Sequence[str]
    """Source of each prompt's question, P."""
    greedy: Tensor | None = None
    """Reward of the greedy response to each response's prompt, (B,); None if it is not needed."""

    def keep(self, prompts: Tensor) -> "Scored":
        """Return the responses to these prompts, which are ascending, with prompts renumbered from 0."""
        kept = torch.isin(self.rollouts.prompt_index, prompts)
        return Scored(
            self.rollouts.keep(prompts),
            self.scores[:, kept],
            [self.sources[i] for i in prompts.tolist()],
            None if self.greedy is None else self.greedy[kept],
        )

    @staticmethod
    def join(parts: "Sequence[Scored]") -> "Scored":
        """Concatenate responses to different prompts, with prompts numbered consecutively."""
        greedy = [part.greedy for part in parts if part.greedy is not None]
        return Scored(
            join([part.rollouts for part in parts]),
            torch.cat([part.scores for part in parts], 1),
            [source for part in parts for source in part.sources],
            torch.cat(greedy) if greedy else None,
        )
