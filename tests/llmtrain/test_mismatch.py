"""The ratio between the policy that trains and the one that sampled, worked out by hand."""

from math import log

import pytest
import torch

from llmtrain.mismatch import mismatch
from llmtrain.ranks import Ranks


def test_by_hand():
    rollout = torch.tensor([-1.0, -2.0, -0.5])
    trainer = rollout + torch.tensor([log(2), -log(4), 0.0])
    found = mismatch(trainer, rollout, Ranks())
    assert found == pytest.approx(
        {
            "mismatch/kl": (log(4) - log(2)) / 3,
            "mismatch/logp_gap": (log(4) + log(2)) / 3,
            "mismatch/ratio_mean": (2 + 0.25 + 1) / 3,
            "mismatch/ratio_max": 2.0,
            "mismatch/ratio_min": 0.25,
        },
        rel=1e-6,
    )


def test_no_tokens():
    assert mismatch(torch.empty(0), torch.empty(0), Ranks()) == {}
