"""Tokens of the fullest rank relative to the mean, before and after responses are distributed for training.

    python -m benchmarks.balance

Batches of presets of `llmtrain plan`, with exponential lengths and prompts of 60 to 260 tokens; half of the groups have
an advantage. Only tokens of a mini-batch with an advantage count, since only they need forward and backward passes.
Under dynamic sampling two batches are sampled, and one batch of groups with an advantage is trained on.
"""

import torch
from torch import Tensor

from llmtrain.plan.cost import make_plan
from llmtrain.plan.plan_presets import PRESETS
from llmtrain.process.ranks import Ranks
from llmtrain.sequences.collected import Collected
from llmtrain.sequences.exchange import deal
from llmtrain.sequences.mini_batch import mini_batches, shares
from llmtrain.sequences.rollouts import Rollouts

PLANS = "qwen3-8b-8gpu", "qwen3-8b-64gpu", "qwen2.5-math-7b-8gpu", "qwen2.5-32b-64gpu"
ROUNDS = 10


class AllRanks(Ranks):
    """Single process that distributes responses over `size` ranks."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


def fullest(found: Collected, rank_of: Tensor, parts: tuple[Tensor, ...], ranks: int) -> list[float]:
    """Return the tokens of the fullest rank relative to the mean, for each mini-batch."""
    tokens = found.rollouts.lengths * (found.advantage != 0)
    ratios = []
    for part in parts:
        some = torch.isin(found.rollouts.prompt_index, part)
        by_rank = torch.zeros(ranks, dtype=torch.long).index_add(0, rank_of[some], tokens[some])
        ratios.append(float(by_rank.max() / by_rank.double().mean()))
    return ratios


def row(name: str, filtered: bool) -> str:
    """Return a preset's line of the table."""
    plan = make_plan(PRESETS[name].config)
    config, ranks = plan.layout.config, plan.layout.ranks
    n, prompts, generator = config.n, config.prompts * (1 + filtered), torch.Generator().manual_seed(0)
    ways = ("sampled", "whole", "split") if config.mini_batch_size % ranks == 0 else ("sampled", "split")
    found: dict[str, list[float]] = {way: [] for way in ways}
    for step in range(ROUNDS):
        drawn = -plan.layout.lengths.scale * torch.rand(prompts * n, generator=generator).log()
        asked = torch.randint(60, 260, (prompts,), generator=generator)
        live = (torch.rand(prompts, generator=generator) < 0.5).nonzero()[:, 0]
        kept = live[: config.prompts] if filtered else torch.arange(prompts)
        index = torch.arange(len(kept)).repeat_interleave(n)
        lengths = drawn.view(prompts, n)[kept].flatten().clamp(1, config.max_response_length).long()
        nothing, advantage = torch.empty(0), torch.isin(kept[index], live).float()
        ids = [[0] * size for size in asked[kept].tolist()]
        rollouts = Rollouts(ids, nothing, lengths, nothing, index, nothing)
        one = Collected(rollouts, torch.arange(len(index)), advantage, advantage, advantage, {})
        parts = mini_batches(len(kept), config.mini_batch_size, 0, step)
        sampler = torch.empty(prompts, dtype=torch.long)
        for batch in torch.arange(prompts).split(config.prompts):
            for rank, mine in enumerate(shares(asked[batch], ranks)):
                sampler[batch[mine]] = rank
        found["sampled"] += fullest(one, sampler[kept[index]], parts, ranks)
        for how in found.keys() - {"sampled"}:
            found[how] += fullest(one, deal(one, parts, n, how == "whole", AllRanks(ranks)), parts, ranks)
    means = {way: f"{sum(ratios) / len(ratios):.2f}" for way, ratios in found.items()}
    told = " | ".join(means.get(way, "refused") for way in ("sampled", "whole", "split"))
    return f"| {config.mini_batch_size * n // ranks}, {ranks} | {'yes' if filtered else 'no'} | {told} |"


def main() -> None:
    print("| responses per rank, ranks | dynamic sampling | where sampled | whole groups | responses |")
    print("|---|---|---|---|---|")
    for filtered in (False, True):
        for name in PLANS:
            print(row(name, filtered), flush=True)


if __name__ == "__main__":
    main()
