"""Evaluation during training: repeated measurement of the held-out questions, reported as metrics.

    questions ► encode ► sample ─► [sampler releases the GPU] ─► verify ► Answered of each question ► gather ► Record
        ► eval/avg@8, ...

Ranks share the questions, and every rank returns the metrics of all questions.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..data import Question
from ..data.prompts import encode_all
from ..policy.policy import ALONE, Policy
from ..process.ranks import Ranks
from ..sequences.rollouts import Rollouts
from ..settings.sampling import Sampling
from .answers import Verify, answers
from .outcomes import Interval, Numbers
from .records import Answered, Record, measure
from .statistics import MICRO_BATCH_TOKENS, prompt_entropy, response_means


class Sampler(Protocol):
    """Part of a rollout engine that evaluation needs."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    def generate(self, prompt_ids: Sequence[list[int]], sampling: Sampling) -> Rollouts:
        """Return `sampling.samples` responses to each prompt of this rank; each call draws new ones."""
        ...


@dataclass(frozen=True)
class Samples:
    """Responses of this rank to all questions of an evaluation."""

    tokenizer: PreTrainedTokenizerBase
    batches: list[tuple[list[int], Rollouts]]
    """Indices of the questions of each batch, and the responses to them."""


@dataclass(kw_only=True)
class Evaluator:
    """Repeated evaluation of one policy on the same questions."""

    policy: Policy
    questions: Sequence[Question]
    verify: Verify
    failures: Callable[[], Mapping[str, int]] = dict
    """Function that returns the number of unfinished checks on this rank so far, by kind; see `Verifier.failures`."""
    sampling: Callable[[str], Sampling]
    """Function from a source to the sampling of its questions."""
    k: int = 0
    """Value of k for pass@k and maj@k, and in the name of avg@k, which uses all samples. 0: number of samples."""
    batch_size: int = 256
    """Questions per sampling call."""
    micro_batch_tokens: int = MICRO_BATCH_TOKENS
    """Tokens per forward pass of the policy."""
    ranks: Ranks = field(default_factory=lambda: ALONE)
    """Processes that share the questions."""
    start: list[float] | None = None
    """Entropy of each prompt at the first evaluation (nats)."""

    def __call__(self, sampler: Sampler) -> dict[str, float]:
        """Sample and measure in one go, for samplers that need no memory of the policy's device."""
        return self.measure(self.sample(sampler))

    def sample(self, sampler: Sampler) -> Samples:
        """Return this rank's responses to all questions. Raises ValueError if there is no question."""
        if not self.questions:
            raise ValueError("evaluation needs at least one question")
        alike: dict[Sampling, list[int]] = {}
        for i, question in enumerate(self.questions):
            alike.setdefault(self.sampling(question.source), []).append(i)
        batches = []
        for sampling, places in alike.items():
            for start in range(0, len(places), self.batch_size):
                batch = places[start : start + self.batch_size]
                prompt_ids = encode_all(sampler.tokenizer, [self.questions[i].prompt for i in batch])
                batches.append((batch, sampler.generate(prompt_ids, sampling)))
        return Samples(sampler.tokenizer, batches)

    def measure(self, samples: Samples) -> dict[str, float]:
        """Return `eval/...` metrics of the current policy; see `named`.

        NaN values are left out. With several sources also `eval/<source>/...`; if these are sampled differently, of the
        whole only `eval/avg`, the mean of avg@n over the sources. Calibration and entropies are at the
        policy's temperature. `eval/verify/...` counts checks of this evaluation that did not finish, by kind.
        """
        before = Counter(self.failures())
        found = sorted(self.ranks.gather(list(self._answered(samples))), key=lambda one: one[0])
        lost = sum(self.ranks.gather([Counter(self.failures()) - before]), Counter[str]())
        answered, entropy = [one for _, one, _ in found], np.array([h for _, _, h in found])
        if len(self.start or ()) != len(entropy):  # first evaluation, or a resumed run has other questions
            self.start = entropy.tolist()
        metrics = {f"eval/verify/{kind}": float(count) for kind, count in lost.items()}
        sources = np.array([question.source for question in self.questions])
        names, scores = sorted(set(sources.tolist())), list[float]()
        if len({self.sampling(name) for name in names}) == 1:
            metrics |= self._metrics("eval", names[0], answered, entropy, np.array(self.start))
        for name in names:
            mine = np.flatnonzero(sources == name)
            some = [answered[i] for i in mine]
            scores.append(float(np.mean([one.correct.mean() for one in some])))
            if len(names) > 1:
                metrics |= self._metrics(f"eval/{name}", name, some, entropy[mine], np.array(self.start)[mine])
        return {"eval/avg": float(np.mean(scores))} | metrics

    def _answered(self, samples: Samples) -> Iterator[tuple[int, Answered, float]]:
        """Yield index, answers and prompt entropy (nats) of each question of this rank."""
        rest = (self.micro_batch_tokens, self.ranks)
        for places, rollouts in samples.batches:
            batch = [self.questions[i] for i in places]
            n = self.sampling(batch[0].source).samples
            means = response_means(self.policy, rollouts, *rest)
            lines = answers(rollouts, means, batch, samples.tokenizer, self.verify)
            owners = rollouts.prompt_index[::n].tolist()
            entropy = prompt_entropy(self.policy, [rollouts.prompt_ids[owner] for owner in owners], *rest)
            for row, owner in enumerate(owners):
                yield places[owner], Answered.of(lines[row * n : (row + 1) * n]), float(entropy[row])

    def _metrics(
        self, prefix: str, source: str, answered: Sequence[Answered], entropy: Numbers, start: Numbers
    ) -> dict[str, float]:
        sampling = self.sampling(source)
        k = self.k or sampling.samples
        record = measure(prefix, sampling, answered, entropy, start, [k])
        found = {f"{prefix}/{name}": float(value) for name, value in named(record, k).items()}
        return {name: value for name, value in found.items() if not math.isnan(value)}


def named(record: Record, k: int) -> dict[str, float]:
    """Return a record as metrics: means, with /low and /high of the scores' 95% intervals; NaN if undefined.

    Returns:
        `avg@k`, `pass@k`, `maj@k`, `pass@1`; `length` (tokens, eos included), `finished` (share of responses that end
        with a stop token); `entropy`, `prompt_entropy`, `prompt_entropy_ratio` (to the first evaluation),
        `prompt_entropy_spearman` (with accuracy); `ngram_diversity`, `self_bleu`, `reflective` (phrases per response);
        `auroc`, `logp_gap`, `ece`; `covariance/0.2_to_0.4` and so on for questions of that accuracy.
    """

    def score(name: str, found: Interval) -> dict[str, float]:
        return {name: found.mean, f"{name}/low": found.low, f"{name}/high": found.high}

    return {
        **score(f"avg@{k}", record.avg),
        **score(f"pass@{k}", record.pass_at[k]),
        **score(f"maj@{k}", record.maj_at[k]),
        "pass@1": record.pass_at[1].mean,
        "length": record.length["mean"],
        "finished": record.finished,
        "entropy": record.entropy,
        "prompt_entropy": record.prompt_entropy.mean,
        "prompt_entropy_ratio": record.prompt_entropy_ratio,
        "prompt_entropy_spearman": record.prompt_entropy_spearman,
        "ngram_diversity": record.ngram_diversity.mean,
        "self_bleu": record.self_bleu.mean,
        "reflective": record.reflective,
        "auroc": record.calibration.auroc,
        "logp_gap": record.calibration.gap,
        "ece": record.calibration.ece,
        **{f"covariance/{g.low:g}_to_{g.high:g}": g.covariance for g in record.difficulty if g.questions},
    }
