"""Masks by divergence and by ratio on single tokens, computed by hand, and the counts of stopped tokens."""

import pytest
import torch

from entrostat import Tokens, make
from toybandit.claims.mutations import always
from toybandit.claims.registry import Effort
from toybandit.claims.trust_region import LIKELY, MASKS, by_ratio, none, of_both, shares

EFFORT = Effort(instances=1, runs=3, states=8, rollouts=20)


def stopped(controller: str, old: float, new: float) -> bool:
    logp, old_logp = (torch.tensor([x], dtype=torch.float64).log() for x in (new, old))
    tokens = Tokens(logp=logp, old_logp=old_logp, advantage=torch.ones(1, dtype=torch.float64))
    return bool(make(controller).plan(tokens).clipped(logp))


@pytest.mark.parametrize(("old", "new", "ratio", "change"), [(0.01, 0.02, True, False), (0.8, 0.96, False, True)])
def test_a_token_that_only_one_of_the_rules_stops(old, new, ratio, change):
    """The unlikely token has r = 2 and a change of .01; the likely one r = 1.2, at the bound, and a change of .16."""
    assert stopped("grpo", old, new) is ratio
    assert stopped("dppo", old, new) is change


def test_the_limits_of_both_rules_meet_where_likely_tokens_begin():
    assert pytest.approx(0.15) == 0.2 * LIKELY


def test_the_faults_reach_both_rules():
    for swap in of_both(always(none)):
        with swap():
            assert not stopped("dppo" if swap.owner.name == "dppo" else "dppo_kl", 0.5, 0.9)
    for swap in of_both(always(by_ratio)):
        with swap():
            assert stopped(swap.owner.name, 0.01, 0.02)


def test_shares_of_stopped_tokens():
    found = {controller: shares(EFFORT, controller) for controller in ("grpo", *MASKS.values())}
    assert all(((x >= 0) & (x <= 1)).all() for each in found.values() for x in each.values())
    assert (found["grpo"]["unlikely"] > found["dppo"]["unlikely"]).all()
    assert (found["grpo"]["likely"] == 0).all()
