"""Turns of padded responses: runs of the policy's own tokens."""

import torch

from entrostat.integrations.packing import pack, turns

MASK = torch.tensor(
    [
        [1, 1, 0, 0, 1, 0, 1, 1],
        [0, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 1, 0, 1, 0],
    ],
    dtype=torch.bool,
)


def test_turns_are_runs_of_own_tokens():
    found = pack(MASK, {"seq_id": torch.arange(4)})
    assert found["seq_id"].tolist() == [0] * 5 + [1] * 3 + [3] * 4
    assert found["turn_id"].tolist() == [0, 0, 1, 2, 2, 0, 0, 0, 0, 1, 2, 3]
    assert found["position"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3]


def test_turns_of_one_sequence_after_its_prompt():
    assert turns(MASK[1])[MASK[1]].tolist() == [0, 0, 0]
    assert turns(MASK[0])[MASK[0]].tolist() == [0, 0, 1, 2, 2]


def test_turns_against_plain_loops():
    mask = torch.rand(20, 30, generator=torch.Generator().manual_seed(0)) < 0.6
    for row, found in zip(mask.tolist(), turns(mask).tolist(), strict=True):
        turn, inside = -1, False
        for own, index in zip(row, found, strict=True):
            turn += own and not inside
            inside = own
            assert not own or index == turn
