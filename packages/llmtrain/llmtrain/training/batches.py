"""Batches of questions with their responses, numbered through a run.

Without filtering a rollout step takes one batch; with staleness k the batches of the next k steps are requested ahead,
with the current weights.
"""

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from entrostat.numbers.draws import generator_seed

from ..data import Question
from ..data.curriculum import Curriculum
from ..data.prompts import encode_all
from ..process.clock import Clock
from ..process.ranks import Ranks
from ..rollout.rollout_engine import Pending, Request, RolloutEngine, check_answer
from ..sequences.mini_batch import shares
from ..sequences.rollouts import FLAT, Rollouts, merge
from ..settings.config import TrainConfig
from ..tasks import Task

T = TypeVar("T")


class Batches:
    """Batches whose responses are sampled in one go. A checkpoint needs `used` and `in_flight`."""

    def __init__(
        self,
        config: TrainConfig,
        task: Task,
        tokenizer: PreTrainedTokenizerBase,
        engine: RolloutEngine,
        ranks: Ranks,
        clock: Clock,
    ) -> None:
        self.config, self.task, self.tokenizer = config, task, tokenizer
        self.engine, self.ranks, self.clock = engine, ranks, clock
        self.used = 0
        """Number of batches whose responses have arrived."""
        self.temperature = config.rollout.sampling.temperature
        """Sampling temperature of the next request."""
        self.n = config.rollout.sampling.samples
        """Responses per prompt of the next request."""
        self.curriculum: Curriculum | None = None
        if config.data.curriculum:
            sizes = [len(source) for source in task.train]
            self.curriculum = Curriculum(sizes, config.data.curriculum_rate, config.data.curriculum_floor)
        self._pending: deque[tuple[list[Question], Request, Pending]] = deque()

    @property
    def size(self) -> int:
        """Number of prompts per batch."""
        return self.config.rollout.gen_batch_size or self.config.rollout.prompts

    def next(self, step: int) -> tuple[list[Question], Rollouts]:
        """Return the next batch: its questions, and this rank's responses to them. Raises RolloutError."""
        with self.clock.phase("rollout"):
            self._ask(step)
            questions, request, answer = self._pending.popleft()
        with self.waiting():
            rollouts = answer()
        self.used += 1
        check_answer(rollouts, request, step - self.config.topology.staleness, self.ranks.rank)
        return questions, rollouts

    def waiting(self) -> AbstractContextManager[None]:
        """Return the context of the phase in which responses are waited for."""
        return self.clock.phase("idle" if self.config.topology.staleness else "rollout")

    def _ask(self, step: int) -> None:
        """Submit requests until staleness + 1 batches are in flight, or fewer if fewer steps are left; at least one."""
        steps_left = max(self.config.steps - step, 1)
        while len(self._pending) < min(self.config.topology.staleness + 1, steps_left):
            questions, request = self.request(self.used + len(self._pending))
            self._pending.append((questions, request, self.engine.submit(request)))

    def request(self, number: int) -> tuple[list[Question], Request]:
        """Return the questions of a batch, and the request for responses to them."""
        seed = self.config.seed
        if self.curriculum is None:
            questions = self.task.train_batch(number, self.size, seed)
        else:
            questions = self.task.questions_at(self.curriculum.take(number, self.size, seed))
        prompt_ids = encode_all(self.tokenizer, [question.prompt for question in questions])
        dealt = shares(torch.tensor([len(ids) for ids in prompt_ids]), self.ranks.size)
        return questions, Request(
            prompt_ids,
            replace(self.config.rollout.sampling, temperature=self.temperature, samples=self.n),
            dealt,
            generator_seed("rollout", seed, number),
            trained=not self.config.rollout.train_at_one,
        )

    def greedy(self, rollouts: Rollouts) -> Rollouts:
        """Return a greedy response to each prompt of this rank's rollouts, from the weights of the moment."""
        sampling = replace(self.config.rollout.sampling, temperature=0.0, samples=1)
        dealt = self.ranks.gather([rollouts.prompt_index.unique().tolist()])
        request = Request(rollouts.prompt_ids, sampling, dealt, seed=0)
        with self.clock.phase("rollout"):
            answers = self.engine.submit(request)()
        check_answer(answers, request, self.engine.version or 0, self.ranks.rank)
        return answers

    def judged(self, prompt_index: Tensor, correct: Tensor) -> None:
        """Tell the curriculum this rank's verdicts, 1 or 0, (B,), on the responses to the last batch.

        prompt_index: the prompt of each, (B,). All ranks call this, and have the same pass rates afterwards.
        """
        if self.curriculum is None:
            return
        right = torch.zeros(self.size, dtype=torch.int64).index_add(0, prompt_index, correct.long())
        self.curriculum.learn((self.ranks.total(right).double() / self.n).tolist())

    def metrics(self) -> dict[str, float]:
        """Return metrics since the last call."""
        return self.engine.metrics() | (self.curriculum.metrics() if self.curriculum else {})

    def in_flight(self) -> list[dict[str, Any]]:
        """Return the responses of all ranks to the requests in flight, which it waits for; all ranks call this.

        A resumed run cannot ask for them again: they are of earlier weights. Raises RolloutError.
        """
        answered = [(questions, request, answer()) for questions, request, answer in self._pending]
        self._pending = deque((questions, request, given(mine)) for questions, request, mine in answered)
        return [tensors(merge(self.ranks.gather([mine]))) for _, _, mine in answered]

    def resume(self, used: int, in_flight: list[dict[str, Any]]) -> None:
        """Restore `used` and `in_flight` of a checkpoint, written by any number of ranks."""
        self.check_same(in_flight)
        self.used = used
        for number, fields in enumerate(in_flight, used):
            questions, request = self.request(number)
            mine = torch.tensor(request.shares[self.ranks.rank], dtype=torch.long)
            self._pending.append((questions, request, given(Rollouts(request.prompt_ids, **fields).answering(mine))))

    def check_same(self, in_flight: list[dict[str, Any]]) -> None:
        """Raise ValueError if responses in flight are those of a run with partial rollouts, unless this is one."""
        if in_flight and ("groups" in in_flight[0]) != bool(self.config.rollout.partial_tokens):
            raise ValueError("rollout.partial_tokens was turned on or off while responses are in flight: put it back")


def given(found: T) -> Callable[[], T]:
    """Return a function that returns what was waited for before."""
    return partial(_same, found)


def _same(found: T) -> T:
    return found


def tensors(rollouts: Rollouts) -> dict[str, Any]:
    """Return the tensors of rollouts by name."""
    return {name: getattr(rollouts, name) for name in FLAT}
