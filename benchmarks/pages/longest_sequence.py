"""Longest sequence that a GPU takes in training without splitting it, by the ledger of bytes."""

from dataclasses import replace

from llmtrain.plan.fixes import fits
from llmtrain.plan.plan_config import PlanConfig

STEP = 512
"""Precision of the answer (tokens)."""
MOST = 1 << 21
"""Upper limit for the answer (tokens)."""


def longest_sequence(config: PlanConfig) -> int:
    """Return how long a response may be whose sequence is a micro-batch of its own, in tokens; 0 if none fits."""

    def takes(tokens: int) -> bool:
        micro_batch = tokens + config.max_prompt_length
        lengths = {"max_response_length": tokens, "mean_response_length": tokens // 4, "max_positions": 2 * MOST}
        return fits(replace(config, **lengths, micro_batch_tokens=micro_batch))  # type: ignore[arg-type]

    low, high = 0, MOST
    while high - low > STEP:
        middle = (low + high) // (2 * STEP) * STEP
        low, high = (middle, high) if takes(middle) else (low, middle)
    return low
