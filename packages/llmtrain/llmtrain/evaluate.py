"""Evaluation during training, and of a model folder on the held-out questions of its task."""

from pathlib import Path

import torch

from .config import TrainConfig
from .evaluation.quick import Sampler, evaluate
from .model import load
from .rollout import HFRollout
from .tasks import get_task

__all__ = ["Sampler", "evaluate", "evaluate_model"]


def evaluate_model(config: TrainConfig, path: str | Path) -> dict[str, float]:
    """Evaluate the model in folder `path` on the held-out problems of the configured task."""
    task = get_task(config)
    model, tokenizer = load(path)
    settings = config.rollout
    rollout = HFRollout(
        model,
        tokenizer,
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        generator=torch.Generator().manual_seed(config.seed),
    )
    return evaluate(rollout, task.test, task.verify, config.eval.k, samples=config.eval.samples)
