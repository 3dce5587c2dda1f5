"""Evaluation: avg@k and the unbiased pass@k of Chen et al. (2021)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from .config import TrainConfig
from .model import load
from .ranks import Ranks
from .rollout import HFRollout, Rollouts
from .tasks import get_task

P = TypeVar("P")


class Sampler(Protocol):
    """What evaluation needs of a rollout engine."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    def generate(self, prompts: Sequence[str], n: int) -> Rollouts: ...


class HasCorrect(Protocol):
    """A verdict."""

    @property
    def correct(self) -> bool: ...


def pass_at_k(correct: NDArray, k: int) -> float:
    """Unbiased pass@k, `mean(1 − C(n−c, k) / C(n, k))` (Chen et al. 2021, eq. 1).

    Args:
        correct: 0/1 outcome of each sample (problems, samples).
        k: draws without replacement from the n samples of a problem.

    Raises:
        ValueError: unless `correct` has two dimensions, a problem, and 1 <= k <= samples.
    """
    n = _samples(correct, k)
    c = np.asarray(correct).astype(bool).sum(axis=1)
    # C(n−c, k) / C(n, k) = Π_{i=n−c+1}^{n} (1 − k/i); a factor is 0 as soon as fewer than k samples are wrong.
    i = np.arange(1, n + 1)
    factors = np.where(i > (n - c)[:, None], 1.0 - k / i, 1.0)
    factors = np.where((n - c)[:, None] < k, 0.0, factors)
    return float(np.mean(1.0 - factors.prod(axis=1)))


def avg_at_k(correct: NDArray, k: int) -> float:
    """Share of correct outcomes among the first k samples of every problem (problems, samples)."""
    _samples(correct, k)
    return float(np.mean(np.asarray(correct)[:, :k]))


def evaluate(
    rollout: Sampler,
    problems: Sequence[P],
    verify: Callable[[P, str], HasCorrect],
    k: int,
    *,
    prompt: Callable[[P], str],
    samples: int | None = None,
    batch_size: int = 256,
    ranks: Ranks | None = None,
) -> dict[str, float]:
    """Sample every problem and score it.

    Args:
        rollout: draws the responses, those of this rank.
        problems: what to solve.
        verify: (problem, response text) to verdict.
        k: k of avg@k and pass@k.
        prompt: problem to prompt text.
        samples: samples per problem, k by default; more make pass@k less noisy.
        batch_size: problems sampled at a time.
        ranks: processes that share the problems; each gives the numbers of all.

    Returns:
        `eval/avg@k` and `eval/pass@k` (with k's value), `eval/pass@1`, `eval/length` (tokens, eos included) and
        `eval/finished` (share of responses that ended with eos).
    """
    n = k if samples is None else samples
    if not problems:
        raise ValueError("evaluate needs at least one problem")
    ranks = ranks or Ranks()
    correct = np.zeros((len(problems), n), dtype=np.int64)
    tokens = finished = 0
    for start in range(0, len(problems), batch_size):
        batch = problems[start : start + batch_size]
        rollouts = rollout.generate([prompt(problem) for problem in batch], n)
        owners = rollouts.prompt_index.tolist()
        for i, text in enumerate(rollouts.texts(rollout.tokenizer)):
            owner = owners[i]
            correct[start + owner, i % n] = verify(batch[owner], text).correct
        tokens += int(rollouts.response_lengths.sum())
        finished += int(rollouts.finished.sum())
    correct = ranks.total(torch.from_numpy(correct)).numpy()
    tokens, finished = ranks.total(torch.tensor([tokens, finished])).tolist()
    return {
        f"eval/avg@{k}": avg_at_k(correct, n),
        f"eval/pass@{k}": pass_at_k(correct, k),
        "eval/pass@1": pass_at_k(correct, 1),
        "eval/length": tokens / correct.size,
        "eval/finished": finished / correct.size,
    }


def _samples(correct: NDArray, k: int) -> int:
    """Samples per problem, after checks of shape and k."""
    shape = np.shape(correct)
    if len(shape) != 2 or shape[0] == 0 or not 1 <= k <= shape[1]:
        raise ValueError(f"need outcomes of shape (problems >= 1, samples >= k) and k >= 1; got shape {shape}, k={k}")
    return shape[1]


def evaluate_model(config: TrainConfig, path: str | Path) -> dict[str, float]:
    """Evaluate the model in folder `path` on the held-out problems of the configured task."""
    task = get_task(config.task)
    model, tokenizer = load(path)
    settings = config.rollout
    rollout = HFRollout(
        model,
        tokenizer,
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        generator=torch.Generator().manual_seed(config.seed),
    )
    return evaluate(rollout, task.test, task.verify, config.eval.k, prompt=task.prompt, samples=config.eval.samples)
