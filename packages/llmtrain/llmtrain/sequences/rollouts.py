"""Sampled responses, packed; selecting and joining them.

Shapes: P prompts, B sequences, N response tokens in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .ragged import ranges, starts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FLAT = ("response_ids", "response_lengths", "logp", "prompt_index", "finished", "version")
"""Tensors of `Rollouts`."""


@dataclass
class Rollouts:
    """Sampled responses as an engine returns them, packed: sequence i owns `response_lengths[i]` consecutive entries of
    the flat fields.

    Sequences are ordered by prompt; other ranks may have more samples of a prompt. All tensors are on the CPU.

    Attributes:
        prompt_ids: token ids of each prompt (P lists).
        response_ids: sampled tokens, eos included (N), int64.
        response_lengths: number of tokens of each response (B), int64.
        logp: log-probability of each sampled token at the sampling temperature, in nats (N), float32.
        prompt_index: index of each sequence's prompt (B), int64.
        finished: True if the sequence ended with eos or a stop token, False if at the length limit (B), bool.
        version: version of the weights that drew each token: the rollout step that these weights were made for (N),
            int64; a single number stands for all tokens.
        stats: statistics of each token under the policy that drew it, in the order of `HeadStats` (5, N), float32; None
            unless the engine computes them, and where responses were exchanged or go on under other weights.
    """

    prompt_ids: list[list[int]]
    response_ids: Tensor
    response_lengths: Tensor
    logp: Tensor
    prompt_index: Tensor
    finished: Tensor
    version: Tensor = field(default_factory=lambda: torch.tensor(0))
    stats: Tensor | None = None

    def __post_init__(self) -> None:
        if torch.as_tensor(self.version).ndim == 0:
            self.version = torch.as_tensor(self.version).expand(len(self.response_ids))

    def __len__(self) -> int:
        return len(self.response_lengths)

    @property
    def lengths(self) -> Tensor:
        """Tokens of each sequence, prompt and response (B)."""
        return torch.tensor([len(ids) for ids in self.prompt_ids])[self.prompt_index] + self.response_lengths

    def take(self, sequences: Tensor) -> "Rollouts":
        """Return these sequences, in the given order."""
        lengths = self.response_lengths[sequences]
        tokens = ranges(starts(self.response_lengths)[sequences], lengths)
        return replace(
            self,
            response_ids=self.response_ids[tokens],
            response_lengths=lengths,
            logp=self.logp[tokens],
            prompt_index=self.prompt_index[sequences],
            finished=self.finished[sequences],
            version=self.version[tokens],
            stats=None if self.stats is None else self.stats[:, tokens],
        )

    def continued(self, sequences: Tensor, more: "Rollouts") -> "Rollouts":
        """Return the responses with the tokens of `more` after those of these sequences, which are distinct."""
        owners = torch.arange(len(self)).repeat_interleave(self.response_lengths)
        order = torch.cat([owners, sequences.repeat_interleave(more.response_lengths)]).argsort(stable=True)
        return replace(
            self,
            response_ids=torch.cat([self.response_ids, more.response_ids])[order],
            response_lengths=self.response_lengths.index_add(0, sequences, more.response_lengths),
            logp=torch.cat([self.logp, more.logp])[order],
            finished=self.finished.index_copy(0, sequences, more.finished),
            version=torch.cat([self.version, more.version])[order],
            stats=None,
        )

    def answering(self, prompts: Tensor) -> "Rollouts":
        """Return the responses to these prompts."""
        return self.take(torch.isin(self.prompt_index, prompts).nonzero()[:, 0])

    def keep(self, prompts: Tensor) -> "Rollouts":
        """Return the responses to these prompts, with prompts renumbered from 0 in the given order."""
        number = torch.full((len(self.prompt_ids),), -1)
        number[prompts] = torch.arange(len(prompts))
        kept = self.answering(prompts)
        ids = [self.prompt_ids[i] for i in prompts.tolist()]
        return replace(kept, prompt_ids=ids, prompt_index=number[kept.prompt_index])

    def responses(self) -> list[list[int]]:
        """Return the token ids of each response, eos included (B lists)."""
        return [part.tolist() for part in self.response_ids.split(self.response_lengths.tolist())]

    def texts(self, tokenizer: "PreTrainedTokenizerBase") -> list[str]:
        """Return the text of each response without the eos or stop token that ended it.

        Other special tokens stay in the text: a verifier must not read `1<pad>+2` as `1+2`.
        """
        bodies = [
            ids[:-1] if ended else ids for ids, ended in zip(self.responses(), self.finished.tolist(), strict=True)
        ]
        return tokenizer.batch_decode(bodies, skip_special_tokens=False) if bodies else []


def join(parts: Sequence[Rollouts]) -> Rollouts:
    """Concatenate responses to different prompts, with prompts numbered consecutively."""
    sizes = torch.tensor([len(part.prompt_ids) for part in parts])
    index = [part.prompt_index + start for part, start in zip(parts, starts(sizes), strict=True)]
    ids = [ids for part in parts for ids in part.prompt_ids]
    return replace(_joined(parts), prompt_ids=ids, prompt_index=torch.cat(index))


def merge(parts: Sequence[Rollouts]) -> Rollouts:
    """Merge responses to different prompts of one request into one object ordered by prompt."""
    whole = _joined(parts)
    return whole.take(whole.prompt_index.argsort(stable=True))


def _joined(parts: Sequence[Rollouts]) -> Rollouts:
    """Concatenate responses without changing prompts and their indices."""
    whole: dict[str, Any] = {name: torch.cat([getattr(part, name) for part in parts]) for name in FLAT}
    stats = [part.stats for part in parts if part.stats is not None]
    return replace(parts[0], **whole, stats=torch.cat(stats, 1) if len(stats) == len(parts) else None)
