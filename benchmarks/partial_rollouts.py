"""Decoding steps, processor time and age of tokens per rollout step, with and without partial rollouts.

    OMP_NUM_THREADS=1 python -m benchmarks.partial_rollouts

The presets' model (0.86M parameters, random weights, so that lengths are about geometric) samples 32 prompts with 8
responses each of at most 128 tokens by `hf`. Of 20 rollout steps the last 12 count. Its weights stay, so that all rows
draw the same responses.
"""

import statistics
import time

import torch

from llmtrain.policy.model import build_tiny
from llmtrain.process.clock import Clock
from llmtrain.process.ranks import Ranks
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.settings.config import OptimConfig, RolloutConfig, TrainConfig
from llmtrain.tasks import get_task
from llmtrain.training.partial_batches import make_batches

TOKENS = (0, 64, 32, 16)
COLUMNS = (
    "`partial_tokens`",
    "decoding steps",
    "most",
    "CPU s, median",
    "tokens/CPU s",
    "going on",
    "age, mean",
    "most",
    "first step",
)
PROMPTS, N, LONGEST, STEPS, FIRST = 32, 8, 128, 20, 8


def measure(tokens: int) -> str:
    """Return the row of the table for a number of tokens per pass; 0: responses end in their step."""
    rollout = RolloutConfig(prompts=PROMPTS, n=N, max_new_tokens=LONGEST, partial_tokens=tokens)
    config = TrainConfig(steps=STEPS, rollout=rollout, optim=OptimConfig(mini_batch_size=PROMPTS))
    task = get_task(config)
    tokenizer = task.build_tokenizer(0)
    model, calls = build_tiny(len(tokenizer)), []
    model.register_forward_pre_hook(lambda *_: calls.append(1))
    engine = HFEngine(model, tokenizer, rollout)
    source = make_batches(config, task, tokenizer, engine, Ranks(), Clock("cpu"))
    decoded, seconds, trained, ages, held = [], [], [], [], []
    for step in range(STEPS):
        engine.update([], step)
        calls.clear()
        began = time.process_time()
        _, rollouts = source.next(step)
        seconds.append(time.process_time() - began)
        decoded.append(len(calls))
        trained.append(len(rollouts.response_ids))
        ages.append(step - rollouts.version)
        held.append(source.metrics().get("rollout/in_flight", 0.0))
    speed = sum(trained[FIRST:]) / sum(seconds[FIRST:])
    age = torch.cat(ages[FIRST:]).double()
    numbers = (
        f"{statistics.mean(decoded[FIRST:]):.0f}",
        f"{max(decoded[FIRST:])}",
        f"{statistics.median(seconds[FIRST:]):.2f}",
        f"{speed:,.0f}",
        f"{statistics.mean(held[FIRST:]):.0f}",
        f"{age.mean():.2f}",
        f"{int(age.max())}",
        f"{decoded[0]}",
    )
    return f"| {tokens or 'off'} | {' | '.join(numbers)} |"


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for tokens in TOKENS:
        print(measure(tokens), flush=True)


if __name__ == "__main__":
    main()
