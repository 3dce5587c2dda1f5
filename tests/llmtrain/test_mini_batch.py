"""Mini-batches of prompts, and each rank's share of them."""

import torch

from llmtrain.mini_batch import mini_batches, shares


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


def test_one_rank_answers_all():
    assert shares(mini_batches(6, 2, seed=0, step=0, epoch=0), torch.ones(6), 1) == [list(range(6))]
