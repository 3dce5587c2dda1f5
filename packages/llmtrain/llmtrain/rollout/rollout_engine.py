"""What the trainer asks of a rollout engine: whatever samples, with which weights, in which process.

A request says what is drawn by its seed and prompts, so that the same request gives the same responses from the same
weights, whichever ranks share it. An engine of one's own is a subclass of RolloutEngine: `--rollout.name module:Class`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..sequences.rollouts import Rollouts
from ..settings.config import RolloutConfig, TrainConfig
from ..settings.sampling import Sampling

T = TypeVar("T")
Weights = Iterable[tuple[str, Tensor]]
"""Parameters of the policy by the names that transformers gives them, or of its LoRA adapter by peft's names.

A weight is whole until the next one is asked for. Reading may be a collective: all ranks read as often, to the end.
"""
Pending = Callable[[], Rollouts]
"""Waits for the responses of this rank; to be called once."""


class RolloutError(RuntimeError):
    """A rollout engine crashed, hung or returned invalid output; the message names the engine and the cause."""


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
    """Token ids of each prompt."""
    sampling: Sampling
    """How responses are drawn, and how many to each prompt."""
    shares: list[list[int]]
    """Indices of the prompts that each rank gets, ascending."""
    seed: int
    """Seed of all draws, the same on all ranks."""

    @property
    def n(self) -> int:
        """Responses to each prompt: the group."""
        return self.sampling.samples


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a rollout engine starts with."""

    folder: Path
    """Model and tokenizer of version 0."""
    config: RolloutConfig
    stop_token_ids: Sequence[int]
    """Every token that ends a response, eos among them."""
    device: str = "cpu"
    """cpu or cuda."""
    rank: int = 0
    """Rank whose share of a request is answered."""
    model: PreTrainedModel | None = None
    """The policy itself, if the engine is in the process that trains it; None for an engine elsewhere."""
    tokenizer: PreTrainedTokenizerBase | None = None
    """Tokenizer of `model`."""
    whole: Callable[[], AbstractContextManager] = nullcontext
    """Makes the context in which this rank holds all weights of `model`."""
    transport: str | None = None
    """How weights arrive from another process, if not by `update`."""
    sleep_level: int = 0
    """See `TrainConfig.sleep_level`."""
    lora_rank: int = 0
    """Rank of the LoRA adapters that are sent in place of weights; 0 for whole weights."""


def check_answer(rollouts: Rollouts, request: Request, oldest: int, rank: int) -> None:
    """Raise RolloutError unless this can be the answer to a request: nothing else may be trained on.

    oldest: version of the oldest weights that may have drawn it.
    """
    lengths, prompts = rollouts.response_lengths, torch.tensor(request.shares[rank], dtype=torch.long)
    wanted, limit = prompts.repeat_interleave(request.n), request.sampling.max_new_tokens
    if rollouts.version < oldest:
        raise RolloutError(f"responses are of weights {rollouts.version}, older than {oldest}, the oldest allowed")
    if not torch.equal(rollouts.prompt_index, wanted):
        raise RolloutError(f"{len(rollouts)} responses came where {len(wanted)} were asked for, {request.n} a prompt")
    if len(lengths) and not 1 <= int(lengths.min()) <= int(lengths.max()) <= limit:
        raise RolloutError(f"a response has {int(lengths.max())} tokens; 1 to {limit} were asked for")
    if not int(lengths.sum()) == len(rollouts.response_ids) == len(rollouts.logp):
        raise RolloutError("responses, their lengths and their log-probabilities do not agree in number")
    if not bool(torch.isfinite(rollouts.logp).all()) or bool((rollouts.logp > 1e-3).any()):
        raise RolloutError("a log-probability is not finite, or above 0")


class RolloutEngine(ABC):
    """Samples responses. All ranks make the same calls in the same order."""

    @classmethod
    def check(cls, config: TrainConfig) -> None:
        """Raise ValueError if this engine cannot serve the run. Called before a model is loaded."""
        return

    @classmethod
    def start(cls, start: Start) -> "RolloutEngine":
        """Return an engine that answers with the model in `start.folder`. Raises RolloutError if it does not start."""
        raise TypeError(f"{cls.__name__} cannot be started by its name")

    @property
    @abstractmethod
    def version(self) -> int | None:
        """Rollout step whose weights answer the next request; None after a `release` that lost them."""

    @abstractmethod
    def submit(self, request: Request) -> Pending:
        """Begin to answer. Raises RolloutError, now or when the answer is waited for."""

    @abstractmethod
    def update(self, weights: Weights, version: int) -> None:
        """Take these weights for all requests from now on."""

    def release(self) -> None:
        """Give back memory of the trainers' GPUs until the next update; no-op unless the engine shares them."""
        return

    def close(self) -> None:
        """End all processes of the engine; no-op unless it has some."""
        return


@dataclass
class Sampler:
    """An engine as an evaluation asks it: batch after batch, each with a seed of its own."""

    engine: RolloutEngine
    tokenizer: PreTrainedTokenizerBase
    seed: int
    """Of the first batch; those after it count on."""
    ranks: int
    sampling: Sampling

    def generate(self, prompt_ids: Sequence[list[int]], n: int) -> Rollouts:
        """Return `n` responses to each prompt of this rank; prompts are dealt to the ranks in turn."""
        shares = [list(range(rank, len(prompt_ids), self.ranks)) for rank in range(self.ranks)]
        request = Request(list(prompt_ids), replace(self.sampling, samples=n), shares, self.seed)
        self.seed += 1
        return self.engine.submit(request)()
