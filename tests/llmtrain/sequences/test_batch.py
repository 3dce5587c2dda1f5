import torch

from llmtrain.sequences.batch import Batch, padded
from llmtrain.sequences.rollouts import Rollouts

ROLLOUTS = Rollouts(
    prompt_ids=[[7, 8], [9]],
    response_ids=torch.tensor([1, 2, 3, 4, 5, 6]),
    response_lengths=torch.tensor([1, 2, 3]),
    logp=torch.zeros(6),
    prompt_index=torch.tensor([0, 0, 1]),
    finished=torch.tensor([True, True, True]),
)


def test_of_rollouts():
    batch = Batch.of(ROLLOUTS)
    assert batch.ids.tolist() == [7, 8, 1, 7, 8, 2, 3, 9, 4, 5, 6]
    assert batch.ids.dtype == torch.int64
    assert batch.lengths.tolist() == [3, 4, 4]
    assert len(batch) == 3


def test_padded_and_indices_follow_the_order_asked_for():
    batch = Batch.of(ROLLOUTS)
    some = torch.tensor([2, 0])
    assert batch.padded(some).tolist() == [[9, 4, 5, 6], [7, 8, 1, 0]]
    assert batch.select(some).padded(torch.arange(2)).tolist() == [[9, 4, 5, 6], [7, 8, 1, 0]]
    assert batch.response_index(some).tolist() == [3, 4, 5, 0]
    assert batch.targets(some).tolist() == [4, 5, 6, 1]


def test_select():
    part = Batch.of(ROLLOUTS).select(torch.tensor([2, 1]))
    assert part.ids.tolist() == [9, 4, 5, 6, 7, 8, 2, 3]
    assert part.prompt_lengths.tolist() == [1, 2]
    assert part.response_lengths.tolist() == [3, 2]


def test_slices_are_padded_with_empty_ones():
    found = padded([torch.tensor([2, 0])], 3)
    assert [part.tolist() for part in found] == [[2, 0], [], []]
    assert all(part.dtype == torch.int64 for part in found)
