"""From questions to scored responses: asks the rollout engine, verifies, and keeps the groups that teach something.

    batch of questions ► request ► responses ► verifier ► [drop groups whose responses all have one reward, ask again]*

Batches of questions are numbered through a run. Without filtering a rollout step takes one batch; under staleness k the
batches of the next k steps are asked for ahead, with the weights of now.
"""

from collections import Counter, deque
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from entrostat.draws import generator_seed

from .clock import Clock
from .config import TrainConfig
from .data import Question
from .mini_batch import mini_batches, shares
from .prompts import encode_all
from .ranks import Ranks
from .rewards import NAMES, terms, used
from .rollout import Rollouts, join
from .rollout.engine import Pending, Request, RolloutEngine, check
from .tasks import Task
from .verifiers import FAILURES


@dataclass(frozen=True)
class Collected:
    """Scored responses of this rank, B sequences in whole groups."""

    rollouts: Rollouts
    reward: Tensor
    """The verifier's, (B,)."""
    terms: Tensor
    """What is added to it, (len(NAMES), B)."""
    metrics: dict[str, float]
    """Of all that was sampled, dropped groups too."""
    dropped: bool = False
    """Whether no group was informative: these are of the last batch, for statistics, and nothing is learned of them."""


class Collector:
    """One for a run. `used` batches of questions are done with; a checkpoint needs nothing else of it."""

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
        self._pending: deque[tuple[list[Question], Request, Pending]] = deque()

    def collect(self, step: int) -> Collected:
        """What rollout step `step` trains on. Raises RolloutError when the engine's answer cannot be one."""
        settings = self.config.rollout
        parts: list[tuple[Rollouts, Tensor]] = []
        groups, scored, lengths, batches, failures = 0, [], [], 0, Counter[str]()
        while True:
            rollouts, scores = self._batch(step, failures)
            batches += 1
            scored.append(scores)
            lengths.append(rollouts.response_lengths)
            if not settings.filter_groups:
                kept = torch.arange(settings.prompts)
            else:
                kept = self._informative(rollouts, scores[0])[: settings.prompts - groups]
            if len(kept):
                parts.append((rollouts.keep(kept), scores[:, torch.isin(rollouts.prompt_index, kept)]))
                groups += len(kept)
            if groups == settings.prompts or batches == settings.max_gen_batches:
                break
        dropped = not parts
        if dropped:
            parts = [(rollouts, scores)]
        reward, *extra = torch.cat(scored, 1)
        asked = used(self.config.reward)
        metrics = {
            "reward": self.ranks.mean(reward),
            **{f"reward/{k}": self.ranks.mean(x) for k, x, on in zip(NAMES, extra, asked, strict=True) if on},
            "response_length": self.ranks.mean(torch.cat(lengths)),
            "tokens": float(self.ranks.total(torch.cat(lengths).sum())),
            **self._lost_checks(failures),
            **({"groups/kept": groups / (batches * settings.prompts)} if settings.filter_groups else {}),
        }
        scores = torch.cat([scores for _, scores in parts], 1)
        return Collected(join([part for part, _ in parts]), scores[0], scores[1:], metrics, dropped)

    def _ask(self, step: int) -> None:
        """Have so many batches under way as may be drawn from the weights of now, one at least."""
        settings, seed = self.config.rollout, self.config.seed
        steps_left = max(self.config.steps - step, 1)
        while len(self._pending) < min(self.config.topology.staleness + 1, steps_left):
            number = self.used + len(self._pending)
            questions = self.task.train_batch(number, settings.prompts, seed)
            cuts = mini_batches(settings.prompts, self.config.optim.mini_batch_size, seed, number, epoch=0)
            prompt_ids = encode_all(self.tokenizer, [question.prompt for question in questions])
            dealt = shares(cuts, torch.tensor([len(ids) for ids in prompt_ids]), self.ranks.size)
            request = Request(prompt_ids, settings.n, dealt, generator_seed("rollout", seed, number), cuts)
            self._pending.append((questions, request, self.engine.submit(request)))

    def _batch(self, step: int, failures: Counter[str]) -> tuple[Rollouts, Tensor]:
        """The next batch's responses of this rank; their verdicts, 1 or 0, and the terms added, (1 + terms, B).

        Adds to `failures` the checks that gave no answer.
        """
        with self.clock.phase("rollout"):
            self._ask(step)
            questions, request, answer = self._pending.popleft()
        with self.clock.phase("idle" if self.config.topology.staleness else "rollout"):
            rollouts = answer()
        self.used += 1
        oldest = step - self.config.topology.staleness
        check(rollouts, request, self.config.rollout, oldest, self.ranks.rank)
        with self.clock.phase("verify"):
            texts, owners = rollouts.texts(self.tokenizer), rollouts.prompt_index.tolist()
            before = Counter(self.task.verifier.failures)
            verdicts = self.task.verify([questions[i] for i in owners], texts)
            failures += Counter(self.task.verifier.failures) - before
            correct = torch.tensor([float(verdict.correct) for verdict in verdicts])
            n, limit = self.config.rollout.n, self.config.rollout.max_new_tokens
            extra = terms(texts, rollouts.response_lengths, correct, n, limit, self.config.reward)
        return rollouts, torch.cat([correct[None], extra])

    def _lost_checks(self, failures: Counter[str]) -> dict[str, float]:
        """Checks of the step that gave no answer, on all ranks, by kind."""
        lost = self.ranks.total(torch.tensor([failures[kind] for kind in FAILURES])).tolist()
        return {f"verify/{kind}": float(count) for kind, count in zip(FAILURES, lost, strict=True) if count}

    def _informative(self, rollouts: Rollouts, scores: Tensor) -> Tensor:
        """Prompts whose responses have not all one reward, ascending, of all ranks."""
        found = torch.zeros(len(rollouts.prompt_ids), dtype=torch.int64)
        if len(rollouts):
            by_group = scores.view(-1, self.config.rollout.n)
            differ = (by_group != by_group[:, :1]).any(1)
            found[rollouts.prompt_index[:: self.config.rollout.n][differ]] = 1
        return self.ranks.total(found).nonzero()[:, 0]
