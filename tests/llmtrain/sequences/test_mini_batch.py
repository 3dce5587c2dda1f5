"""Mini-batches of prompts, and each rank's share of them."""

import torch

from llmtrain.sequences.mini_batch import mini_batches, shares


def test_mini_batches_hold_every_prompt_once_in_an_order_of_each_step():
    parts = mini_batches(12, 4, seed=3, step=5)
    assert [len(part) for part in parts] == [4, 4, 4]
    assert torch.cat(parts).sort().values.tolist() == list(range(12))
    assert torch.equal(torch.cat(parts), torch.cat(mini_batches(12, 4, seed=3, step=5)))
    for changed in ({"seed": 4}, {"step": 6}):
        other = mini_batches(12, 4, **({"seed": 3, "step": 5} | changed))
        assert not torch.equal(torch.cat(parts), torch.cat(other))


def test_prompts_are_dealt_there_and_back():
    """9 and 1 to the first rank, 7 and 2 to the second, 4 and 3 to the third."""
    sizes = torch.tensor([1, 9, 3, 7, 2, 4])
    assert shares(sizes, 3) == [[0, 1], [3, 4], [2, 5]]
    assert shares(sizes, 2) == [[1, 2, 4], [0, 3, 5]]  # 9, 3 and 2; 7, 4 and 1
    assert [len(mine) for mine in shares(torch.ones(7), 3)] == [3, 2, 2]


def test_one_rank_answers_all():
    assert shares(torch.ones(6), 1) == [list(range(6))]
