import pytest
import torch

from entrostat import Tokens, make


def test_shapes_must_fit():
    with pytest.raises(ValueError, match=r"Tokens\.logp has shape \(4,\); expected \(2, 3\) like advantage"):
        Tokens(logp=torch.zeros(4), old_logp=torch.zeros(2, 3), advantage=torch.zeros(2, 3))
    with pytest.raises(ValueError, match="at least one dimension"):
        Tokens(logp=None, old_logp=None, advantage=torch.tensor(1.0))


def test_runs_may_share_a_field():
    t = Tokens(logp=torch.zeros(2, 3), old_logp=torch.zeros(3), advantage=torch.zeros(2, 3), seq_id=torch.arange(3))
    assert t.size == 3


@pytest.mark.parametrize("aggregation", ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum"])
def test_whole_numbers_are_those_with_a_point(aggregation):
    """An advantage of 1, -1 as integers had no gradient at all."""
    logp = torch.tensor([-1.0, -2.0, -0.5, -1.5], dtype=torch.float64)
    found = []
    for advantage in (torch.tensor([1, 1, 0, -1]), torch.tensor([1, 1, 0, -1.0], dtype=torch.float64)):
        seq_id = torch.tensor([0, 0, 1, 2])
        t = Tokens(logp=logp, old_logp=logp, advantage=advantage, reward=advantage, seq_id=seq_id)
        assert (t.reward.is_floating_point(), t.seq_id.dtype) == (True, torch.int64)
        x = logp.clone().requires_grad_()
        make("ppo", aggregation=aggregation).plan(t).loss(x).backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]
    assert found[0][0] != 0


def test_get_names_what_is_absent():
    t = Tokens(logp=torch.zeros(3), old_logp=None, advantage=torch.zeros(3))
    with pytest.raises(ValueError, match=r"Tokens\.s2l is needed but was not given"):
        t.get("s2l")


def test_some_of_the_tokens():
    """One tensor that two fields hold is still one; a rule may not copy what it does not read."""
    logp = torch.arange(5.0)
    some = Tokens(logp=logp, old_logp=logp, advantage=torch.arange(10.0).view(2, 5)).select(torch.tensor([3, 0]))
    assert some.logp.tolist() == [3, 0]
    assert some.logp is some.old_logp
    assert some.advantage.tolist() == [[3, 0], [8, 5]]
    assert some.ref_logp is None
