"""The ratio between the policy that trains and the one that sampled, worked out by hand."""

from math import log

import pytest
import torch

from llmtrain.process.ranks import Ranks
from llmtrain.rollout.mismatch import mismatch


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


class Two(Ranks):
    """Two ranks, of which the other has the tokens."""

    def total(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([2.0, 0.5, 1.5, 2.5], dtype=torch.float64)

    def greatest(self, x: torch.Tensor) -> torch.Tensor:
        return torch.maximum(x, torch.tensor([log(2), log(4)], dtype=torch.float64))


def test_a_rank_without_tokens_tells_of_the_others():
    expected = {"kl": 0.25, "logp_gap": 0.75, "ratio_mean": 1.25, "ratio_max": 2.0, "ratio_min": 0.25}
    found = mismatch(torch.empty(0), torch.empty(0), Two())
    assert found == pytest.approx({f"mismatch/{name}": value for name, value in expected.items()})


def test_no_tokens():
    assert mismatch(torch.empty(0), torch.empty(0), Ranks()) == {}
