import pytest
import torch

from entrostat import Tokens, make

# group 1: correct responses of 2 and 1 tokens and a wrong one of 2; group 2: a correct one of 1
SEQ = torch.tensor([5, 5, 6, 7, 7, 8])
GROUP = torch.tensor([1, 1, 1, 1, 1, 2])
POSITION = torch.tensor([0, 1, 0, 0, 1, 0])
REWARD = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
H = torch.tensor([1.0, 0.7, 3.0, 9.0, 9.0, 0.0], dtype=torch.float64)
RELATIVE = torch.tensor([1 * 2 / 4, 1.0, 3 * 2 / 4, 0.0, 0.0, 1.0], dtype=torch.float64)
A = torch.tensor([0.5, 0.5, 0.5, -1.0, -1.0, 0.0], dtype=torch.float64)


def tokens(**changes) -> Tokens:
    fields = {"advantage": A, "reward": REWARD, "entropy": H, "seq_id": SEQ, "group_id": GROUP, "position": POSITION}
    return Tokens(**{"logp": -A.abs(), "old_logp": -A.abs(), **fields, **changes})


def test_the_addition_by_hand():
    found = make("gtpo", alpha=0.1, into="advantage").plan(tokens()).advantage
    torch.testing.assert_close(found, A + 0.1 * RELATIVE, rtol=1e-14, atol=1e-15)


def test_wrong_responses_gain_nothing_where_no_correct_one_reaches():
    """Beyond the end of every correct response, and in a group without one."""
    changes = {"position": torch.tensor([0, 1, 0, 0, 2, 0]), "reward": REWARD * torch.tensor([1, 1, 1, 1, 1, 0])}
    found = make("gtpo", alpha=0.1, into="advantage").plan(tokens(**changes)).advantage
    assert found[3:].tolist() == A[3:].tolist()


def test_a_group_of_two_tokens():
    two = {name: torch.tensor([0, 1]) for name in ("seq_id", "reward")}
    same = {name: torch.zeros(2, dtype=torch.int64) for name in ("group_id", "position")}
    t = tokens(logp=-A[:2].abs(), old_logp=-A[:2].abs(), advantage=A[:2], entropy=H[:2], **two, **same)
    expected = 0.5 / (0.5**0.5 + 1e-6)  # the unbiased standard deviation of 0 and 1
    assert make("gtpo", alpha=0.0).plan(t).advantage.tolist() == pytest.approx([-expected, expected], rel=1e-14)


def test_advantages_of_the_shaped_reward():
    shaped = (REWARD + 0.1 * RELATIVE)[:5]
    expected = (shaped - shaped.mean()) / (shaped.std() + 1e-6)
    found = make("gtpo", alpha=0.1).plan(tokens()).advantage
    torch.testing.assert_close(found[:5], expected, rtol=1e-12, atol=1e-14)
    assert found[5] == 0  # alone in its group


def test_the_addition_is_alpha_on_average_over_correct_tokens():
    entropy = torch.rand(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = make("gtpo", alpha=0.3, into="advantage").plan(tokens(entropy=entropy)).advantage - A
    assert found[[0, 1, 2, 5]].mean().item() == pytest.approx(0.3, rel=1e-12)
    assert found[3:5].tolist() == [0, 0]


def test_equal_entropies_are_grpo():
    t = tokens(entropy=torch.ones(6).double(), position=torch.zeros(6).long(), seq_id=torch.arange(6))
    found = make("gtpo", alpha=0.4).plan(t).advantage[:5]
    r = REWARD[:5]
    torch.testing.assert_close(found, (r - r.mean()) / (r.std() + 1e-6), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("entropy", [0.0, 0.7])
@pytest.mark.parametrize("responses", [1, 3, 8])
def test_a_group_of_equal_tokens_has_no_advantage_of_rounding(dtype, entropy, responses):
    for length in range(2, 60):
        n = responses * length
        t = Tokens(
            logp=None,
            old_logp=torch.zeros(n, dtype=dtype),
            advantage=torch.zeros(n, dtype=dtype),
            reward=torch.ones(n, dtype=dtype),
            entropy=torch.full((n,), entropy, dtype=dtype),
            seq_id=torch.arange(n) // length,
            group_id=torch.zeros(n, dtype=torch.long),
            position=torch.arange(n) % length,
        )
        found = make("gtpo").plan(t).advantage
        assert found.dtype == dtype
        assert found.abs().max() < 1e-9, length
        assert make("gtpo", into="advantage").plan(t).advantage.dtype == dtype


@pytest.mark.parametrize("settings", [{"alpha": -1.0}, {"into": "loss"}])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must"):
        make("gtpo", **settings)
