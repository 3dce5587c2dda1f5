"""opsm on three responses whose divergences are .2, .2 and .05 by hand."""

import pytest
import torch
from helpers import sampled_tokens

from entrostat import Tokens, make

OLD = torch.full((6,), -1.0, dtype=torch.float64)
DRIFT = torch.tensor([0.5, -0.1, 0.3, 0.1, 0.15, -0.05], dtype=torch.float64)
"""log π_old − log π."""
A = torch.tensor([-1.0, -1.0, 2.0, 2.0, -3.0, -3.0], dtype=torch.float64)
SEQ = torch.tensor([5, 5, 1, 1, 3, 3])


def tokens(**changes) -> Tokens:
    return Tokens(**{"logp": OLD - DRIFT, "old_logp": OLD, "advantage": A, "seq_id": SEQ} | changes)


def test_bad_responses_that_drifted_are_dropped():
    plan = make("opsm", delta=0.1).plan(tokens())
    assert plan.keep.expand(6).tolist() == [False, False, True, True, True, True]
    assert plan.info["opsm/dropped"].item() == pytest.approx(2 / 6)
    assert make("opsm", delta=0.04).plan(tokens()).weight.tolist() == [0, 0, 1, 1, 0, 0]
    assert make("opsm", delta=0.21).plan(tokens()).keep.all()


def test_divergence_from_the_rollout_engine():
    same = tokens(logp=OLD, rollout_logp=OLD + DRIFT)
    assert make("opsm", delta=0.1).plan(same).keep.all()
    found = make("opsm", delta=0.1, sampler="rollout").plan(same)
    assert found.weight.tolist() == [0, 0, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"'opsm' needs Tokens\.rollout_logp"):
        make("opsm", sampler="rollout").plan(tokens())


def test_tokens_of_other_signs_in_a_response_stay():
    t = sampled_tokens(40)
    plan = make("opsm", delta=0.0).plan(t)
    assert plan.keep.expand(40)[t.advantage >= 0].all()
    assert not plan.keep.all()


def test_bad_settings():
    with pytest.raises(ValueError, match="delta must not be negative"):
        make("opsm", delta=-1.0)
    with pytest.raises(ValueError, match="sampler must be one of old, rollout"):
        make("opsm", sampler="vllm")
