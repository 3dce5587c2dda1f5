"""Batches whose responses are sampled a few tokens at a time, under the weights of the moment (partial rollouts).

    questions ────┐
                  ├► pass: at most `rollout.partial_tokens` more tokens of each response ─► groups that ended ► step
    not ended yet ┘ ◄──────────────────────────────────────────────────────────────────┘

A step trains on the oldest groups whose responses have all ended. While they are too few, a pass starts a batch of
questions and goes on with all responses that have not ended; each token has the version of the weights that drew it. So
as many groups start as are used, and a step waits for a pass instead of its longest response. All ranks hold the
responses in flight, and every pass deals them anew.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from entrostat.numbers.draws import generator_seed

from ..data import Question
from ..rollout.rollout_engine import Begun, Pending, Request, check_answer
from ..sequences.mini_batch import shares
from ..sequences.rollouts import Rollouts, join, merge
from ..settings.config import TrainConfig
from .batches import Batches, given, tensors


@dataclass(frozen=True, eq=False)
class Pass:
    """Pass of the engine over a new batch and the responses that go on."""

    new: list[list[int]]
    """Prompts of the new batch."""
    rows: Tensor
    """Numbers of the responses that go on, (C,): group · n + sample."""
    answer: Callable[[], Rollouts]
    """Function that waits for the responses of all ranks; call it once."""


class PartialBatches(Batches):
    """Batches of groups in the order in which they end. Group g is question g mod size of batch g // size."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.limit = self.config.rollout.max_new_tokens
        self._passes: deque[Pass] = deque()
        nothing = torch.empty(0, dtype=torch.long)
        self._held = Rollouts([], nothing, nothing, torch.empty(0), nothing, nothing.bool())
        """Responses of all ranks to the questions in flight, n for each group."""
        self._groups = nothing
        """Numbers of these groups, ascending."""
        self._questions: dict[int, Question] = {}
        self._count = 0

    def next(self, step: int) -> tuple[list[Question], Rollouts]:
        while len(chosen := self._ended()) < self.size:
            if not self._passes:
                self._start_pass()
            with self.waiting():
                self._add(self._passes.popleft())
        for _ in range(min(self.config.topology.staleness, self.config.steps - step - 1) - len(self._passes)):
            self._start_pass()
        groups = self._groups[chosen]
        whole = self._held.keep(chosen)
        left = torch.ones(len(self._groups), dtype=torch.bool).index_fill(0, chosen, False).nonzero()[:, 0]
        self._held, self._groups = self._held.keep(left), self._groups[left]
        dealt = shares(torch.tensor([len(ids) for ids in whole.prompt_ids]), self.ranks.size)
        mine = torch.tensor(dealt[self.ranks.rank], dtype=torch.long)
        return [self._questions.pop(group) for group in groups.tolist()], whole.answering(mine)

    def _ended(self) -> Tensor:
        """Return the places of the oldest groups whose responses have all ended, up to a batch of them."""
        return self._is_done().view(-1, self.n).all(1).nonzero()[: self.size, 0]

    def _is_done(self) -> Tensor:
        return self._held.finished | (self._held.response_lengths == self.limit)

    def _start_pass(self) -> None:
        """Submit a pass over the next batch and all responses that neither have ended nor are in another pass."""
        with self.clock.phase("rollout"):
            request = self._batch(self.used + len(self._passes))
            numbers = (self._groups[:, None] * self.n + torch.arange(self.n)).flatten()
            asked = torch.cat([numbers[:0], *(each.rows for each in self._passes)])
            open_ = (~self._is_done() & ~torch.isin(numbers, asked)).nonzero()[:, 0]
            going_on = self._held.take(open_)
            owners = going_on.prompt_index.tolist()
            prompts = [self._held.prompt_ids[i] + ids for i, ids in zip(owners, going_on.responses(), strict=True)]
            whole = replace(
                request,
                prompt_ids=[*request.prompt_ids, *prompts],
                shares=shares(torch.tensor([*map(len, request.prompt_ids), *map(len, prompts)]), self.ranks.size),
                begun=tuple(map(self._begun, numbers[open_].tolist(), going_on.response_lengths.tolist())),
                tokens=self.config.rollout.partial_tokens,
            )
            version, answer = self.engine.version or 0, self.engine.submit(whole)
        self._passes.append(Pass(request.prompt_ids, numbers[open_], lambda: self._whole(whole, version, answer)))

    def _batch(self, number: int) -> Request:
        """Return the request for responses to a new batch, and keep its questions."""
        questions, request = self.request(number)
        self._questions |= dict(enumerate(questions, number * self.size))
        return request

    def _begun(self, row: int, tokens: int) -> Begun:
        """Return the place of a response in the request that began it."""
        group, sample = divmod(row, self.n)
        number, prompt = divmod(group, self.size)
        return Begun(generator_seed("rollout", self.config.seed, number), prompt, sample, tokens)

    def _whole(self, request: Request, version: int, answer: Pending) -> Rollouts:
        """Return the responses of all ranks to a request. Raises RolloutError unless they are of these weights."""
        mine = answer()
        check_answer(mine, request, version, self.ranks.rank)
        return merge(self.ranks.gather([mine]))

    def _add(self, found: Pass) -> None:
        """Add the tokens of a pass to the responses in flight."""
        whole, started = found.answer(), len(found.new) * self.n
        places = torch.searchsorted(self._groups, found.rows // self.n) * self.n + found.rows % self.n
        held = self._held.continued(places, whole.take(torch.arange(started, len(whole))))
        self._held = join([held, replace(whole.take(torch.arange(started)), prompt_ids=found.new)])
        self._groups = torch.cat([self._groups, self.used * self.size + torch.arange(self.size)])
        self.used, self._count = self.used + 1, self._count + 1

    def metrics(self) -> dict[str, float]:
        """Return the passes since the last call, and the responses that will go on."""
        passes, self._count = self._count, 0
        own = {"rollout/passes": float(passes), "rollout/in_flight": float((~self._is_done()).sum())}
        return super().metrics() | own

    # Checkpoints --------------------------------------------------------------------------------------------------

    def in_flight(self) -> list[dict[str, Any]]:
        """Return the responses in flight, and those of the passes in flight, which it waits for."""
        answers = [each.answer() for each in self._passes]
        self._passes = deque(
            replace(each, answer=given(whole)) for each, whole in zip(self._passes, answers, strict=True)
        )
        passes = [{**tensors(whole), "rows": each.rows} for each, whole in zip(self._passes, answers, strict=True)]
        return [{**tensors(self._held), "groups": self._groups}, *passes]

    def resume(self, used: int, in_flight: list[dict[str, Any]]) -> None:
        self.check_same(in_flight)
        self.used = used
        if not in_flight:  # of a run whose responses ended in their step
            return
        held, *passes = map(dict, in_flight)
        self._groups = held.pop("groups")
        numbers = (self._groups // self.size).unique().tolist()
        prompts = {number: self._batch(number).prompt_ids for number in numbers}
        ids = [prompts[group // self.size][group % self.size] for group in self._groups.tolist()]
        self._held = Rollouts(ids, **held)
        self._questions = {group: self._questions[group] for group in self._groups.tolist()}
        for number, fields in enumerate(passes, used):
            rows, new = fields.pop("rows"), self._batch(number).prompt_ids
            self._passes.append(Pass(new, rows, given(Rollouts(new, **fields))))


def make_batches(config: TrainConfig, *others: Any) -> Batches:
    """Return the batches of a run, given the arguments of `Batches`: partial if `rollout.partial_tokens` is set."""
    return (PartialBatches if config.rollout.partial_tokens else Batches)(config, *others)
