"""What engines have in common."""

import math
from copy import deepcopy

import pytest
import torch

from llmtrain.policy.engine import TorchEngine, clip
from llmtrain.settings.config import OptimConfig


@pytest.mark.parametrize(("most", "left"), [(0.5, 0.5), (9.0, 5.0), (0.0, 5.0)])
def test_gradients_are_scaled_down_to_a_norm_and_0_leaves_them(most, left):
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert clip([weight], most) == 5
    assert float(weight.grad.norm()) == pytest.approx(left)


def test_a_norm_that_is_not_finite_is_told():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([math.inf, 0.0])
    assert clip([weight], 0.0) == math.inf


def moved(config, state=None):
    """An engine that took a step, from a state if there is one."""
    engine = TorchEngine(torch.nn.Linear(2, 1), config)
    if state:
        engine.load_state_dict(deepcopy(state))
    engine.backward(engine.model(torch.ones(2)).sum())
    engine.step()
    return engine


def test_settings_that_were_edited_are_gone_on_with():
    state = moved(OptimConfig(lr=1.0, warmup_steps=4)).state_dict()
    same = moved(OptimConfig(lr=1.0, warmup_steps=4), state)
    other = moved(OptimConfig(lr=0.5, warmup_steps=4, betas=(0.5, 0.6), weight_decay=0.1), state)
    assert [engine.optimizer.param_groups[0]["lr"] for engine in (same, other)] == [0.75, 0.375]
    assert other.optimizer.param_groups[0]["betas"] == (0.5, 0.6)
    assert other.optimizer.param_groups[0]["weight_decay"] == 0.1
    assert other.optimizer.state_dict()["state"][0]["step"] == 2


def test_a_checkpoint_of_deepspeed_is_refused():
    with pytest.raises(ValueError, match=r"has engine.name deepspeed, this run has torch: use the same"):
        moved(OptimConfig(), {"scheduler": {}, "world_size": 2, "zero_stage": 2})
