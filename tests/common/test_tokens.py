import numpy as np
import pytest
import torch

from entrostat import Tokens, make
from entrostat.tokens import check_logp


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


LOGP = torch.tensor([-1.0, -2.0, -0.5])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"logp": [-1.0, -2.0, -0.5]}, r"^Tokens\.logp must be a tensor, not list: torch\.as_tensor makes one$"),
        ({"advantage": None}, r"^Tokens\.advantage must be a tensor, not NoneType"),
        (
            {"group_id": ["a", "a", "b"]},
            r"^Tokens\.group_id must be a tensor of integers, not list: number the prompts",
        ),
        (
            {"seq_id": torch.tensor([0.0, 0.0, 1.0])},
            r"^Tokens\.seq_id must be .*, not of torch\.float32: number the resp",
        ),
        ({"position": np.arange(3)}, r"^Tokens\.position must be a tensor of integers, not ndarray: count the tokens"),
        ({"log_p": LOGP}, r"unexpected keyword argument 'log_p'"),
    ],
)
def test_what_is_no_field_or_no_tensor_is_named_in_one_line(changes, said):
    with pytest.raises(TypeError, match=said):
        Tokens(**{"logp": LOGP, "old_logp": LOGP, "advantage": LOGP, **changes})


def test_leading_runs_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"^Tokens\.logp has shape \(3, 4\); expected \(2, 4\)"):
        Tokens(logp=torch.zeros(3, 4), old_logp=None, advantage=torch.zeros(2, 4))


def test_a_graph_is_cut_off():
    """A loss of log π relative to itself has no gradient at all."""
    logp = LOGP.clone().requires_grad_()
    tokens = Tokens(logp=logp, old_logp=logp, advantage=LOGP * logp)
    assert tokens.logp is tokens.old_logp
    assert not tokens.advantage.requires_grad
    make("grpo").plan(tokens).loss(logp).backward()
    assert logp.grad.tolist() == pytest.approx((-LOGP * LOGP / 3).tolist())


def looked_at(logp, old_logp=None):
    return check_logp(Tokens(logp=logp, old_logp=old_logp, advantage=torch.zeros_like(logp)))


@pytest.mark.parametrize("filler", [1.0, 0.1])
@pytest.mark.parametrize("field", ["logp", "old_logp"])
def test_a_filler_above_0_is_refused(filler, field):
    """TRL fills padding with 1 (huggingface/trl#2281)."""
    held = {"logp": LOGP, "old_logp": LOGP} | {field: torch.tensor([-1.0, -2.0, filler])}
    with pytest.raises(
        ValueError, match=rf"^Tokens\.{field} is {filler:g} for a token, .* leave padding out, as in logp"
    ):
        looked_at(**held)


def test_a_loss_in_place_of_a_log_probability_is_refused():
    with pytest.raises(ValueError, match=r"^Tokens\.logp is 2 for a token, .* pass log π, not a loss$"):
        looked_at(-LOGP)


def padded(lengths, width, fill=0.0):
    logp = -torch.rand(len(lengths), width, generator=torch.Generator().manual_seed(0)) - 0.01
    return logp.masked_fill(torch.arange(width) >= torch.tensor(lengths)[:, None], fill).flatten()


def test_zeros_one_after_another_are_told_and_those_between_others_are_not():
    rows = padded([20, 9, 31, 40], 40)
    assert looked_at(rows, rows).startswith(
        "38% of the tokens have a log-probability of exactly 0, one after another: if"
    )
    assert looked_at(rows, rows - 1) == ""
    certain = rows[torch.randperm(160, generator=torch.Generator().manual_seed(1))]
    assert looked_at(certain, certain) == ""
    assert looked_at(torch.zeros(160)) == ""
    assert looked_at(padded([40, 40], 40)) == ""
    assert looked_at(torch.full((3,), torch.nan)) == ""
