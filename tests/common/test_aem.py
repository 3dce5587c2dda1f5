"""aem on three turns of mean entropies .3, .9 and .6 by hand, and against plain loops."""

from collections import defaultdict
from math import exp, log

import pytest
import torch
from helpers import sampled_tokens

from entrostat import Tokens, make

H = torch.tensor([0.2, 0.4, 0.9, 0.6], dtype=torch.float64)
IDS = {"seq_id": [7, 7, 7, 4], "turn_id": [0, 0, 1, 0], "group_id": [2, 2, 2, 2]}


def tokens(**changes) -> Tokens:
    ids = {name: torch.tensor(value) for name, value in IDS.items()}
    return Tokens(**{"logp": -H, "old_logp": -H, "advantage": torch.ones_like(H), "entropy": H, **ids} | changes)


def weights(t: Tokens, **settings) -> list[float]:
    return make("aem", **settings).plan(t).weight.expand(t.advantage.shape).tolist()


def test_turns_of_a_group():
    """h = 0, 1, ½ and λ = ln 4: 1, ¼, ½ over their mean 7/12."""
    assert weights(tokens(), lam=log(4)) == pytest.approx([12 / 7, 12 / 7, 3 / 7, 6 / 7])
    assert weights(tokens(), lam=0.0) == [1] * 4


def test_turns_of_a_response():
    """1 and ¼ over 5/8; the only turn of the other response weighs 1, and no group is needed."""
    assert weights(tokens(group_id=None), lam=log(4), among="response") == pytest.approx([1.6, 1.6, 0.4, 1.0])


def test_other_groups_are_not_compared():
    apart = tokens(group_id=torch.tensor([2, 2, 2, 3]))
    assert weights(apart, lam=log(4)) == pytest.approx([1.6, 1.6, 0.4, 1.0])


def test_equal_entropies_weigh_one():
    """.1 + .2 and .15 + .15 differ by rounding, and scaling that to 0..1 would make a weight of it."""
    h = torch.tensor([0.1, 0.2, 0.3, 0.15], dtype=torch.float64)
    turn = torch.tensor([0, 0, 1, 1])
    near = tokens(entropy=torch.stack([h[0], h[1], h[3], h[3] + 2e-17]), seq_id=turn * 0, turn_id=turn)
    assert weights(near, lam=3.0) == [1] * 4
    assert weights(tokens(entropy=torch.zeros(4).double()), lam=3.0) == [1] * 4


@pytest.mark.parametrize("among", ["group", "response"])
def test_plain_loops(among):
    t = sampled_tokens(3, 60)
    rows = make("aem", lam=1.3, among=among).plan(t).weight.expand(3, 60)
    owner = (t.group_id if among == "group" else t.seq_id).tolist()
    turn = list(zip(t.seq_id.tolist(), t.turn_id.tolist(), strict=True))
    for run, entropy in enumerate(t.entropy.tolist()):
        of_turn = defaultdict(list)
        for key, h in zip(turn, entropy, strict=True):
            of_turn[key].append(h)
        mean = {key: sum(values) / len(values) for key, values in of_turn.items()}
        for i in range(60):
            others = {key: mean[key] for key, own in zip(turn, owner, strict=True) if own == owner[i]}
            low, high = min(others.values()), max(others.values())
            factor = {key: exp(-1.3 * (value - low) / (high - low)) for key, value in others.items()}
            expected = factor[turn[i]] * len(factor) / sum(factor.values())
            assert rows[run, i].item() == pytest.approx(expected, rel=1e-12)


ERRORS = [({"lam": -1.0}, "lam must not be negative"), ({"among": "batch"}, "among must be one of group, response")]


@pytest.mark.parametrize(("settings", "error"), ERRORS)
def test_bad_settings(settings, error):
    with pytest.raises(ValueError, match=f"aem: {error}"):
        make("aem", **settings)


def test_turns_are_needed():
    with pytest.raises(ValueError, match=r"'aem' needs Tokens\.turn_id"):
        make("aem").plan(tokens(turn_id=None))


@pytest.mark.parametrize("first", [-2, -1, 0, 7])
def test_turns_are_labels_within_their_response(first):
    """Numbers of turns may begin anywhere: no turn of one response is that of another."""
    entropy = torch.tensor([0.1, 0.1, 0.9, 0.9, 0.5, 0.5, 0.3, 0.3], dtype=torch.float64)
    turn, response = torch.tensor([0, 0, 1, 1] * 2), torch.arange(2).repeat_interleave(4)
    fields = {"logp": -entropy, "old_logp": -entropy, "advantage": torch.ones(8).double(), "entropy": entropy}
    ids = {"seq_id": response, "group_id": torch.zeros(8, dtype=torch.int64)}
    found = [make("aem").plan(Tokens(**fields, **ids, turn_id=x)).weight for x in (turn, turn + first)]
    assert torch.equal(*found)
    with pytest.raises(TypeError, match="turn_id must be a tensor of integers"):
        make("aem").plan(Tokens(**fields, **ids, turn_id=turn.double()))
