"""Simulation of a rollout: compute-bound prefill, then memory-bound decoding in which responses end one by one.

Each decode step reads the weights once and the KV cache of all running responses. New responses start when others end
and the KV cache has room. With `partial_tokens`, a step decodes the pieces of as many responses as it trains. The
simulation is deterministic: lengths are quantiles of the distribution in a fixed shuffled order.
"""

import heapq
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from .architecture import BF16
from .derived import Layout
from .efficiency import ALLREDUCE_SECONDS, BANDWIDTH_SHARE, HOST_SECONDS, LINK_SHARE, SAMPLER_PASSES
from .memory import Memory

PARTS = (
    "prefill",
    "decode: reading weights",
    "decode: reading KV cache",
    "decode: compute",
    "decode: sampling",
    "decode: all-reduce",
    "decode: host",
    "wait for the longest response",
)


@dataclass
class Rollout:
    """Rollout of a typical engine, with the wait for the longest response of all engines."""

    concurrent: int
    """Upper limit for responses that an engine decodes at once."""
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds by part."""
    responses_seconds: float = 0.0
    """Number of running responses integrated over time (responses · s)."""
    drawn: float = 0.0
    """Tokens drawn by the engine."""

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def mean_running(self) -> float:
        """Running responses of an engine, averaged over the rollout."""
        return self.responses_seconds / self.total


def step_seconds(layout: Layout, running: float, kv_tokens: float) -> dict[str, float]:
    """Return seconds of a decode step by part, for `running` responses with `kv_tokens` in the KV cache in total."""
    model, gpu, size = layout.model, layout.gpu, layout.config.tensor_model_parallel_size
    bandwidth = gpu.bandwidth * BANDWIDTH_SHARE
    memory = {
        "decode: reading weights": BF16 * model.decode_params / size / bandwidth,
        "decode: reading KV cache": kv_tokens * model.kv_bytes(size) / bandwidth,
    }
    flops = 2 * running * (model.body_matmul + model.head_params) + 4 * kv_tokens * model.q_width * model.layers
    compute = flops / size / (gpu.flops * gpu.train_utilisation)
    parts = memory if sum(memory.values()) >= compute else {"decode: compute": compute}
    parts["decode: sampling"] = running * model.vocab * 4 * SAMPLER_PASSES / bandwidth
    if size > 1:
        moved = 2 * (size - 1) / size * running * model.hidden * BF16 / (gpu.nvlink * LINK_SHARE)
        parts["decode: all-reduce"] = 2 * model.layers * (ALLREDUCE_SECONDS + moved)
    parts["decode: host"] = max(HOST_SECONDS - sum(parts.values()), 0.0)
    return parts


def simulate(layout: Layout, memory: Memory) -> Rollout:
    """Return the simulated rollout of one engine; the step time is linear between two ends of responses."""
    prompt, budget = layout.config.mean_prompt_length, layout.config.partial_tokens
    lengths = layout.lengths.quantiles(layout.sequences_per_engine)
    longest, anywhere = max(lengths), layout.lengths.longest(layout.generated)
    random.Random(0).shuffle(lengths)
    if 0 < budget < layout.config.max_response_length:
        rollout = decode_partially(layout, memory, lengths, budget, anywhere)
    else:
        rollout = Rollout(concurrent=slots(layout, memory, len(lengths), layout.mean_sequence))
        rollout.seconds["prefill"] = prefill_seconds(layout)
        decode(rollout, layout, [(prompt, length) for length in lengths])
        add_wait(rollout, layout, longest, anywhere)
    rollout.seconds = {part: rollout.seconds[part] for part in PARTS if rollout.seconds[part]}
    return rollout


def slots(layout: Layout, memory: Memory, count: int, mean_sequence: float) -> int:
    """Return how many of `count` responses an engine decodes at once."""
    return int(min(layout.config.max_num_seqs, count, max(memory.kv_tokens // mean_sequence, 1)))


def decode(rollout: Rollout, layout: Layout, responses: Sequence[tuple[float, float]], groups: int = 0) -> list[int]:
    """Add the time in which an engine decodes responses, each given by its tokens before and its new tokens.

    groups: stop after this number of groups, n responses in a row each, have ended; 0 for all.
    Returns the indices of the responses that ended, in this order.
    """
    size, first = layout.config.n, rollout.concurrent
    left = [size] * -(-len(responses) // size)
    running = [(responses[i][1], i) for i in range(first)]
    heapq.heapify(running)
    now, held, begun = 0.0, float(sum(responses[i][0] for i in range(first))), first
    ended: list[int] = []
    while running and not (groups and left.count(0) >= groups):
        end, index = heapq.heappop(running)
        count, steps = len(running) + 1, end - now
        if steps > 0:
            _add(rollout, layout, count, held + count * steps / 2, steps)
            held += count * steps
        now, held = end, held - sum(responses[index])
        ended.append(index)
        left[index // size] -= 1
        if begun < len(responses):
            before, new = responses[begun]
            heapq.heappush(running, (now + new, begun))
            held, begun = held + before, begun + 1
    return ended


def decode_partially(layout: Layout, memory: Memory, lengths: Sequence[float], budget: int, anywhere: float) -> Rollout:
    """Return the rollout of a step in which each response gets at most `budget` tokens.

    anywhere: longest response of all engines. As many responses begin in a step as are trained. What goes on is
    prefilled again, because the weights are new.
    """
    prompt = layout.config.mean_prompt_length
    parts = [(prompt + start, min(budget, length - start)) for length in lengths for start in pieces(length, budget)]
    random.Random(1).shuffle(parts)
    rollout = Rollout(concurrent=slots(layout, memory, len(parts), fmean(before + new for before, new in parts)))
    rollout.seconds["prefill"] = prefill_seconds(layout)
    rollout.seconds["prefill"] += sum(reading_seconds(layout, before) for before, _ in parts if before > prompt)
    decode(rollout, layout, parts)
    add_wait(rollout, layout, min(budget, max(lengths)), min(budget, anywhere))
    return rollout


def pieces(length: float, budget: int) -> range:
    """Return where the pieces of a response begin, in tokens."""
    return range(0, math.ceil(length), budget)


def staleness(lengths: Sequence[float], size: int, budget: int) -> float:
    """Return the steps from the weights that drew a token to its update, mean over tokens, with such a budget.

    A group of `size` responses is trained in the step in which its longest one ends.
    """
    waited = 0.0
    for first in range(0, len(lengths), size):
        group = [(length, pieces(length, budget)) for length in lengths[first : first + size]]
        steps = max(len(parts) for _, parts in group)
        for length, parts in group:
            waited += sum(min(budget, length - start) * (steps - 1 - i) for i, start in enumerate(parts))
    return waited / sum(lengths)


def add_wait(rollout: Rollout, layout: Layout, longest: float, anywhere: float) -> None:
    """Add the wait from this engine's longest response to the longest one of all engines."""
    last = anywhere - longest
    parts = step_seconds(layout, 1, layout.config.mean_prompt_length + longest + last / 2)
    rollout.seconds["wait for the longest response"] = last * sum(parts.values())


def _add(rollout: Rollout, layout: Layout, count: int, held: float, steps: float) -> None:
    rollout.drawn += count * steps
    for part, seconds in step_seconds(layout, count, held).items():
        rollout.seconds[part] += steps * seconds
        rollout.responses_seconds += count * steps * seconds


def prefill_seconds(layout: Layout) -> float:
    """Return the seconds for the prefill of an engine's prompts; a group shares its prompt in the prefix cache."""
    config = layout.config
    return layout.sequences_per_engine / config.n * reading_seconds(layout, config.mean_prompt_length)


def reading_seconds(layout: Layout, tokens: float) -> float:
    """Return the seconds in which an engine reads `tokens` of a sequence at once."""
    model, gpu = layout.model, layout.gpu
    flops = 2 * tokens * model.body_matmul + 2 * tokens**2 * model.q_width * model.layers
    return flops / layout.config.tensor_model_parallel_size / (gpu.flops * gpu.train_utilisation)
