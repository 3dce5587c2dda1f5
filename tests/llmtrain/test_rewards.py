"""The soft penalty on length, worked out by hand."""

import pytest
import torch

from llmtrain.config import RewardConfig, TrainConfig
from llmtrain.rewards import overlong


def test_by_hand():
    lengths = torch.tensor([1, 12, 14, 16, 20])
    penalty = overlong(lengths, 20, RewardConfig(overlong_buffer=8, overlong_penalty=0.5))
    assert penalty.tolist() == [0, 0, 0.125, 0.25, 0.5]


def test_none_by_default():
    assert overlong(torch.tensor([3, 20]), 20, RewardConfig()).tolist() == [0, 0]


def test_bad_settings():
    with pytest.raises(ValueError, match="must not be negative"):
        RewardConfig(overlong_penalty=-1)
    with pytest.raises(ValueError, match="must not exceed"):
        TrainConfig(reward=RewardConfig(overlong_buffer=100))
