"""Reward terms beside the verdict: format, length, a function of one's own; each has its own metric."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..settings.config import RewardConfig
from ..verifiers.math.final_answer import last_boxed

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def terms(
    texts: Sequence[str],
    lengths: Tensor,
    correct: Tensor,
    n: int,
    limit: int,
    config: RewardConfig,
    scores: Tensor | None = None,
) -> Tensor:
    """Return all weighted terms of B responses, (terms, B), in the order of `NAMES`.

    Args:
        texts: B responses in whole groups of `n`.
        lengths: tokens of each response (B,).
        correct: the verifier's verdicts, 1 or 0, (B,).
        n: responses per prompt.
        limit: rollout.max_new_tokens.
        scores: numbers of the reward function (B,), if there is one.
    """
    form = torch.zeros_like(correct)
    if config.format:
        form = config.format_weight * torch.tensor([float(FORMATS[config.format](text)) for text in texts])
    brevity = torch.zeros_like(correct)
    if config.length_weight:
        brevity = config.length_weight * brief(lengths, correct, n)
    own = torch.zeros_like(correct) if scores is None else config.function_weight * scores
    return torch.stack([form, brevity, -overlong(lengths, limit, config), own])


NAMES = ("format", "length", "overlong", "function")


def used(config: RewardConfig) -> list[bool]:
    """Return for each of NAMES whether the configuration uses it."""
    return [bool(config.format), bool(config.length_weight), bool(config.overlong_buffer), bool(config.function)]


def weights(config: RewardConfig) -> list[float]:
    """Return what the verdict and each of NAMES counts in a reward."""
    terms = [config.format_weight, config.length_weight, config.overlong_penalty, config.function_weight]
    return [config.verdict_weight, *terms]


def overlong(lengths: Tensor, limit: int, config: RewardConfig) -> Tensor:
    """Return the penalty (B,) of responses with `lengths` tokens (B,): from 0 at limit − buffer to full at the limit.

    DAPO, eq. 13, with verdicts of 1 or 0.
    """
    if not config.overlong_buffer:
        return lengths.new_zeros(len(lengths)).float()
    inside = (lengths - (limit - config.overlong_buffer)) / config.overlong_buffer
    return config.overlong_penalty * inside.clamp(0, 1)


def brief(lengths: Tensor, correct: Tensor, n: int) -> Tensor:
    """Return the reward of short responses (B,) in groups of n: 1/2 for the shortest, −1/2 for the longest.

    It is at most 0 for wrong responses, and 0 if all of a group have the same length. Kimi k1.5, 2.3.3.
    """
    by_group = lengths.view(-1, n).float()
    shortest, longest = by_group.amin(1, keepdim=True), by_group.amax(1, keepdim=True)
    place = 0.5 - (by_group - shortest) / (longest - shortest).clamp(min=1)
    place = torch.where(longest > shortest, place, 0.0).flatten()
    return torch.where(correct > 0, place, place.clamp(max=0))


def _boxed(text: str) -> bool:
    return last_boxed(text) is not None


def _tagged(text: str) -> bool:
    """Return True if a response consists of one thought and one answer, in this order."""
    body = text.strip()
    if any(body.count(tag) != 1 for tag in TAGS):
        return False
    at = [body.index(tag) for tag in TAGS]
    between = body[at[1] + len(TAGS[1]) : at[2]]
    return at == sorted(at) and at[0] == 0 and not between.strip() and body.endswith(TAGS[3])


FORMATS = {"boxed": _boxed, "tags": _tagged}
"""Checks of a response's format, by name."""
