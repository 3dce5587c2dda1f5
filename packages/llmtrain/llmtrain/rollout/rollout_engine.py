"""Interface of rollout engines, independent of the sampler, its weights and its process.

Seed and prompts of a request determine its draws: the same request gives the same responses from the same weights,
for any split over ranks. An engine of your own subclasses RolloutEngine: `--rollout.name module:Class`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor

from ..sequences.rollouts import Rollouts
from ..settings.config import RolloutConfig, TrainConfig
from ..settings.sampling import Sampling

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

T = TypeVar("T")
Weights = Iterable[tuple[str, Tensor]]
"""Parameters of the policy by transformers' names, or of its LoRA adapter by peft's names.

A weight is whole until the next one is read. Reading may be a collective: all ranks read equally often, to the end.
"""
Pending = Callable[[], Rollouts]
"""Function that waits for the responses of this rank; call it once."""


class RolloutError(RuntimeError):
    """A rollout engine crashed, hung or returned invalid output; the message names the engine and the cause."""


@dataclass(frozen=True)
class Rereadable(Generic[T]):
    """Iterable that calls `read` anew for each iteration."""

    read: Callable[[], Iterator[T]]

    def __iter__(self) -> Iterator[T]:
        return self.read()


@dataclass(frozen=True)
class Begun:
    """Place of a response that goes on: the request that began it had as many new prompts as the one it is in."""

    seed: int
    """Seed of that request."""
    prompt: int
    """Index of its prompt there."""
    sample: int
    """Index among the responses to that prompt."""
    tokens: int
    """Number of its tokens so far."""


@dataclass(frozen=True)
class Request:
    """Responses wanted, over all ranks."""

    prompt_ids: list[list[int]]
    """Token ids of each prompt; the last ones are prompts of `begun` responses, followed by their tokens so far."""
    sampling: Sampling
    """Sampling settings and number of responses per prompt."""
    shares: list[list[int]]
    """Indices of the prompts of each rank, ascending."""
    seed: int
    """Seed of all draws, the same on all ranks; that of a response which goes on is in `begun`."""
    begun: tuple[Begun, ...] = ()
    """Responses to go on with, one for each of the last prompts."""
    tokens: int = 0
    """Upper limit for the new tokens of a response; 0: none but `sampling.max_new_tokens`."""
    trained: bool = False
    """True if the policy is trained on the responses at their temperature, so that statistics at it save a pass."""

    @property
    def n(self) -> int:
        """Responses per new prompt (group size)."""
        return self.sampling.samples

    @property
    def new(self) -> int:
        """Number of prompts without a response so far."""
        return len(self.prompt_ids) - len(self.begun)

    @property
    def counts(self) -> list[int]:
        """Number of responses to each prompt."""
        return [self.n] * self.new + [1] * len(self.begun)

    @property
    def limits(self) -> list[int]:
        """Upper limit for the new tokens of a response to each prompt."""
        most = self.sampling.max_new_tokens
        return [min(most - had, self.tokens or most) for had in [0] * self.new + [each.tokens for each in self.begun]]


@dataclass(frozen=True, kw_only=True)
class Start:
    """Start settings of a rollout engine."""

    folder: Path
    """Model and tokenizer of version 0."""
    config: RolloutConfig
    stop_token_ids: Sequence[int]
    """All tokens that end a response, including eos."""
    device: str = "cpu"
    """cpu or cuda."""
    rank: int = 0
    """Rank whose share of a request this engine answers."""
    model: "PreTrainedModel | None" = None
    """The policy itself, if the engine is in the process that trains it; None for an engine elsewhere."""
    tokenizer: "PreTrainedTokenizerBase | None" = None
    """Tokenizer of `model`."""
    whole: Callable[[], AbstractContextManager] = nullcontext
    """Function that makes the context in which this rank holds all weights of `model`."""
    transport: str | None = None
    """Transport of weights from another process; None if `update` is called here."""
    sleep_level: int = 0
    """See `TrainConfig.sleep_level`."""
    lora_rank: int = 0
    """Rank of the LoRA adapters sent instead of weights; 0 for whole weights."""
    trust_remote_code: bool = False
    """Run the Python code in `folder`."""


def check_answer(rollouts: Rollouts, request: Request, oldest: int, rank: int) -> None:
    """Raise RolloutError unless the rollouts are a valid answer to the request.

    oldest: oldest allowed version of the weights that sampled them.
    """
    lengths, prompts = rollouts.response_lengths, torch.tensor(request.shares[rank], dtype=torch.long)
    wanted = prompts.repeat_interleave(torch.tensor(request.counts)[prompts])
    limits = torch.tensor(request.limits)[wanted]
    if len(rollouts.version) and (found := int(rollouts.version.min())) < oldest:
        raise RolloutError(f"responses are of weights {found}; the oldest allowed is {oldest}")
    if not torch.equal(rollouts.prompt_index, wanted):
        each = f"{request.n} for each prompt" + (" and 1 for each that goes on" if request.begun else "")
        raise RolloutError(f"responses must be {each}, in order ({len(wanted)}); got {len(rollouts)}")
    wrong = (lengths < 1) | (lengths > limits)
    if bool(wrong.any()):
        first = int(wrong.byte().argmax())
        raise RolloutError(f"a response has {int(lengths[first])} tokens; 1 to {int(limits[first])} were requested")
    if not int(lengths.sum()) == len(rollouts.response_ids) == len(rollouts.logp) == len(rollouts.version):
        raise RolloutError("responses, lengths, log-probabilities and versions differ in number")
    if not bool(torch.isfinite(rollouts.logp).all()) or bool((rollouts.logp > 1e-3).any()):
        raise RolloutError("a log-probability is not finite, or above 0")


class RolloutEngine(ABC):
    """Sampler of responses. All ranks make the same calls in the same order."""

    continues: bool = False
    """True if the engine goes on with responses that were begun: with `Request.begun` and `Request.tokens`."""
    published: bool = False
    """True if `update` takes weights as a published checkpoint has them, see policy/published.py."""
    starts: int = 1
    """Starts so far of engines that take weights by `update`; each proves the first ones that it takes."""

    @classmethod
    def check(cls, config: TrainConfig) -> None:
        """Raise ValueError if this engine cannot serve the run. Called before a model is loaded."""
        return

    @classmethod
    def start(cls, start: Start) -> "RolloutEngine":
        """Return an engine that answers with the model in `start.folder`. Raises RolloutError if it does not start."""
        raise TypeError(f"{cls.__name__} cannot be started by name")

    @property
    @abstractmethod
    def version(self) -> int | None:
        """Rollout step whose weights answer the next request; None after a `release` that lost them."""

    @abstractmethod
    def submit(self, request: Request) -> Pending:
        """Start sampling and return a function that waits for it. Both may raise RolloutError."""

    @abstractmethod
    def update(self, weights: Weights, version: int) -> None:
        """Use these weights for all later requests."""

    def metrics(self) -> dict[str, float]:
        """Return the engine's own metrics of the moment; those of rank 0 are logged."""
        return {}

    def release(self) -> None:
        """Release memory of the trainers' GPUs until the next update; no-op unless the engine shares them."""
        return

    def close(self) -> None:
        """End all processes of the engine; no-op if it has none."""
        return


@dataclass
class Sampler:
    """Adapter of an engine for evaluation: one request per batch, each with its own seed."""

    engine: RolloutEngine
    tokenizer: "PreTrainedTokenizerBase"
    seed: int
    """Seed of the next batch; it grows by 1 per batch."""
    ranks: int

    def generate(self, prompt_ids: Sequence[list[int]], sampling: Sampling) -> Rollouts:
        """Return `sampling.samples` responses to each prompt of this rank; prompts are dealt to the ranks in turn."""
        shares = [list(range(rank, len(prompt_ids), self.ranks)) for rank in range(self.ranks)]
        request = Request(list(prompt_ids), sampling, shares, self.seed)
        self.seed += 1
        return self.engine.submit(request)()
