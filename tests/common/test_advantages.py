import pytest
import torch

from entrostat.advantages import get_advantage

REWARD = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.5], dtype=torch.float64)
GROUP = torch.tensor([5, 5, 5, 2, 2, 9])
SD = (1 / 3) ** 0.5  # unbiased, of (1, 0, 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grpo", [2 / 3 / (SD + 1e-6), -1 / 3 / (SD + 1e-6), -1 / 3 / (SD + 1e-6), 0, 0, 0]),
        ("dr_grpo", [2 / 3, -1 / 3, -1 / 3, 0, 0, 0]),
        ("rloo", [1, -0.5, -0.5, 0, 0, 0]),
    ],
)
def test_by_hand(name, expected):
    assert get_advantage(name)(REWARD, GROUP).tolist() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo"])
def test_runs_are_independent_and_order_does_not_matter(name):
    advantage = get_advantage(name)
    runs = torch.stack([REWARD, 1 - REWARD])
    assert torch.equal(advantage(runs, GROUP)[1], advantage(1 - REWARD, GROUP))
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(
        advantage(REWARD[order], GROUP[order]), advantage(REWARD, GROUP)[order], rtol=0, atol=1e-15
    )


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown advantage 'gae'; choose from grpo, dr_grpo, rloo"):
        get_advantage("gae")
