"""The work of every rank in the tests of exchange: each writes what it was sent, OUT/whole-0.pt, OUT/split-0.pt, ..."""

from pathlib import Path

import torch

from llmtrain.process.ranks import join, leave
from llmtrain.sequences.collected import Collected
from llmtrain.sequences.exchange import deal, exchange
from llmtrain.sequences.mini_batch import mini_batches
from llmtrain.sequences.rollouts import Rollouts

PROMPTS, SAMPLES = 24, 4
MINI_BATCHES = mini_batches(PROMPTS, 12, seed=0, step=0)
HELD = torch.arange(PROMPTS).clamp(max=20) % 2
"""Rank by prompt: the first two hold all."""


def sampled() -> Collected:
    """All responses; about half of the groups have an advantage."""
    generator = torch.Generator().manual_seed(0)
    count = PROMPTS * SAMPLES
    lengths, sequence = torch.randint(1, 60, (count,), generator=generator), torch.arange(count)
    tokens, live = int(lengths.sum()), torch.rand(PROMPTS, generator=generator) < 0.5
    rollouts = Rollouts(
        prompt_ids=[[1] * (1 + prompt % 5) for prompt in range(PROMPTS)],
        response_ids=torch.randint(99, (tokens,), generator=generator),
        response_lengths=lengths,
        logp=-torch.rand(tokens, generator=generator),
        prompt_index=sequence // SAMPLES,
        finished=torch.rand(count, generator=generator) < 0.5,
        version=7,
    )
    reward, shaped, advantage = torch.rand(3, count, generator=generator)
    return Collected(rollouts, sequence, reward, shaped, advantage * live[rollouts.prompt_index], {"reward": 0.5})


def held(rank: int) -> Collected:
    """What a rank has sampled of them."""
    found = sampled()
    mine = (HELD[found.rollouts.prompt_index] == rank).nonzero()[:, 0]
    parts = (x[mine] for x in (found.sequence, found.reward, found.shaped, found.advantage))
    return Collected(found.rollouts.take(mine), *parts, found.metrics)


def main(out: Path) -> None:
    ranks = join("cpu")
    for name in ("whole", "split"):
        mine = held(ranks.rank)
        found = exchange(mine, deal(mine, MINI_BATCHES, SAMPLES, name == "whole", ranks), ranks)
        torch.save({**vars(found), "rollouts": vars(found.rollouts)}, out / f"{name}-{ranks.rank}.pt")
    leave(0)
