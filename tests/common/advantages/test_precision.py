"""Advantages where rounding, size or a wrong number beside the rewards could change them in silence."""

import math

import pytest
import torch

from entrostat import get_advantage
from entrostat.advantages import advantage_uses
from entrostat.numbers.segments import Segments, quantile_within

ONE = torch.zeros(4, dtype=torch.int64)
TWO = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("share", "size"), [(0.6, 25), (0.15, 100), (0.27, 100), (0.3, 50), (0.54, 200), (7 / 13, 13)])
def test_a_quantile_of_a_whole_share_takes_no_reward_more(share, size, dtype):
    """K·n responses are wrong, so that a share K does not exceed 0: the quantile is 0, and right ones are learned."""
    wrong = round(share * size)
    reward = torch.tensor([1.0] * (size - wrong) + [0.0] * wrong, dtype=dtype)
    found = get_advantage("qae")(reward, torch.zeros(size, dtype=torch.int64), k=share)
    assert (found[: size - wrong] > 0.5).all()
    assert (found[size - wrong :] == 0).all()


def test_quantiles_by_fractions():
    """All shares of two decimals and sizes to 120, against whole numbers: the smallest m with 100·m ≥ 100·K·n."""
    for size in range(1, 121):
        values = torch.arange(size, dtype=torch.float64)
        whole = Segments(torch.zeros(size, dtype=torch.int64))
        for hundredths in range(1, 100):
            least = max(-(-hundredths * size // 100), 1)
            assert float(quantile_within(values, whole, hundredths / 100)[0]) == least - 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.9, 0.999, 0.9999, 0.99999, 0.999999, 1.0])
def test_certain_tokens_keep_their_baseline(p, dtype):
    """Equal weights have the group's mean as baseline, .75, however small they are."""
    reward = torch.tensor([1.0] * 6 + [0.0] * 2, dtype=dtype)
    exact = torch.full((8,), p, dtype=torch.float64)
    told = {"logp": exact.log().to(dtype), "s2": (exact**2 + (1 - exact) ** 2).to(dtype), "response": torch.arange(8)}
    found = get_advantage("optimal_token")(reward, torch.zeros(8, dtype=torch.int64), **told)
    assert found.tolist() == pytest.approx([0.25] * 6 + [-0.75] * 2, abs=1e-6)
    assert found.dtype == dtype


@pytest.mark.parametrize(
    ("name", "reward", "told", "said"),
    [
        (
            "gdpo",
            [0, 1, 0, 1],
            {"rewards": torch.ones(2, 4), "weight": torch.tensor([1, torch.nan])},
            "weight is not fin",
        ),
        (
            "gdpo",
            [0, 1, 0, 1],
            {"rewards": torch.ones(2, 4), "weight": torch.tensor([1, torch.inf])},
            "weight is not fin",
        ),
        ("gdpo", [0, 1, 0, 1], {"rewards": torch.ones(2, 4), "weight": [1, 2]}, "weight must be a tensor, not list"),
        ("opo", [0, 1, 0, 1], {"length": torch.tensor([1, -3, 2, 2])}, "length must not be negative; got -3"),
        ("opo", [0, 1, 0, 1], {"length": torch.tensor([1, torch.nan, 1, 1])}, "length is not finite everywhere"),
        ("opo", [0, 1, 0, 1], {"length": 3}, "length must be a tensor of numbers of tokens, not int"),
        ("reinforce_pp", [0, 1, 0, 1], {"length": torch.tensor([1, -3, 1, 1])}, "length must not be negative; got -3"),
        ("grpo", [0, 1j, 0, 1], {}, "reward must be a tensor with a number for each response, not of torch.complex64"),
        (
            "grpo",
            [0, 1, 0, 1],
            {"group_id": torch.zeros(2, 4).long()},
            "group_id has more dimensions than the rewards",
        ),
        (
            "optimal_token",
            [0, 1],
            {"logp": torch.tensor([-0.1, -0.2]), "s2": torch.tensor([0.5, 0.9]), "response": torch.arange(2)},
            "s2 is below π² of a token's logp: they are not of one policy",
        ),
        ("prime", [0, 1], {"response": torch.tensor([-1, 0])}, "from 0 to 1; got -1"),
        (
            "prime",
            [0, 1],
            {"response": torch.tensor([0.0, 1.0])},
            "response must be a tensor of int64, not of torch.float32",
        ),
    ],
)
def test_a_wrong_number_is_refused(name, reward, told, said):
    given = torch.tensor(reward) + (0 if any(isinstance(x, complex) for x in reward) else 0.0)
    told = {"group_id": torch.arange(len(reward)) // 2, **told}
    if name == "prime":
        told |= {"prm_logp": torch.tensor([-1.0, -2.0]), "ref_logp": torch.tensor([-1.0, -1.0])}
    with pytest.raises((TypeError, ValueError), match=said):
        get_advantage(name)(given, **told)


@pytest.mark.parametrize("size", [1e20, 1e30, 3e38])
def test_a_number_for_an_invalid_response_leaves_the_others_an_advantage(size):
    reward = torch.tensor([-size, 0.0, 1.0, 1.0])
    assert get_advantage("grpo")(reward, ONE).tolist() == pytest.approx([-1.5, 0.5, 0.5, 0.5])
    whitened = get_advantage("reinforce_pp")(reward, TWO)
    assert whitened.isfinite().all()
    assert whitened[0] < -1 < 1 < whitened[1]
    assert get_advantage("dr_grpo")(reward, ONE).tolist() == pytest.approx([-0.75 * size, *[0.25 * size] * 3])


def test_large_integers_are_exact():
    """Nanoseconds and bytes; float32 has no odd number above 2^24."""
    reward = torch.tensor([2**24, 2**24 + 1] * 2)
    assert get_advantage("grpo")(reward, ONE).tolist() == pytest.approx(
        [-math.sqrt(3) / 2, math.sqrt(3) / 2] * 2, rel=1e-5
    )
    assert get_advantage("rloo")(torch.tensor([1700000001, 1700000002]), torch.zeros(2).long()).tolist() == [-1, 1]
    above = {"greedy": torch.tensor([1e9 + 1] * 4, dtype=torch.float64)}
    assert get_advantage("remax")(torch.tensor([1e9] * 4), ONE, **above).tolist() == [-1] * 4


@pytest.mark.parametrize("name", ["remax", "optimal_token", "prime", "gdpo", "grpo"])
def test_an_advantage_is_a_constant_of_the_loss(name):
    logp = torch.tensor([-0.5, -1.0, -0.7, -2.0], requires_grad=True)
    reward = torch.tensor([1.0, 0.0, 0.5, 0.2], requires_grad=True)
    told = {
        "remax": {"greedy": logp},
        "optimal_token": {"logp": logp, "s2": torch.full((4,), 0.5), "response": torch.arange(4)},
        "prime": {"prm_logp": logp, "ref_logp": logp.detach() * 2, "response": torch.arange(4)},
        "gdpo": {"rewards": torch.stack([reward, logp])},
    }
    assert not get_advantage(name)(reward, ONE, **told.get(name, {})).requires_grad


def test_what_may_be_given_is_told():
    assert advantage_uses("gdpo") == ("rewards", "weight", "length")


def test_nothing_has_no_advantage():
    for name in ("grpo", "pass_at_k k=2", "pass_at_k k=2 variant=best", "max_rl", "qae"):
        assert get_advantage(name)(torch.zeros(0), torch.zeros(0, dtype=torch.int64)).shape == (0,)
