"""Entropy changes with shared weights: one update in plain loops, what is left of an estimate, a language model's."""

import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch

from entrostat import policy_stats
from entrostat.entropy_change import lemma1
from toybandit.claims.shared_weights import (
    ALONE,
    DIMENSIONS,
    FIRST,
    FITTED,
    LM_ALL,
    LM_ITSELF,
    STATES,
    WHOLE,
    left,
    of_all,
    on_all,
    shares,
    update,
)
from toybandit.features import directions

LM = Path(__file__).parents[3] / "docs" / "claims_lm" / "claims.json"


def policy(logits):
    """Return probabilities and entropy of one state's logits."""
    weight = [exp(z - max(logits)) for z in logits]
    p = [w / sum(weight) for w in weight]
    return p, -sum(x * log(x) for x in p if x > 0)


@pytest.mark.parametrize("dimension", [3, STATES])
def test_an_update_in_plain_loops(dimension):
    """Every state gets the others' steps by the inner product of features; entropies and shares are those of sums."""
    step = update(2, dimension)
    phi = directions(STATES, dimension)
    error, flow_error, guess = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for run in range(2):
        z, z_after, own = (x[run].tolist() for x in (step.logits, step.after, step.own))
        for state in range(STATES):
            moved = [0.0] * 16
            for other in range(STATES):
                shared = sum(a * b for a, b in zip(phi[state], phi[other], strict=True))
                for arm in range(16):
                    moved[arm] += shared * own[other][arm]
            measured = [b - a for a, b in zip(z[state], z_after[state], strict=True)]
            assert measured == pytest.approx(moved, abs=1e-13)
            assert of_all(step)[run, state].tolist() == pytest.approx(moved, abs=1e-13)
            p, entropy = policy(z[state])
            change = policy(z_after[state])[1] - entropy
            slope = [-x * (log(x) + entropy) for x in p]
            error[run] += (sum(s * d for s, d in zip(slope, moved, strict=True)) - change) ** 2
            flow_error[run] += (sum(s * d for s, d in zip(slope, own[state], strict=True)) - change) ** 2
            guess[run] += change**2
    found = shares(2, dimension)
    np.testing.assert_allclose(found[FIRST], np.divide(error, guess), rtol=1e-5)
    np.testing.assert_allclose(found[WHOLE], np.divide(flow_error, guess), rtol=1e-5)


def test_a_table_has_flows_alone():
    found = shares(3, STATES)
    np.testing.assert_allclose(found[FIRST], found[WHOLE], rtol=1e-6)
    np.testing.assert_allclose(found[ALONE], found[FITTED], rtol=1e-6)
    assert (found[FITTED] <= found[WHOLE]).all()


def test_what_a_first_order_leaves_is_the_second():
    """A tenth of the step leaves a hundredth of the squared error."""
    shares = []
    for lr in (1e-2, 1e-3):
        step = update(8, 8, lr)
        before = policy_stats(step.logits)
        shares.append(left(lemma1(before.logp, of_all(step)), policy_stats(step.after).entropy - before.entropy))
    assert np.median(shares[0] / shares[1]) == pytest.approx(100, rel=0.1)


def test_a_state_alone_moves_all_that_overlap_with_it():
    step = update(1, 2)
    whole = torch.distributions.Categorical(logits=step.logits[0]).entropy()
    for state in (0, 40):
        moved = step.logits[0] + step.overlap[:, state].unsqueeze(-1) * step.own[0, state]
        change = (torch.distributions.Categorical(logits=moved).entropy() - whole).sum()
        assert on_all(step)[0, state].item() == pytest.approx(change.item(), abs=1e-12)


def test_features_are_unit_vectors_so_a_state_alone_moves_itself_as_in_a_table():
    for dimension in DIMENSIONS:
        np.testing.assert_allclose(update(1, dimension).overlap.diagonal(), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("estimate", "fitted", "share"),
    [([1.0, 2.0], False, 0.0), ([0.0, 0.0], False, 1.0), ([2.0, 4.0], False, 1.0), ([2.0, 4.0], True, 0.0)],
)
def test_share_left(estimate, fitted, share):
    change = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    assert left(torch.tensor([estimate], dtype=torch.float64), change, fitted)[0] == pytest.approx(share)


def test_a_fitted_step_is_never_backwards():
    change = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    assert left(-change, change, fitted=True).tolist() == [1.0]


def test_numbers_of_the_language_model_are_those_of_its_page():
    found = {one["name"]: one for one in json.loads(LM.read_text())}
    assert f"error left {LM_ITSELF:.3f} ±" in found["token-flow"]["measured"]
    assert f"error left {LM_ALL:.3f}" in found["first-order-step"]["null"]
