import pytest
import torch

from entrostat import Tokens


def test_shapes_must_fit():
    with pytest.raises(ValueError, match=r"Tokens\.logp has shape \(4,\); expected \(2, 3\) like advantage"):
        Tokens(logp=torch.zeros(4), old_logp=torch.zeros(2, 3), advantage=torch.zeros(2, 3))
    with pytest.raises(ValueError, match="at least one dimension"):
        Tokens(logp=None, old_logp=None, advantage=torch.tensor(1.0))


def test_runs_may_share_a_field():
    t = Tokens(logp=torch.zeros(2, 3), old_logp=torch.zeros(3), advantage=torch.zeros(2, 3), seq_id=torch.arange(3))
    assert t.size == 3


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
