"""Rollout engines: what samples for the trainer, with which weights, whoever and wherever it is.

    hf      the policy itself, in the process that trains it
    vllm    an engine of its own, which is sent the weights after they moved

A request names what is drawn by its seed and prompts, so that the same request gives the same responses from the same
weights, whichever ranks share it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..sequences.rollouts import Rollouts
from ..settings.config import RolloutConfig
from .hf import HFRollout

T = TypeVar("T")
Weights = Iterable[tuple[str, Tensor]]
"""Parameters of the policy by the names that transformers gives them, or of its LoRA adapter by peft's names.

A weight is whole until the next one is asked for. Reading may be a collective: all ranks read as often, to the end.
"""
Pending = Callable[[], Rollouts]
"""Waits for the responses of this rank; to be called once."""


class RolloutError(RuntimeError):
    """A rollout engine died, hangs, or gave what cannot be; the message says which and how."""


@dataclass(frozen=True)
class Rereadable(Generic[T]):
    """What `read` yields, anew each time."""

    read: Callable[[], Iterator[T]]

    def __iter__(self) -> Iterator[T]:
        return self.read()


@dataclass(frozen=True)
class Request:
    """Responses wanted of all ranks together."""

    prompt_ids: list[list[int]]
    """Of each prompt."""
    n: int
    """Responses to each prompt."""
    shares: list[list[int]]
    """Indices of the prompts that each rank is to have, ascending."""
    seed: int
    """Of everything that is drawn, the same on all ranks."""


def check(rollouts: Rollouts, request: Request, config: RolloutConfig, oldest: int, rank: int) -> None:
    """RolloutError when the answer to a request cannot be one: nothing of it may be trained on.

    oldest: version of the weights that may have drawn it at the earliest.
    """
    lengths, prompts = rollouts.response_lengths, torch.tensor(request.shares[rank], dtype=torch.long)
    wanted = prompts.repeat_interleave(request.n)
    if rollouts.version < oldest:
        raise RolloutError(f"responses are of weights {rollouts.version}, older than {oldest}, the oldest allowed")
    if not torch.equal(rollouts.prompt_index, wanted):
        raise RolloutError(f"{len(rollouts)} responses came where {len(wanted)} were asked for, {request.n} a prompt")
    if len(lengths) and not 1 <= int(lengths.min()) <= int(lengths.max()) <= config.max_new_tokens:
        raise RolloutError(f"a response has {int(lengths.max())} tokens; 1 to {config.max_new_tokens} were asked for")
    if not int(lengths.sum()) == len(rollouts.response_ids) == len(rollouts.logp):
        raise RolloutError("responses, their lengths and their log-probabilities do not agree in number")
    if not bool(torch.isfinite(rollouts.logp).all()) or bool((rollouts.logp > 1e-3).any()):
        raise RolloutError("a log-probability is not finite, or above 0")


class RolloutEngine(Protocol):
    """What the trainer needs. All ranks make the same calls in the same order."""

    @property
    def version(self) -> int | None:
        """Rollout step whose weights answer the next request; None after a `release` that lost them."""

    def submit(self, request: Request) -> Pending:
        """Begin to answer. Raises RolloutError, then or when the answer is waited for."""

    def update(self, weights: Weights, version: int) -> None:
        """Take these weights for all requests from now on."""

    def release(self) -> None:
        """Give back memory of the trainers' GPUs until the next update; no-op for engines that share none."""

    def close(self) -> None:
        """Leave no process behind."""


class HFEngine:
    """The policy samples for itself: nothing has to be sent."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        config: RolloutConfig,
        *,
        rank: int = 0,
        whole: Callable[[], AbstractContextManager] = nullcontext,
    ) -> None:
        """whole: makes the context in which this rank holds all weights."""
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.rank, self.whole, self.version = rank, whole, 0

    def submit(self, request: Request) -> Pending:
        sampler = HFRollout(
            self.model,
            self.tokenizer,
            max_new_tokens=self.config.max_new_tokens,
            temperature=self.config.temperature,
            generator=torch.Generator().manual_seed(request.seed),
            stop_token_ids=self.config.stop_token_ids,
            max_num_seqs=self.config.max_num_seqs,
        )
        with self.whole():
            rollouts = sampler.generate(request.prompt_ids, request.n, request.shares[self.rank])
        rollouts.version = self.version
        return lambda: rollouts

    def update(self, weights: Weights, version: int) -> None:
        self.version = version

    def release(self) -> None:
        """No-op: the model is the trainer's."""

    def close(self) -> None:
        """No-op, as for `release`."""


@dataclass
class Sampler:
    """An engine as an evaluation asks it: batch after batch, each with a seed of its own."""

    engine: RolloutEngine
    tokenizer: PreTrainedTokenizerBase
    seed: int
    """Of the first batch; those after it count on."""
    ranks: int

    def generate(self, prompt_ids: Sequence[list[int]], n: int) -> Rollouts:
        """`n` responses to each prompt of this rank, which are dealt out one after the other."""
        shares = [list(range(rank, len(prompt_ids), self.ranks)) for rank in range(self.ranks)]
        request = Request(list(prompt_ids), n, shares, self.seed)
        self.seed += 1
        return self.engine.submit(request)()
