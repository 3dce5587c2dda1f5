"""Mini-batches of prompts, and each rank's share of them."""

import torch

from llmtrain.mini_batch import mini_batches, share


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
    shares = [share(parts, rank, 4) for rank in range(4)]
    assert torch.cat(shares).sort().values.tolist() == list(range(24))
    for mine in shares:
        assert torch.equal(mine, mine.sort().values)
        assert [int(torch.isin(mine, part).sum()) for part in parts] == [2, 2, 2]


def test_one_rank_answers_all():
    assert share(mini_batches(6, 2, seed=0, step=0, epoch=0), 0, 1).tolist() == list(range(6))
