"""Uniform numbers by purpose and rollout, made in blocks."""

import torch

from entrostat.numbers.draws import salt, uniform
from toybandit import luck
from toybandit.luck import Luck

SEEDS = torch.tensor([7, 2**40])


def expected(purpose: str, rollout: int) -> torch.Tensor:
    prompt, sample = torch.arange(3).reshape(-1, 1), torch.arange(4)
    return uniform(SEEDS.reshape(-1, 1, 1), salt(purpose), rollout, prompt, sample)


def test_numbers_are_keyed_and_not_in_order_of_asking():
    ours = Luck(SEEDS, 3, 4)
    for rollout in (0, 1, 9, 4, 10**6, 10**6 + 1, 0):
        for purpose in ("arm", "reward"):
            assert torch.equal(ours(purpose, rollout), expected(purpose, rollout))


def test_a_block_ends(monkeypatch):
    monkeypatch.setattr(luck, "BLOCK", 2 * 3 * 4 * 2)
    ours = Luck(SEEDS, 3, 4)
    assert ours.ahead == 2
    for rollout in range(5):
        assert torch.equal(ours("arm", rollout), expected("arm", rollout))
