"""What a plan is made from: identities and random numbers of the tokens, the same however these are cut."""

import math

import pytest
import torch

from entrostat import LocalReduce, Tokens, make
from entrostat.controller import Context
from entrostat.numbers.per_run import column

EVERY = torch.arange(6)
IDENTITY = {"seq_id": EVERY // 3, "position": EVERY % 3}


def context(*runs: int, seed=7, step=5, reduce=None, **identity) -> Context:
    zero = torch.zeros(*runs, len(identity.get("seq_id", EVERY)))
    return Context(
        Tokens(logp=zero, old_logp=zero, advantage=zero, **identity), reduce or LocalReduce(), seed=seed, step=step
    )


class SecondRank(LocalReduce):
    """Of two with four tokens on the first."""

    def offset(self, count):
        return 4

    def total(self, count):
        return 4 + count


def test_an_identity_is_the_place_in_the_sequence_or_in_the_batch():
    part = {name: x[2:] for name, x in IDENTITY.items()}
    whole = context(**IDENTITY).identity(EVERY)
    assert len(whole.unique()) == 6
    assert torch.equal(context(**part, reduce=SecondRank()).identity(EVERY[:4]), whole[2:])
    for partial in ({}, {"seq_id": IDENTITY["seq_id"]}, {"position": IDENTITY["position"]}):
        found = context(**partial, reduce=SecondRank()).identity(torch.tensor([5, 0]))
        assert found.tolist() == [9, 4]


def test_a_share_is_of_the_tokens_of_all_ranks():
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    assert context(2, reduce=SecondRank()).share(mask).tolist() == [0.6, 0.3]
    assert [context(seq_id=EVERY[:n]).share(EVERY[:n] == 0).item() for n in (0, 1, 2)] == [0.0, 1.0, 0.5]


def test_each_run_draws_by_its_own_seed_and_step():
    seed, step = torch.arange(6).reshape(2, 3), torch.arange(6, 12).reshape(2, 3)
    found = context(2, 3, seed=seed, step=step, **IDENTITY).uniform("draw")
    alone = [context(seed=s, step=s + 6, **IDENTITY).uniform("draw") for s in range(6)]
    assert torch.equal(found.reshape(6, 6), torch.stack(alone))
    assert len(found.unique()) == 36
    assert not torch.isin(found, context(2, 3, seed=seed, step=step, **IDENTITY).uniform("other")).any()


@pytest.mark.parametrize("runs", [(), (2,), (2, 3)])
def test_tokens_that_need_no_number_get_none(runs):
    among = torch.rand(*runs, 6, generator=torch.Generator().manual_seed(0)) < 0.4
    made = context(*runs, **IDENTITY)
    found = made.uniform("draw", among)
    assert torch.equal(found, made.uniform("draw").masked_fill(~among, -math.inf))
    assert found.isfinite().any()
    assert not found.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_column_is_one_number_for_the_tokens_of_each_run(dtype):
    like = torch.zeros(2, 3, 5, dtype=dtype)
    for x in (0.3, torch.full((2, 3), 0.3, dtype=torch.float64)):
        found = column(x, like)
        assert found.dtype == dtype
        assert torch.equal(found + like, torch.full_like(like, 0.3))


def test_a_saved_state_is_a_copy():
    controller = make("adaptive_entropy", target=0.5)

    def spoil(state):
        for part in state.values():
            for x in part.values():
                x.copy_(x == 0)

    before, state = repr(controller.state_dict()), controller.state_dict()
    spoil(controller.state_dict())
    assert repr(controller.state_dict()) == before
    controller.load_state_dict(state)
    spoil(state)
    assert repr(controller.state_dict()) == before != repr(state)
