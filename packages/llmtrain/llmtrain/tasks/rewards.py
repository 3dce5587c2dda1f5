"""What is added to the verifier's reward: terms of form and length, each with a metric of its own."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..settings.config import RewardConfig
from ..verifiers.math.final_answer import last_boxed

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def terms(texts: Sequence[str], lengths: Tensor, correct: Tensor, n: int, limit: int, config: RewardConfig) -> Tensor:
    """Every term of responses, weighted, (terms, B), in the order of `NAMES`.

    Args:
        texts: the responses, B of them, whole groups of `n`.
        lengths: their tokens (B,).
        correct: the verifier's verdicts, 1 or 0, (B,).
        n: responses to a prompt.
        limit: rollout.max_new_tokens.
    """
    form = torch.zeros_like(correct)
    if config.format:
        form = config.format_weight * torch.tensor([float(FORMATS[config.format](text)) for text in texts])
    brevity = torch.zeros_like(correct)
    if config.length_weight:
        brevity = config.length_weight * brief(lengths, correct, n)
    return torch.stack([form, brevity, -overlong(lengths, limit, config)])


NAMES = ("format", "length", "overlong")


def used(config: RewardConfig) -> list[bool]:
    """Which of NAMES the configuration asks for."""
    return [bool(config.format), bool(config.length_weight), bool(config.overlong_buffer)]


def overlong(lengths: Tensor, limit: int, config: RewardConfig) -> Tensor:
    """Penalty (B,) of responses of `lengths` tokens (B,): from 0 at limit − buffer to the full one at the limit.

    DAPO, eq. 13, with the verifier's verdict as 1 or 0.
    """
    if not config.overlong_buffer:
        return lengths.new_zeros(len(lengths)).float()
    inside = (lengths - (limit - config.overlong_buffer)) / config.overlong_buffer
    return config.overlong_penalty * inside.clamp(0, 1)


def brief(lengths: Tensor, correct: Tensor, n: int) -> Tensor:
    """Reward of short responses (B,): 1/2 for the shortest of a group of n, −1/2 for the longest, at most 0 for wrong
    ones; 0 where all are as long. Kimi k1.5, 2.3.3.
    """
    by_group = lengths.view(-1, n).float()
    shortest, longest = by_group.amin(1, keepdim=True), by_group.amax(1, keepdim=True)
    place = 0.5 - (by_group - shortest) / (longest - shortest).clamp(min=1)
    place = torch.where(longest > shortest, place, 0.0).flatten()
    return torch.where(correct > 0, place, place.clamp(max=0))


def _boxed(text: str) -> bool:
    return last_boxed(text) is not None


def _tagged(text: str) -> bool:
    """Whether a response is one thought and one answer, in this order, and nothing else."""
    body = text.strip()
    if any(body.count(tag) != 1 for tag in TAGS):
        return False
    at = [body.index(tag) for tag in TAGS]
    between = body[at[1] + len(TAGS[1]) : at[2]]
    return at == sorted(at) and at[0] == 0 and not between.strip() and body.endswith(TAGS[3])


FORMATS = {"boxed": _boxed, "tags": _tagged}
"""By name, whether a response has the form."""
