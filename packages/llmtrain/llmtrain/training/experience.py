"""Experience: the tokens of scored responses, with all that an update needs of them."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from entrostat import Tokens

from ..kernels import HeadStats
from ..sequences.batch import Batch
from ..sequences.ragged import starts


@dataclass(frozen=True, eq=False)
class Experience:
    """Scored rollout, or a mini-batch of it: B sequences with N response tokens.

    A form of its own because an update needs two orders: ids that a model reads, and numbers that a controller reads.
    """

    batch: Batch
    before: Tokens
    """The response tokens as controllers see them before the first update, (N,) each, on the policy's device."""
    group: Tensor
    """Prompt index of each sequence, (B,)."""
    trained: Tensor | None = None
    """Mask (B,) of the sequences that enter the loss; None for all."""
    sampled: bool = False
    """True if statistics were computed while sampling: only the first update tells if they are the policy's."""

    @staticmethod
    def of(
        batch: Batch,
        stats: HeadStats,
        reward: Tensor,
        advantage: Tensor,
        group: Tensor,
        sequence: Tensor,
        *,
        old_logp: Tensor | None = None,
        trained: Tensor | None = None,
        sampled: bool = False,
        **others: Tensor | None,
    ) -> "Experience":
        """Return the experience of B sequences, of which reward, advantage, group and sequence are, (B,) each.

        stats: statistics of the tokens before the first update, (N,) each. sequence: index of each in the rollout.
        old_logp: log π that importance ratios are relative to, if not that of `stats`. others: fields of Tokens, (N,).
        """
        owner = owner_of(batch)
        position = torch.arange(len(owner)) - starts(batch.response_lengths)[owner]
        of_sequences: Any = {"advantage": advantage, "reward": reward, "seq_id": sequence, "group_id": group}
        numbers = {name: x[owner].to(stats.logp.device) for name, x in of_sequences.items()}
        position = position.to(stats.logp.device)
        before = Tokens(
            old_logp=stats.logp if old_logp is None else old_logp,
            old_entropy=stats.entropy,
            position=position,
            turn_id=torch.zeros_like(position),
            **stats._asdict(),
            **(numbers | others),
        )
        return Experience(batch, before, group, trained, sampled)

    def select(self, sequences: Tensor) -> "Experience":
        """Return the experience of some of the sequences."""
        return Experience(
            self.batch.select(sequences),
            self.before.select(self.batch.response_index(sequences)),
            self.group[sequences],
            None if self.trained is None else self.trained[sequences],
            self.sampled,
        )

    @property
    def owner(self) -> Tensor:
        """Sequence index (0 to B − 1) of each token, (N,)."""
        return owner_of(self.batch)

    @property
    def stats(self) -> HeadStats:
        """Statistics before the first update, (N,) each; a stale rollout was sampled by an earlier policy."""
        return HeadStats(*(self.before.get(name) for name in HeadStats._fields))

    def tokens(self, current: HeadStats | None) -> Tokens:
        """Return the tokens as controllers see them; `current`: statistics now, None if the policy has not moved."""
        return self.before if current is None else replace(self.before, **current._asdict())


def owner_of(batch: Batch) -> Tensor:
    """Return the sequence index (0 to B − 1) of each response token, (N,)."""
    return torch.repeat_interleave(torch.arange(len(batch)), batch.response_lengths)
