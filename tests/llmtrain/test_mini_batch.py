"""Mini-batches of prompts, and each rank's share of them."""

import pytest
import torch

from llmtrain.mini_batch import mini_batches, shares
from llmtrain.plan.layout import lay_out
from llmtrain.plan.presets import PRESETS


def test_mini_batches_hold_every_prompt_once_in_an_order_of_each_pass():
    parts = mini_batches(12, 4, seed=3, step=5, epoch=0)
    assert [len(part) for part in parts] == [4, 4, 4]
    assert torch.cat(parts).sort().values.tolist() == list(range(12))
    assert torch.equal(torch.cat(parts), torch.cat(mini_batches(12, 4, seed=3, step=5, epoch=0)))
    for changed in ({"seed": 4}, {"step": 6}, {"epoch": 1}):
        other = mini_batches(12, 4, **({"seed": 3, "step": 5, "epoch": 0} | changed))
        assert not torch.equal(torch.cat(parts), torch.cat(other))


def test_ranks_share_each_mini_batch_evenly():
    parts = mini_batches(24, 8, seed=0, step=0, epoch=0)
    dealt = shares(parts, torch.arange(24) % 5, 4)
    assert sorted(prompt for mine in dealt for prompt in mine) == list(range(24))
    for mine in dealt:
        assert mine == sorted(mine)
        assert [int(torch.isin(torch.tensor(mine), part).sum()) for part in parts] == [2, 2, 2]


def test_costs_are_balanced_by_hand():
    """Dealt there and back: 9 and 1 to the first rank, 7 and 2 to the second, 4 and 3 to the third."""
    sizes = torch.tensor([1, 9, 3, 7, 2, 4])
    assert shares((torch.arange(6),), sizes, 3) == [[0, 1], [3, 4], [2, 5]]
    assert shares((torch.arange(6),), sizes, 2) == [[1, 2, 4], [0, 3, 5]]  # 9, 3 and 2; 7, 4 and 1


@pytest.mark.parametrize(("name", "excess"), [("qwen3-8b-64gpu", 0.04), ("qwen2.5-32b-64gpu", 0.7)])
def test_ranks_are_as_uneven_as_the_plan_says(name, excess):
    """Tokens of the rank with most over the mean, of updates whose responses have the planned lengths."""
    plan = lay_out(PRESETS[name].config)
    config, found = plan.config, []
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        drawn = torch.rand(config.mini_batch_size, config.n, generator=generator)
        lengths = (-plan.lengths.scale * drawn.log()).clamp(1, config.max_response_length)
        tokens = (config.mean_prompt_length + lengths).sum(1)
        shared = [tokens[mine].sum() for mine in shares((torch.arange(len(tokens)),), tokens, plan.ranks)]
        found.append(max(shared) / tokens.sum() * plan.ranks - 1)
    assert sum(found) / 20 == pytest.approx(excess, rel=0.1)


def test_one_rank_answers_all():
    assert shares(mini_batches(6, 2, seed=0, step=0, epoch=0), torch.ones(6), 1) == [list(range(6))]
