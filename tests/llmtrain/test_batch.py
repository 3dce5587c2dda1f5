import torch

from llmtrain.batch import Batch, micro_batches
from llmtrain.rollout import Rollouts

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
    assert batch.lengths.tolist() == [3, 4, 4]


def test_padded_and_indices_follow_the_order_asked_for():
    batch = Batch.of(ROLLOUTS)
    some = torch.tensor([2, 0])
    assert batch.padded(some).tolist() == [[9, 4, 5, 6], [7, 8, 1, 0]]
    assert batch.response_index(some).tolist() == [3, 4, 5, 0]


def test_select():
    part = Batch.of(ROLLOUTS).select(torch.tensor([2, 1]))
    assert part.ids.tolist() == [9, 4, 5, 6, 7, 8, 2, 3]
    assert part.prompt_lengths.tolist() == [1, 2]
    assert part.response_lengths.tolist() == [3, 2]


def test_micro_batches_cover_each_sequence_once_within_the_budget():
    lengths = torch.randint(1, 50, (200,), generator=torch.Generator().manual_seed(0))
    sequences = torch.arange(0, 200, 2)
    slices = micro_batches(lengths, sequences, 100)
    assert torch.cat(slices).sort().values.tolist() == sequences.tolist()
    assert all(len(s) * int(lengths[s].max()) <= 100 for s in slices)
    assert len(slices) < 45  # 25 tokens on average: four a slice fit


def test_a_sequence_above_the_budget_gets_its_own_slice():
    assert [s.tolist() for s in micro_batches(torch.tensor([9, 500, 9]), torch.arange(3), 20)] == [[1], [0, 2]]
    assert micro_batches(torch.tensor([3]), torch.arange(0), 20) == []
