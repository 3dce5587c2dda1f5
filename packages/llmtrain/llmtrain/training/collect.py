"""Collection of scored responses: request rollouts, verify them, keep groups with different rewards.

    batch of questions ► request ► responses ► verifier ► [drop groups whose responses share one reward, request again]*
                                                        ► advantages

Without filtering a rollout step takes one batch.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from ..data import Question
from ..sequences.collected import Collected
from ..sequences.exchange import deal, exchange
from ..sequences.mini_batch import mini_batches
from ..sequences.rollouts import Rollouts
from ..tasks.rewards import NAMES, terms, used
from ..verifiers import FAILURES
from .advantages import Advantages, needs_greedy
from .batches import Batches
from .responses import length_metrics
from .scored import Scored


class Collector:
    """Collector of one run."""

    def __init__(self, batches: Batches, whole_groups: bool = False) -> None:
        """whole_groups: keep all responses to a prompt on one rank."""
        self.batches = batches
        self.config, self.task, self.tokenizer = batches.config, batches.task, batches.tokenizer
        self.ranks, self.clock = batches.ranks, batches.clock
        self.advantages = Advantages(self.config, self.ranks)
        self.whole_groups = whole_groups
        self._told = False

    def collect(self, step: int) -> Collected:
        """Return the training data of rollout step `step`. Raises RolloutError if the engine returns invalid output."""
        settings, size = self.config.rollout, self.batches.size
        parts: list[Scored] = []
        sampled: list[Scored] = []
        groups, counts = 0, Counter[str]()
        while groups < settings.prompts and len(sampled) < settings.max_gen_batches:
            batch = self._batch(step, counts)
            sampled.append(batch)
            kept = self._informative(batch)[: settings.prompts - groups] if settings.filter_groups else None
            if kept is None or len(kept):
                parts.append(batch if kept is None else batch.keep(kept))
                groups += size if kept is None else len(kept)
        dropped = not parts
        whole, everything, batches = Scored.join(parts or sampled[-1:]), Scored.join(sampled), len(sampled)
        reward, *extra = everything.scores
        lengths = everything.rollouts.response_lengths
        asked = used(self.config.reward)
        metrics = {
            "reward": self.ranks.mean(reward),
            **{f"reward/{k}": self.ranks.mean(x) for k, x, on in zip(NAMES, extra, asked, strict=True) if on},
            **length_metrics(lengths, reward, self.ranks),
            "tokens": float(self.ranks.total(lengths.sum())),
            **self._verify_metrics(counts, len(reward)),
            **self.batches.metrics(),
            **({"groups/kept": groups / (batches * size)} if settings.filter_groups else {}),
        }
        found = self._collected(whole, self.batches.n, metrics, dropped)
        metrics |= self.advantages.metrics()
        if everything.greedy is not None:
            metrics["reward/greedy"] = self.ranks.mean(everything.greedy)
        return found if self.ranks.size == 1 else self._dealt(found, step)

    def _collected(self, scored: Scored, n: int, metrics: dict[str, float], dropped: bool) -> Collected:
        """Return scored responses, n to a prompt, with their advantages; groups are still whole here."""
        rollouts, shaped = scored.rollouts, self._shaped(scored.scores)
        sequence = rollouts.prompt_index * n + torch.arange(len(rollouts)) % n
        advantages = self.advantages.of(scored, shaped, sequence, learn=not dropped)
        return Collected(rollouts, sequence, scored.scores[0], shaped, advantages, metrics, dropped)

    def _dealt(self, found: Collected, step: int) -> Collected:
        """Return this rank's share of the responses of all ranks."""
        prompts, size = len(found.rollouts.prompt_ids), self.config.optim.mini_batch_size
        parts = mini_batches(prompts, size, self.config.seed, step)
        to = deal(found, parts, self.batches.n, self.whole_groups, self.ranks)
        return exchange(found, to, self.ranks)

    def _batch(self, step: int, counts: Counter[str]) -> Scored:
        """Return this rank's responses to the next batch and their scores.

        Checks without an answer, and correct and copied answers, are added to `counts`.
        """
        questions, rollouts = self.batches.next(step)
        before = self.task.failures
        scores, copied = self._judged(questions, rollouts, self.batches.n)
        self.batches.judged(rollouts.prompt_index, scores[0])
        counts += self.task.failures - before
        counts += Counter(correct=int(scores[0].sum()), copied=copied)
        scored = self._scored(questions, rollouts, scores)
        if self.ranks.size > 1:
            with self.clock.phase("idle"):
                self.ranks.barrier()  # other ranks may still be sampling
        return scored

    def _scored(self, questions: Sequence[Question], rollouts: Rollouts, scores: Tensor) -> Scored:
        """Return responses with their scores and, if the advantage needs it, the reward of a greedy response."""
        greedy = None
        if needs_greedy(self.config):
            answers = self.batches.greedy(rollouts)
            rewards = self._shaped(self._judged(questions, answers, 1)[0])
            by_prompt = torch.zeros(len(questions)).index_copy(0, answers.prompt_index, rewards)
            greedy = by_prompt[rollouts.prompt_index]
        return Scored(rollouts, scores, [question.source for question in questions], greedy)

    def probed(self, questions: Sequence[Question], rollouts: Rollouts, n: int) -> Collected:
        """Return this rank's n responses to each of its prompts, scored as training data are, not to be trained on."""
        scored = self._scored(questions, rollouts, self._judged(questions, rollouts, n)[0])
        return self._collected(scored, n, metrics={}, dropped=True)

    def _judged(self, questions: Sequence[Question], rollouts: Rollouts, n: int) -> tuple[Tensor, int]:
        """Return the scores (1 + terms, B) of this rank's responses, and the number of correct ones that are copies.

        questions: one per prompt. n: responses per prompt.
        """
        with self.clock.phase("verify"):
            texts, owners = rollouts.texts(self.tokenizer), rollouts.prompt_index.tolist()
            verdicts = self.task.verify([questions[i] for i in owners], texts)
            correct = torch.tensor([float(verdict.correct) for verdict in verdicts])
            reward, limit = self.config.reward, self.config.rollout.max_new_tokens
            scores = self._scores(questions, texts, owners, n) if reward.function else None
            extra = terms(texts, rollouts.response_lengths, correct, n, limit, reward, scores)
            return torch.cat([correct[None], extra]), sum(verdict.copied for verdict in verdicts)

    def _scores(self, questions: Sequence[Question], texts: Sequence[str], owners: Sequence[int], n: int) -> Tensor:
        """Return the reward function's numbers for this rank's responses (B,), in whole groups of n."""
        groups = [texts[i : i + n] for i in range(0, len(texts), n)]
        found = self.task.score([questions[i] for i in owners[::n]], groups)
        return torch.tensor([score for group in found for score in group], dtype=torch.float32)

    def _shaped(self, scores: Tensor) -> Tensor:
        """Return the rewards to train on (B,) of scores (1 + terms, B)."""
        return self.config.reward.verdict_weight * scores[0] + scores[1:].sum(0)

    def _verify_metrics(self, counts: Counter[str], responses: int) -> dict[str, float]:
        """Return the checks of this step without an answer, by kind, and the share of copies among rewarded responses.

        Both are over all ranks. An answer is a copy if it stands in its prompt. The first error of a user's function is
        printed, with its traceback.

        responses: of this rank in this step.

        Raises:
            ValueError: if a user's function failed on every response.
        """
        if self.task.errors and not self._told:
            self._told = True
            print(f"\nan error of your own function, which costs its response the reward:\n{self.task.errors[0].trace}")
        names = (*FAILURES, "copied", "correct")
        sums = torch.tensor([*(counts[name] for name in names), responses])
        *lost, copied, correct, judged = self.ranks.total(sums).tolist()
        failed = sum(n for kind, n in zip(FAILURES, lost, strict=True) if kind in ("error", "crash", "timeout"))
        if judged and failed >= judged:
            last = f": {self.task.errors[0].line}" if self.task.errors else ""
            raise ValueError(f"no response of this step could be judged, {failed:,} checks failed{last}")
        found = {f"verify/{kind}": float(count) for kind, count in zip(FAILURES, lost, strict=True) if count}
        return found | ({"verify/copied": copied / correct} if correct else {})

    def _informative(self, batch: Scored) -> Tensor:
        """Return the prompts, ascending and of all ranks, whose responses differ in reward.

        That is the verdict, or all of the reward if a function has a part in it; where the advantage looks at each term
        by itself, it is any term.
        """
        rollouts, scores = batch.rollouts, batch.scores[:1]
        if self.advantages.by_term:
            scores = batch.scores
        elif self.config.reward.function:
            scores = self._shaped(batch.scores)[None]
        found = torch.zeros(len(rollouts.prompt_ids), dtype=torch.int64)
        by_group = scores.view(len(scores), -1, self.batches.n)
        differ = (by_group != by_group[..., :1]).any(-1).any(0)
        found[rollouts.prompt_index[:: self.batches.n][differ]] = 1
        return self.ranks.total(found).nonzero()[:, 0]
