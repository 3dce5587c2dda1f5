from math import sqrt

import pytest
import torch

from entrostat import Tokens, get_advantage, make

LENGTHS = torch.tensor([1, 2, 1, 2, 1])
SEQ = torch.repeat_interleave(torch.tensor([30, 10, 20, 40, 50]), LENGTHS)
GROUP = torch.tensor([1, 1, 1, 1, 1, 1, 2])
REWARD = torch.repeat_interleave(torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0], dtype=torch.float64), LENGTHS)
# mean log π_old of the responses: −3, −1, −2, −2 | −9; ranks 0, 3, 1.5, 1.5 | 0
OLD = torch.tensor([-3.0, -0.5, -1.5, -2.0, -1.0, -3.0, -9.0], dtype=torch.float64)
SHAPED = torch.tensor([1.0, 1 - 0.25 * 3 / 4, 0.0, 1 - 0.25 * 1.5 / 4, 1.0], dtype=torch.float64)


def tokens() -> Tokens:
    return Tokens(logp=OLD, old_logp=OLD, advantage=REWARD - 0.5, reward=REWARD, seq_id=SEQ, group_id=GROUP)


def test_by_hand():
    found = make("unlikeliness", advantage="dr_grpo").plan(tokens()).advantage
    mean = (1 + 0.8125 + 0.90625) / 4
    expected = torch.tensor([1 - mean, 0.8125 - mean, -mean, 0.90625 - mean, 0.0], dtype=torch.float64)
    torch.testing.assert_close(found, expected.repeat_interleave(LENGTHS), rtol=1e-14, atol=1e-15)


def test_grpo_of_the_shaped_reward():
    expected = get_advantage("grpo")(SHAPED, torch.tensor([0, 0, 0, 0, 1])).repeat_interleave(LENGTHS)
    torch.testing.assert_close(make("unlikeliness").plan(tokens()).advantage, expected, rtol=1e-13, atol=1e-15)
    std = SHAPED[:4].std().item()
    assert expected[0].item() == pytest.approx((1 - SHAPED[:4].mean().item()) / (std + 1e-6))
    assert std == pytest.approx(sqrt(sum((x - SHAPED[:4].mean().item()) ** 2 for x in SHAPED[:4].tolist()) / 3))


def test_all_correct_groups_have_a_gradient_of_their_own():
    t = tokens()
    t = Tokens(**{**vars(t), "reward": torch.ones_like(REWARD)})
    found = make("unlikeliness").plan(t).advantage
    assert found[0] > 0 > found[1]
    assert make("unlikeliness", beta=0.0).plan(t).advantage.abs().max() == 0


def test_the_order_of_responses_does_not_matter():
    order = torch.tensor([6, 4, 5, 3, 1, 2, 0])
    t = tokens()
    shuffled = Tokens(**{k: None if v is None else v[order] for k, v in vars(t).items()})
    torch.testing.assert_close(
        make("unlikeliness").plan(shuffled).advantage, make("unlikeliness").plan(t).advantage[order], rtol=0, atol=1e-14
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"beta": 2.0}, "beta must lie"), ({"advantage": "gae"}, "unknown advantage"), ({"advantage": "opo"}, "rewards")],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        make("unlikeliness", **settings)
