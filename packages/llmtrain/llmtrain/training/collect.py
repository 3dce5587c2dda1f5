"""From questions to scored responses: asks the rollout engine, verifies, and keeps the groups that teach something.

    batch of questions ► request ► responses ► verifier ► [drop groups whose responses all have one reward, ask again]*

Batches of questions are numbered through a run. Without filtering a rollout step takes one batch; under staleness k the
batches of the next k steps are asked for ahead, with the weights of now.
"""

from collections import Counter, deque

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from entrostat import get_advantage
from entrostat.advantages import advantage_needs
from entrostat.draws import generator_seed

from ..data import Question
from ..data.prompts import encode_all
from ..process.clock import Clock
from ..process.ranks import Ranks
from ..rollout.rollout_engine import Pending, Request, RolloutEngine, check_answer
from ..sequences.collected import Collected
from ..sequences.exchange import deal, exchange
from ..sequences.mini_batch import mini_batches, shares
from ..sequences.rollouts import Rollouts, join
from ..settings.config import TrainConfig
from ..tasks import Task
from ..tasks.rewards import NAMES, terms, used
from ..verifiers import FAILURES


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
        whole_groups: bool = False,
    ) -> None:
        """whole_groups: a rank is to train all responses to a prompt or none."""
        self.config, self.task, self.tokenizer = config, task, tokenizer
        self.engine, self.ranks, self.clock = engine, ranks, clock
        self.advantage = get_advantage("rloo" if config.advantage == "prime" else config.advantage, ranks.reduce)
        self.whole_groups = whole_groups
        self.used = 0
        self._pending: deque[tuple[list[Question], Request, Pending]] = deque()

    def collect(self, step: int) -> Collected:
        """What rollout step `step` trains on. Raises RolloutError when the engine's answer cannot be one."""
        settings, size = self.config.rollout, self.batch_size
        parts: list[tuple[Rollouts, Tensor]] = []
        groups, scored, lengths, batches, failures = 0, [], [], 0, Counter[str]()
        while True:
            rollouts, scores = self._batch(step, failures)
            batches += 1
            scored.append(scores)
            lengths.append(rollouts.response_lengths)
            if not settings.filter_groups:
                kept = torch.arange(size)
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
            **({"groups/kept": groups / (batches * size)} if settings.filter_groups else {}),
        }
        whole, scores = join([part for part, _ in parts]), torch.cat([scores for _, scores in parts], 1)
        sequence = whole.prompt_index * settings.n + torch.arange(len(whole)) % settings.n
        shaped = scores.sum(0)
        found = Collected(whole, sequence, scores[0], shaped, self._advantages(shaped, whole), metrics, dropped)
        return found if self.ranks.size == 1 else self._dealt(found, step)

    def _advantages(self, reward: Tensor, rollouts: Rollouts) -> Tensor:
        """(B,); groups are still whole."""
        place = self.config.device  # where the ranks' tensors travel
        wanted = {"length": rollouts.response_lengths} if "length" in advantage_needs(self.config.advantage) else {}
        return self.advantage(reward.to(place), rollouts.prompt_index.to(place), **wanted).cpu()

    def _dealt(self, found: Collected, step: int) -> Collected:
        """What this rank trains on, of all that the ranks have found."""
        prompts, size = len(found.rollouts.prompt_ids), self.config.optim.mini_batch_size
        parts = mini_batches(prompts, size, self.config.seed, step)
        to = deal(found, parts, self.config.rollout.n, self.whole_groups, self.ranks)
        return exchange(found, to, self.ranks)

    @property
    def batch_size(self) -> int:
        """Prompts of a batch."""
        return self.config.rollout.gen_batch_size or self.config.rollout.prompts

    def _ask(self, step: int) -> None:
        """Have so many batches under way as may be drawn from the weights of now, one at least."""
        seed, size = self.config.seed, self.batch_size
        steps_left = max(self.config.steps - step, 1)
        while len(self._pending) < min(self.config.topology.staleness + 1, steps_left):
            number = self.used + len(self._pending)
            questions = self.task.train_batch(number, size, seed)
            prompt_ids = encode_all(self.tokenizer, [question.prompt for question in questions])
            lengths = torch.tensor([len(ids) for ids in prompt_ids])
            dealt = shares(lengths, self.ranks.size)
            request = Request(prompt_ids, self.config.rollout.sampling, dealt, generator_seed("rollout", seed, number))
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
        check_answer(rollouts, request, oldest, self.ranks.rank)
        with self.clock.phase("verify"):
            texts, owners = rollouts.texts(self.tokenizer), rollouts.prompt_index.tolist()
            before = Counter(self.task.verifier.failures)
            verdicts = self.task.verify([questions[i] for i in owners], texts)
            failures += Counter(self.task.verifier.failures) - before
            correct = torch.tensor([float(verdict.correct) for verdict in verdicts])
            n, limit = self.config.rollout.n, self.config.rollout.max_new_tokens
            extra = terms(texts, rollouts.response_lengths, correct, n, limit, self.config.reward)
        if self.ranks.size > 1:
            with self.clock.phase("idle"):
                self.ranks.barrier()  # others may still be sampling
        return rollouts, torch.cat([correct[None], extra])

    def _lost_checks(self, failures: Counter[str]) -> dict[str, float]:
        """Checks of the step that gave no answer, on all ranks, by kind."""
        lost = self.ranks.total(torch.tensor([failures[kind] for kind in FAILURES])).tolist()
        return {f"verify/{kind}": float(count) for kind, count in zip(FAILURES, lost, strict=True) if count}

    def _informative(self, rollouts: Rollouts, scores: Tensor) -> Tensor:
        """Prompts whose responses have not all one reward, ascending, of all ranks."""
        found = torch.zeros(len(rollouts.prompt_ids), dtype=torch.int64)
        by_group = scores.view(-1, self.config.rollout.n)
        differ = (by_group != by_group[:, :1]).any(1)
        found[rollouts.prompt_index[:: self.config.rollout.n][differ]] = 1
        return self.ranks.total(found).nonzero()[:, 0]
