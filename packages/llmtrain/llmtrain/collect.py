"""From problems to scored responses: asks the rollout engine, verifies, and keeps the groups that teach something.

    batch of problems ► request ► responses ► verifier ► [drop groups whose responses all have one reward, ask again]*

Batches of problems are numbered through a run. Without filtering a rollout step takes one batch; under staleness k the
batches of the next k steps are asked for ahead, with the weights of now.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from entrostat.draws import generator_seed

from .clock import Clock
from .config import TrainConfig
from .mini_batch import mini_batches, shares
from .ranks import Ranks
from .rollout import Rollouts, join
from .rollout_engine import Pending, Request, RolloutEngine, check
from .tasks import Task


@dataclass(frozen=True)
class Collected:
    """Scored responses of this rank, B sequences in whole groups."""

    rollouts: Rollouts
    reward: Tensor
    """The verifier's, (B,)."""
    metrics: dict[str, float]
    """Of all that was sampled, dropped groups too."""


class Collector:
    """One for a run. `used` batches of problems are done with; a checkpoint needs nothing else of it."""

    def __init__(
        self,
        config: TrainConfig,
        task: Task,
        tokenizer: PreTrainedTokenizerBase,
        engine: RolloutEngine,
        ranks: Ranks,
        clock: Clock,
        used: int = 0,
    ) -> None:
        self.config, self.task, self.tokenizer = config, task, tokenizer
        self.engine, self.ranks, self.clock = engine, ranks, clock
        self.used = used
        self._pending: deque[tuple[list[Any], Request, Pending]] = deque()

    def collect(self, step: int) -> Collected:
        """What rollout step `step` trains on. Raises RolloutError when the engine's answer cannot be one."""
        settings = self.config.rollout
        parts: list[tuple[Rollouts, Tensor]] = []
        groups, reward, lengths, batches = 0, [], [], 0
        while True:
            rollouts, scores = self._batch(step)
            batches += 1
            reward.append(scores)
            lengths.append(rollouts.response_lengths)
            if not settings.filter_groups:
                kept = torch.arange(settings.prompts)
            else:
                kept = self._informative(rollouts, scores)[: settings.prompts - groups]
            if len(kept):
                parts.append((rollouts.keep(kept), scores[torch.isin(rollouts.prompt_index, kept)]))
                groups += len(kept)
            if groups == settings.prompts or batches == settings.max_gen_batches:
                break
        if not parts:  # nothing to learn from: the last batch stands for the step, and moves nothing
            parts = [(rollouts, scores)]
        metrics = {
            "reward": self.ranks.mean(torch.cat(reward)),
            "response_length": self.ranks.mean(torch.cat(lengths)),
            "tokens": float(self.ranks.total(torch.cat(lengths).sum())),
            **({"groups/kept": groups / (batches * settings.prompts)} if settings.filter_groups else {}),
        }
        return Collected(join([part for part, _ in parts]), torch.cat([scores for _, scores in parts]), metrics)

    def _ask(self, step: int) -> None:
        """Have so many batches under way as may be drawn from the weights of now, one at least."""
        settings, seed = self.config.rollout, self.config.seed
        steps_left = max(self.config.steps - step, 1)
        while len(self._pending) < min(self.config.topology.staleness + 1, steps_left):
            number = self.used + len(self._pending)
            problems = self.task.train_batch(number, settings.prompts, seed)
            cuts = mini_batches(settings.prompts, self.config.optim.mini_batch_size, seed, number, epoch=0)
            prompts = [self.task.prompt(problem) for problem in problems]
            dealt = shares(cuts, torch.tensor([len(prompt) for prompt in prompts]), self.ranks.size)
            request = Request(prompts, settings.n, dealt, generator_seed("rollout", seed, number))
            self._pending.append((problems, request, self.engine.submit(request)))

    def _batch(self, step: int) -> tuple[Rollouts, Tensor]:
        """The next batch's responses of this rank, and their rewards (B,)."""
        with self.clock.phase("rollout"):
            self._ask(step)
            problems, request, answer = self._pending.popleft()
        with self.clock.phase("idle" if self.config.topology.staleness else "rollout"):
            rollouts = answer()
        self.used += 1
        oldest = step - self.config.topology.staleness
        check(rollouts, request, self.config.rollout, oldest, self.ranks.rank)
        with self.clock.phase("verify"):
            texts, owners = rollouts.texts(self.tokenizer), rollouts.prompt_index.tolist()
            verdicts = [self.task.verify(problems[i], text) for i, text in zip(owners, texts, strict=True)]
        return rollouts, torch.tensor([float(verdict.correct) for verdict in verdicts])

    def _informative(self, rollouts: Rollouts, scores: Tensor) -> Tensor:
        """Prompts whose responses have not all one reward, ascending, of all ranks."""
        found = torch.zeros(len(rollouts.prompt_ids), dtype=torch.int64)
        if len(rollouts):
            by_group = scores.view(-1, self.config.rollout.n)
            differ = (by_group != by_group[:, :1]).any(1)
            found[rollouts.prompt_index[:: self.config.rollout.n][differ]] = 1
        return self.ranks.total(found).nonzero()[:, 0]
